//! Why a sweep's secrets cannot be read, and what a person can do about it.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep_protocol::claim::{ManagedSecret, secret_name};
use spotsweep_protocol::wildcards::is_like;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::target::SecretState;
use spotsweep_sweep_file::{Code, Problem, SecretSource, SweepFile};

use crate::settings::Settings;

/// A message, and what to do.
type Why = (String, String);

/// Returns a problem for each secret that the role of the trials does not reach (TrialRole in infra/control-plane.yaml).
pub(super) fn unreachable(file: &SweepFile, settings: &Settings) -> Vec<Problem> {
    problems(file, |text| elsewhere(text, settings).or_else(|| not_allowed(SecretSource::of(text), settings)))
}

/// Returns a problem for each secret that does not exist, or whose value cannot be read or is not encrypted. `found` has
/// those that exist, each by what names it in the plan.
pub(super) fn missing(prepared: &Prepared, found: &BTreeMap<String, SecretState>, bucket: &str) -> Vec<Problem> {
    problems(&prepared.file, |text| {
        let source = SecretSource::of(text);
        let planned = source.planned(bucket);
        let state = found.get(&planned).copied();
        match source {
            SecretSource::Managed(ManagedSecret { name, .. }) => of_managed(name, state),
            SecretSource::Own(_) | SecretSource::Path(_) => of_parameter(&planned, state, bucket),
        }
    })
}

/// Returns what is wrong with the file's secrets, each problem once: a sweep may have several values of one secret.
fn problems(file: &SweepFile, why: impl Fn(&str) -> Option<Why>) -> Vec<Problem> {
    let of_code = file.settings.code.as_ref().and_then(Code::token);
    let setting = |text| if of_code == Some(text) { "code" } else { "secrets" };
    let sources = file.settings.secret_sources().into_iter();
    let wrong: BTreeSet<_> = sources.filter_map(|text| Some((setting(text), why(text)?))).collect();
    wrong.into_iter().map(|(setting, (message, help))| file.problem_at(setting, message, help)).collect()
}

/// Returns why a trial cannot have the secret of Secrets Manager with this name.
fn of_managed(name: &str, state: Option<SecretState>) -> Option<Why> {
    match state {
        Some(SecretState::Readable | SecretState::Plain) => None,
        Some(SecretState::BeingDeleted) => Some((
            format!("the secret {name} of Secrets Manager is scheduled for deletion"),
            format!("restore it, `aws secretsmanager restore-secret --secret-id {name}`, or name another one"),
        )),
        None => Some((
            format!("Secrets Manager has no secret {name} in this account and region, or its policy hides it"),
            "create it, or fix the name; in an ARN it is what stands before the last hyphen and its six characters"
                .to_owned(),
        )),
    }
}

/// Returns why a trial cannot have the parameter at this path.
fn of_parameter(path: &str, state: Option<SecretState>, bucket: &str) -> Option<Why> {
    let name = secret_name(bucket, path);
    match (state, name) {
        (Some(SecretState::Readable | SecretState::BeingDeleted), _) => None,
        (Some(SecretState::Plain), _) => Some((
            format!("the secret {} is a String of Parameter Store, not a SecureString", name.unwrap_or(path)),
            "delete the parameter, and store the value again as a SecureString".to_owned(),
        )),
        (None, Some(name)) => {
            let help = format!("store it: `spotsweep secret set {name}`");
            Some((format!("this deployment has no secret {name}"), help))
        }
        (None, None) => Some((
            format!("Parameter Store has no parameter {path} in this account and region"),
            "store the value there as a SecureString, or fix the path".to_owned(),
        )),
    }
}

/// Returns why this deployment has no secret with this ARN.
fn elsewhere(text: &str, settings: &Settings) -> Option<Why> {
    let [region, account] = SecretSource::place(text)?;
    let mut own = settings.parameters.split(':').skip(3);
    let (own_region, own_account) = (own.next().unwrap_or_default(), own.next().unwrap_or_default());
    let (what, its, ours) = if region != own_region {
        ("region", region, own_region)
    } else if account != own_account {
        ("account", account, own_account)
    } else {
        return None;
    };
    let secret = shown(SecretSource::of(text));
    let message = format!("the secret {secret} is in the {what} {its}, and this deployment is in {ours}");
    Some((message, "store the value for this deployment: `spotsweep secret set NAME`, and write that name".to_owned()))
}

