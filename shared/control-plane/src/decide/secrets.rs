//! Why a sweep's secrets cannot be read, and what a person can do about it.

use std::collections::BTreeMap;

use spotsweep_protocol::claim::secret_name;
use spotsweep_protocol::wildcards::is_like;
use spotsweep_records::sweep::Prepared;
use spotsweep_sweep_file::{Code, Problem, SecretSource, SweepFile};

use crate::settings::Settings;

/// A message, and what to do.
type Why = (String, String);

/// Returns a problem for each secret that the role of the trials does not reach (TrialRole in infra/control-plane.yaml).
pub(super) fn unreachable(file: &SweepFile, settings: &Settings) -> Vec<Problem> {
    let problem = |(text, setting)| {
        let source = SecretSource::of(text);
        let (message, help) = elsewhere(source, settings).or_else(|| not_allowed(source, settings))?;
        Some(file.problem_at(setting, message, help))
    };
    named(file).filter_map(problem).collect()
}

/// Returns a problem for each secret that does not exist, or whose value is not encrypted. `found` has the paths of those
/// that exist, and whether each is encrypted.
pub(super) fn missing(prepared: &Prepared, found: &BTreeMap<String, bool>, bucket: &str) -> Vec<Problem> {
    let problem = |(text, setting)| {
        let parameter = SecretSource::of(text).parameter(bucket);
        let name = secret_name(bucket, &parameter);
        let (message, help) = match (found.get(&parameter), name) {
            (Some(true), _) => return None,
            (Some(false), _) => (
                format!("the secret {} is a String of Parameter Store, not a SecureString", name.unwrap_or(&parameter)),
                "delete the parameter, and store the value again as a SecureString".to_owned(),
            ),
            (None, Some(name)) => {
                (format!("this deployment has no secret {name}"), format!("store it: `spotsweep secret set {name}`"))
            }
            (None, None) => (
                format!("Parameter Store has no parameter {parameter} in this account and region"),
                "store the value there as a SecureString, or fix the path".to_owned(),
            ),
        };
        Some(prepared.file.problem_at(setting, message, help))
    };
    named(&prepared.file).filter_map(problem).collect()
}

/// Returns what names the file's secrets, each with its setting.
fn named(file: &SweepFile) -> impl Iterator<Item = (&str, &'static str)> {
    let of_code = file.settings.code.as_ref().and_then(Code::token);
    let setting = move |text| (text, if of_code == Some(text) { "code" } else { "secrets" });
    file.settings.secret_sources().into_iter().map(setting)
}

/// Returns why this deployment has no parameter with this ARN.
fn elsewhere(source: SecretSource<'_>, settings: &Settings) -> Option<Why> {
    let SecretSource::Arn { region, account, path } = source else { return None };
    let mut own = settings.parameters.split(':').skip(3);
    let (own_region, own_account) = (own.next().unwrap_or_default(), own.next().unwrap_or_default());
    let (what, its, ours) = if region != own_region {
        ("region", region, own_region)
    } else if account != own_account {
        ("account", account, own_account)
    } else {
        return None;
    };
    let message = format!("the secret {path} is in the {what} {its}, and this deployment is in {ours}");
    Some((message, "store the value for this deployment: `spotsweep secret set NAME`, and write that name".to_owned()))
}

/// Returns why the deployment may not read a parameter outside of its own prefix.
fn not_allowed(source: SecretSource<'_>, settings: &Settings) -> Option<Why> {
    let parameter = source.parameter(&settings.bucket);
    let is_own = secret_name(&settings.bucket, &parameter).is_some();
    if is_own || settings.allowed_secrets.iter().any(|pattern| is_like(pattern, &parameter)) {
        return None;
    }
    let patterns: Vec<&str> = settings.allowed_secrets.iter().map(String::as_str).chain([parameter.as_str()]).collect();
    let help = format!(
        "deploy with the parameter AllowedSecrets={}, or store the value for this deployment: `spotsweep secret set NAME`",
        patterns.join(",")
    );
    Some((format!("this deployment may not read the secret {parameter}"), help))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn settings(allowed: &str) -> Settings {
        let variable = |name: &str| match name {
            "SPOTSWEEP_PARAMETERS" => Some("arn:aws:ssm:eu-west-1:123456789012:parameter".to_owned()),
            "SPOTSWEEP_ALLOWED_SECRETS" => Some(allowed.to_owned()),
            _other => Some("0".to_owned()),
        };
        Settings::from_variables(variable).unwrap()
    }

    fn problems(text: &str, allowed: &str) -> Vec<Problem> {
        let file = format!("spotsweep: {{secrets: {{KEY: '{text}'}}}}\ntrials: [{{lr: 1}}]\n");
        unreachable(&spotsweep_sweep_file::parse("s.yaml", "", file.as_bytes()).unwrap(), &settings(allowed))
    }

    #[test]
    fn the_deployments_own_and_what_it_allows_can_be_read() {
        let arn = |region: &str, account: &str| format!("arn:aws:ssm:{region}:{account}:parameter/team/wandb");
        let own_arn = arn("eu-west-1", "123456789012");
        for (text, allowed, refused) in [
            ("KEY", "", None),
            ("/spotsweep/0/KEY", "", None),
            ("/spotsweep/1/KEY", "", Some("AllowedSecrets=/spotsweep/1/KEY,")),
            ("/team/wandb", "", Some("AllowedSecrets=/team/wandb,")),
            ("/team/wandb", "/team/*", None),
            ("/team/wandb", "/other/*,/team/wandb", None),
            ("/team/wandb", "/team/hf,/team-2/*", Some("AllowedSecrets=/team/hf,/team-2/*,/team/wandb,")),
            (&own_arn, "/team/*", None),
            (&own_arn, "", Some("AllowedSecrets=/team/wandb,")),
            (
                &arn("us-east-1", "123456789012"),
                "/team/*",
                Some("in the region us-east-1, and this deployment is in eu-west-1"),
            ),
            (
                &arn("eu-west-1", "000000000000"),
                "/team/*",
                Some("in the account 000000000000, and this deployment is in 123456789012"),
            ),
        ] {
            let problems = problems(text, allowed);
            let said = problems.first().map(ToString::to_string);
            assert_eq!((problems.len(), said.is_some()), (usize::from(refused.is_some()), refused.is_some()), "{text}");
            assert!(
                refused.is_none_or(|part| said.as_ref().is_some_and(|said| said.contains(part))),
                "{text}: {said:?}"
            );
        }
    }
}
