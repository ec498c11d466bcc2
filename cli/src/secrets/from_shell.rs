//! The secrets that a sweep file names, for a stack that ends with this command: their values are those of this shell's
//! variables.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use serde_json::{Map, Value};
use spotsweep_protocol::claim::ManagedSecret;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_sweep_file::{SecretSource, Settings};

use super::Secrets;

/// Stores the values in the stack's Parameter Store and Secrets Manager.
pub(crate) async fn take_from_shell(config: &SdkConfig, bucket: &str, settings: &Settings) -> Result<(), Failure> {
    let values = Values::new(settings, bucket, &|name| std::env::var(name).ok())?;
    let own = Secrets::of_bucket(config, bucket);
    for (path, value) in values.parameters {
        own.put(path, value).await?;
    }
    let client = Client::new(config);
    for (name, text) in values.managed {
        let stored = client.create_secret().name(&name).secret_string(text).send().await;
        stored.context(|| format!("cannot store {name} (secretsmanager:CreateSecret)"))?;
    }
    Ok(())
}

/// Returns patterns of AllowedSecrets for the secrets that a file names.
pub(crate) fn patterns(settings: &Settings) -> Vec<String> {
    let pattern = |text| match SecretSource::of(text) {
        SecretSource::Own(_) => None,
        SecretSource::Path(path) => Some(path.to_owned()),
        SecretSource::Managed(ManagedSecret { name, .. }) => Some(name.to_owned()),
    };
    settings.secret_sources().into_iter().filter_map(pattern).collect()
}

/// What is stored.
#[derive(Default)]
struct Values {
    /// By the path in Parameter Store.
    parameters: BTreeMap<String, String>,
    /// By the name in Secrets Manager.
    managed: BTreeMap<String, String>,
}

impl Values {
    fn new(settings: &Settings, bucket: &str, shell: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let mut values = Self::default();
        let mut objects = BTreeMap::<&str, Map<String, Value>>::new();
        for text in settings.secret_sources() {
            let value = of_shell(text, settings, shell)?;
            let source = SecretSource::of(text);
            match source {
                SecretSource::Own(_) | SecretSource::Path(_) => {
                    values.parameters.insert(source.planned(bucket), value);
                }
                SecretSource::Managed(ManagedSecret { name, key: None }) => {
                    values.managed.insert(name.to_owned(), value);
                }
                SecretSource::Managed(ManagedSecret { name, key: Some(key) }) => {
                    objects.entry(name).or_default().insert(key.to_owned(), value.into());
                }
            }
        }
        for (name, object) in objects {
            if values.managed.insert(name.to_owned(), Value::Object(object).to_string()).is_some() {
                let message =
                    format!("the file names all of the secret {name} and a key of it: here only one is possible");
                return Err(Failure::usage(message));
            }
        }
        Ok(values)
    }
}

/// Returns the value of the variable that gets the secret, or of one with the last name of the secret.
fn of_shell(text: &str, settings: &Settings, shell: &dyn Fn(&str) -> Option<String>) -> Result<String, Failure> {
    let anywhere = SecretSource::of(text).anywhere();
    let name = anywhere.rsplit(['/', ':']).next().unwrap_or_default();
    let of_secret = settings.secrets.iter().filter(|(_, secret)| *secret == text).map(|(of, _)| of.as_str());
    let variables: Vec<&str> = of_secret.chain([name]).collect();
    let value = variables.iter().find_map(|name| shell(name)).filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        let first = variables.first().copied().unwrap_or_default();
        Failure::usage(format!("the file names the secret {text}: set the variable {first} in this shell"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn values(secrets: &str) -> Result<Values, Failure> {
        let file = format!(
            "trials: [{{a: 1}}]\nspotsweep: {{code: {{git: 'https://h/x', token: /team/GIT}}, secrets: {secrets}}}\n"
        );
        let file = spotsweep_sweep_file::parse("f.yaml", "", file.as_bytes()).unwrap();
        let shell =
            |name: &str| (name != "UNSET").then(|| if name == "NONE" { String::new() } else { format!("${name}") });
        Values::new(&file.settings, "b", &shell)
    }

    #[test]
    fn secrets_have_the_values_of_the_shells_variables() {
        let named = "{OWN: a, UNSET: /team/HF, USER_NAME: '/aws/reference/secretsmanager/t/db:user', \
                     PASSWORD: 'arn:aws:secretsmanager:r:1:secret:t/db-a1B2c3:password::', ALL: /aws/reference/secretsmanager/all}";
        let Values { parameters, managed } = values(named).unwrap();
        let expected = [("/spotsweep/b/a", "$OWN"), ("/team/GIT", "$GIT"), ("/team/HF", "$HF")];
        assert!(parameters.iter().map(|(path, value)| (path.as_str(), value.as_str())).eq(expected), "{parameters:?}");
        assert_eq!(managed["all"], "$ALL");
        let object: Value = serde_json::from_str(&managed["t/db"]).unwrap();
        assert_eq!(object, serde_json::json!({"user": "$USER_NAME", "password": "$PASSWORD"}));
        assert_eq!(managed.len(), 2);
    }

    #[test]
    fn a_secret_without_a_value_is_named() {
        for (secrets, part) in [
            ("[UNSET]", "set the variable UNSET"),
            ("{NONE: a}", "set the variable NONE"),
            ("{UNSET: '/aws/reference/secretsmanager/t/db:UNSET'}", "set the variable UNSET"),
            ("{A: /aws/reference/secretsmanager/x, B: '/aws/reference/secretsmanager/x:k'}", "all of the secret x"),
        ] {
            let error = values(secrets).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains(part)), "{secrets}: {error:?}");
        }
    }
}