/// Returns why the deployment may not read a secret that is not its own.
fn not_allowed(source: SecretSource<'_>, settings: &Settings) -> Option<Why> {
    let name = match source {
        SecretSource::Managed(_) => shown(source),
        SecretSource::Own(_) | SecretSource::Path(_) => source.planned(&settings.bucket),
    };
    let is_own = secret_name(&settings.bucket, &name).is_some();
    if is_own || settings.allowed_secrets.iter().any(|pattern| is_like(pattern, &name)) {
        return None;
    }
    let patterns: Vec<&str> = settings.allowed_secrets.iter().map(String::as_str).chain([name.as_str()]).collect();
    let help = format!(
        "deploy with the parameter AllowedSecrets={}, or store the value for this deployment: `spotsweep secret set NAME`",
        patterns.join(",")
    );
    Some((format!("this deployment may not read the secret {name}"), help))
}

/// Returns the path of a parameter, or the name of a secret in Secrets Manager. That is what a pattern of AllowedSecrets
/// is compared with. A path begins with a slash, and a name does not.
fn shown(source: SecretSource<'_>) -> String {
    match source {
        SecretSource::Managed(ManagedSecret { name, .. }) => name.to_owned(),
        SecretSource::Own(_) | SecretSource::Path(_) => source.anywhere(),
    }
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

    fn refusals(text: &str, allowed: &str) -> Vec<Problem> {
        let file = format!("spotsweep: {{secrets: {{KEY: '{text}'}}}}\ntrials: [{{lr: 1}}]\n");
        unreachable(&spotsweep_sweep_file::parse("s.yaml", "", file.as_bytes()).unwrap(), &settings(allowed))
    }

    #[test]
    fn the_deployments_own_and_what_it_allows_can_be_read() {
        let arn = |region: &str, account: &str| format!("arn:aws:ssm:{region}:{account}:parameter/team/wandb");
        let own_arn = arn("eu-west-1", "123456789012");
        let managed =
            |account: &str| format!("arn:aws:secretsmanager:eu-west-1:{account}:secret:team/db-x-a1B2c3:KEY::");
        let own_managed = managed("123456789012");
        for (text, allowed, refused) in [
            ("KEY", "", None),
            ("/spotsweep/0/KEY", "", None),
            ("/spotsweep/1/KEY", "", Some("AllowedSecrets=/spotsweep/1/KEY,")),
            ("/team/wandb", "", Some("AllowedSecrets=/team/wandb,")),
            ("/team/wandb", "/team/*", None),
            ("/team/wandb", "/other/*,/team/wandb", None),
            ("/team/wandb", "/team/hf,/team-2/*", Some("AllowedSecrets=/team/hf,/team-2/*,/team/wandb,")),
            ("/aws/reference/secretsmanager/team/db", "", Some("AllowedSecrets=team/db,")),
            ("/aws/reference/secretsmanager/team/db:KEY", "", Some("AllowedSecrets=team/db,")),
            ("/aws/reference/secretsmanager/team/db", "/team/*", Some("AllowedSecrets=/team/*,team/db,")),
            ("/aws/reference/secretsmanager/team/db", "team/*", None),
            ("/aws/reference/secretsmanager/team/db:KEY", "team/d?", None),
            ("/aws/reference/secretsmanager/team/db2", "team/db", Some("AllowedSecrets=team/db,team/db2,")),
            ("/team/db", "team/*", Some("AllowedSecrets=team/*,/team/db,")),
            (&own_managed, "team/db-x", None),
            (&own_managed, "team/db", Some("AllowedSecrets=team/db,team/db-x,")),
            (
                &managed("000000000000"),
                "team/*",
                Some("the secret team/db-x is in the account 000000000000, and this deployment is in 123456789012"),
            ),
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
            let problems = refusals(text, allowed);
            let said = problems.first().map(ToString::to_string);
            assert_eq!((problems.len(), said.is_some()), (usize::from(refused.is_some()), refused.is_some()), "{text}");
            assert!(
                refused.is_none_or(|part| said.as_ref().is_some_and(|said| said.contains(part))),
                "{text}: {said:?}"
            );
        }
    }
}
