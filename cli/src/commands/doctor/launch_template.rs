//! Checks what a compute environment's launch template sets on its instances before the ECS agent starts.

use aws_config::SdkConfig;
use aws_sdk_batch::types::{ComputeEnvironmentDetail, LaunchTemplateSpecification};
use aws_sdk_ec2::Client;
use aws_smithy_types::base64;

use super::finding::{Finding, State};
use super::runner;

const ABOUT: &str = "launch template";
const FIX: &str = "add the user data of infra/compute.yaml to it as a MIME part, and put the compute environment \
                   on the new version (docs/deploy.md, \"The control plane alone\")";

/// A text that user data must contain, and what happens without it.
struct Wanted {
    text: &'static str,
    without: &'static str,
    state: State,
}

/// From facts 9, 18, 47 and 48, and the ECS agent's README for the defaults.
const WANTED: [Wanted; 6] = [
    Wanted {
        text: "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true",
        without: "Batch can start a trial again on the Spot instance that is being taken from it",
        state: State::Problem,
    },
    Wanted {
        text: "ECS_CONTAINER_CREATE_TIMEOUT=",
        without: "the agent gives up on a container after 4 minutes, which a large image on a busy disk can exceed",
        state: State::Look,
    },
    Wanted {
        text: "ECS_CONTAINER_STOP_TIMEOUT=",
        without: "the agent kills a trial 30 seconds after SIGTERM where it is cancelled or reaches its timeout, \
                  which is short for a checkpoint",
        state: State::Look,
    },
    Wanted {
        text: "ECS_IMAGE_PULL_INACTIVITY_TIMEOUT=",
        without: "the agent gives up on an image whose pull shows no progress for a minute, as while a layer of \
                  several GB is unpacked",
        state: State::Look,
    },
    Wanted {
        text: "ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM=ec2_instance",
        without: "the control plane cannot drain an instance on which nothing can be trained, so that Batch starts \
                  trial after trial there",
        state: State::Look,
    },
    Wanted {
        text: "169.254.169.254",
        without: "nothing keeps a training from the instance's role (docs/security.md)",
        state: State::Look,
    },
];

/// Makes one finding for each missing setting, or one that nothing is missing. Others are about the runner that the
/// instances fetch.
pub(super) async fn look(config: &SdkConfig, environment: &ComputeEnvironmentDetail) -> Vec<Finding> {
    let name = environment.compute_environment_name().unwrap_or_default();
    let Some(template) = environment.compute_resources().and_then(|resources| resources.launch_template()) else {
        return judge(name, "");
    };
    match user_data(&Client::new(config), template).await {
        Ok(text) => [judge(name, &text), runner::look(config, name, &text).await].concat(),
        Err(finding) => vec![*finding],
    }
}

/// Decodes the template's user data. It is empty if the template has none.
async fn user_data(client: &Client, template: &LaunchTemplateSpecification) -> Result<String, Box<Finding>> {
    // `$Default` is Batch's default, too (API_LaunchTemplateSpecification).
    let version = template.version().filter(|version| !version.is_empty()).unwrap_or("$Default");
    let asked = client
        .describe_launch_template_versions()
        .set_launch_template_id(template.launch_template_id().map(str::to_owned))
        .set_launch_template_name(template.launch_template_name().map(str::to_owned))
        .versions(version);
    let described = asked
        .send()
        .await
        .map_err(|error| Box::new(Finding::refused(ABOUT, "ec2:DescribeLaunchTemplateVersions", &error)))?;
    let data = described.launch_template_versions().first().and_then(|version| version.launch_template_data());
    Ok(data.and_then(|data| data.user_data()).map(readable).unwrap_or_default())
}

fn judge(environment: &str, user_data: &str) -> Vec<Finding> {
    let missing = WANTED.iter().filter(|wanted| !sets(user_data, wanted.text));
    let findings: Vec<Finding> = missing
        .map(|wanted| {
            let said = format!("{environment}: no {} in the instances' user data: {}", wanted.text, wanted.without);
            Finding { state: wanted.state, ..Finding::problem(ABOUT, said, FIX) }
        })
        .collect();
    if findings.is_empty() {
        let said = format!("{environment}: its instances drain on a notice, and keep the metadata service to root");
        return vec![Finding::ok(ABOUT, said)];
    }
    findings
}

/// Whether a line that is no comment contains the text.
fn sets(user_data: &str, text: &str) -> bool {
    user_data.lines().map(str::trim_start).any(|line| !line.starts_with('#') && line.contains(text))
}

/// Decodes user data as text. AWS CDK writes parts of it in base64.
fn readable(encoded: &str) -> String {
    let decoded = base64::decode(encoded).unwrap_or_default();
    let text = String::from_utf8_lossy(&decoded);
    text.split("\n--").map(part).collect::<Vec<_>>().join("\n--")
}

fn part(text: &str) -> String {
    let text = text.replace('\r', "");
    let Some((headers, body)) = text.split_once("\n\n") else { return text };
    let is_encoded = headers.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("content-transfer-encoding:") && line.trim_end().ends_with("base64")
    });
    match base64::decode(body.split_whitespace().collect::<String>()) {
        Ok(decoded) if is_encoded => format!("{headers}\n\n{}", String::from_utf8_lossy(&decoded)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(user_data: &str) -> Vec<State> {
        judge("spot", &readable(&base64::encode(user_data))).iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn the_template_of_this_project_has_what_is_looked_for() {
        let text = include_str!("../../../../infra/compute.yaml");
        let (_, user_data) = text.split_once("Fn::Base64: !Join\n").unwrap();
        assert_eq!(judged(user_data), [State::Ok]);
    }

    #[test]
    fn each_setting_is_missed_in_templates_of_ones_own() {
        use State::{Look, Ok, Problem};
        let mime = |body: &str| {
            format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\n{body}\n--b--\n")
        };
        let script = "#!/bin/bash\necho ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config\n";
        let timeouts = "echo ECS_CONTAINER_CREATE_TIMEOUT=6m >> x\necho ECS_CONTAINER_STOP_TIMEOUT=90s >> x\n\
                        echo ECS_IMAGE_PULL_INACTIVITY_TIMEOUT=5m >> x\n\
                        echo ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM=ec2_instance >> x\n";
        let whole = format!("{script}{timeouts}iptables -d 169.254.169.254 -j DROP\n");
        let in_base64 = format!(
            "Content-Transfer-Encoding: base64\nContent-Type: text/x-shellscript\n\n{}",
            base64::encode(&whole)
        );
        for (user_data, expected) in [
            (String::new(), vec![Problem, Look, Look, Look, Look, Look]),
            (mime(&format!("Content-Type: text/x-shellscript\n\n{script}")), vec![Look, Look, Look, Look, Look]),
            (mime(&format!("Content-Type: text/x-shellscript\n\n{whole}")), vec![Ok]),
            (mime(&in_base64), vec![Ok]),
            (
                mime("Content-Type: text/x-shellscript\r\n\r\n#!/bin/sh\r\n"),
                vec![Problem, Look, Look, Look, Look, Look],
            ),
            (mime("\n# ECS_ENABLE_SPOT_INSTANCE_DRAINING=true\n"), vec![Problem, Look, Look, Look, Look, Look]),
            (whole.replace("DRAINING=true", "DRAINING=false"), vec![Problem]),
            (whole.replace("STOP_TIMEOUT", "START_TIMEOUT"), vec![Look]),
            (whole.replace("PULL_INACTIVITY", "PULL"), vec![Look]),
        ] {
            assert_eq!(judged(&user_data), expected, "{user_data}");
        }
    }
}
