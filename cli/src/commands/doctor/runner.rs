//! Checks that the bucket has the runner that instances fetch at their boot. Each instance without it shuts down, and
//! Batch starts the next one.

use aws_config::SdkConfig;

use super::finding::Finding;

const ABOUT: &str = "runner";

/// A runner that user data names.
#[derive(Debug, PartialEq, Eq)]
struct Fetched<'a> {
    bucket: &'a str,
    key: String,
}

/// Makes one finding for each runner that the instances of a compute environment fetch.
pub(super) async fn look(config: &SdkConfig, environment: &str, user_data: &str) -> Vec<Finding> {
    let client = spotsweep_aws::path_style_s3(config);
    let mut findings = Vec::new();
    for Fetched { bucket, key } in fetched(user_data) {
        findings.push(match client.head_object().bucket(bucket).key(&key).send().await {
            Ok(_) => Finding::ok(ABOUT, format!("{environment}: its instances fetch {key}")),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => {
                let said = format!("{environment}: {bucket} has no {key}: each instance shuts down at its boot");
                Finding::problem(
                    ABOUT,
                    said,
                    format!("`aws s3 cp spotsweep-runner s3://{bucket}/{key}` (docs/deploy.md)"),
                )
            }
            Err(error) => Finding::refused(ABOUT, "s3:GetObject", &error),
        });
    }
    findings
}

/// The runners in the line that infra/compute.yaml fills in.
fn fetched(user_data: &str) -> Vec<Fetched<'_>> {
    let value = |name: &str| {
        let line = user_data.lines().map(str::trim_start).find(|line| line.starts_with("bucket='"))?;
        let (_, rest) = line.split_once(&format!("{name}='"))?;
        rest.split_once('\'').map(|(value, _)| value).filter(|value| !value.is_empty())
    };
    let Some(bucket) = value("bucket") else { return Vec::new() };
    let hashes = ["x86_64", "aarch64"].into_iter().filter_map(value);
    hashes.map(|hash| Fetched { bucket, key: format!("runner/{hash}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_template_names_the_runners() {
        let template = include_str!("../../../../infra/compute.yaml");
        let filled = |x86: &str, arm: &str| {
            template.replace("${Bucket}", "b").replace("${RunnerX86}", x86).replace("${RunnerArm}", arm)
        };
        let fetched_with = |x86: &str, arm: &str| {
            fetched(&filled(x86, arm)).into_iter().map(|one| format!("{}/{}", one.bucket, one.key)).collect::<Vec<_>>()
        };
        assert_eq!(fetched_with("1a", "2b"), ["b/runner/1a", "b/runner/2b"]);
        assert_eq!(fetched_with("", "2b"), ["b/runner/2b"]);
        assert_eq!(fetched_with("", ""), [""; 0]);
        assert_eq!(fetched("#!/bin/bash\necho x86_64='1a'\n"), []);
    }
}
