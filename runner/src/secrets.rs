//! The secrets of an attempt: read from Parameter Store and Secrets Manager with the trial's own credentials, and hidden
//! from now on in everything that the runner passes on.

mod fields;
mod managed;

use std::collections::{BTreeMap, BTreeSet};

use aws_config::SdkConfig;
use aws_sdk_ssm::Client;
use aws_sdk_ssm::error::{DisplayErrorContext, ProvideErrorMetadata as _};
use spotsweep_protocol::claim::{Environment, ManagedSecret, SecretPaths, secret_name};
use spotsweep_protocol::mask::{LEAST_BYTES, Mask};

use crate::clients;
use crate::exit::Failure;
use crate::log::{self, say};
use fields::fields;
use managed::ManagedSecrets;

/// The most bytes of a value, those of Parameter Store's largest
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html>). Secrets
/// Manager has up to 64 KiB, and hiding a value takes much memory.
const MOST_BYTES: usize = 8192;

/// Why an attempt has no secrets. No text shows any of a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error("this deployment has no secret {0} any more: `spotsweep secret set {0}`, then `spotsweep retry`")]
    Missing(String),
    #[error("Parameter Store has no parameter {0} any more: store it as a SecureString, then `spotsweep retry`")]
    NoParameter(String),
    #[error("the trial's role may not read the secret {name}: {message}")]
    Denied { name: String, message: String },
    #[error("Secrets Manager has no value of the secret {0} any more: store it, then `spotsweep retry`")]
    NoSecret(String),
    #[error("Secrets Manager has no secret {name} any more, or the trial's role may not read it: {message}")]
    Hidden { name: String, message: String },
    #[error(
        "the secret {name} of Secrets Manager cannot be read: {message} If it is scheduled for deletion, `aws \
         secretsmanager restore-secret --secret-id {name}`, then `spotsweep retry`"
    )]
    Unusable { name: String, message: String },
    #[error("the secret {0} of Secrets Manager is binary: store a text, as no environment variable can have all bytes")]
    Binary(String),
    #[error("the secret {name} of Secrets Manager is no JSON object, so it has no key {key}")]
    NoObject { name: String, key: String },
    #[error("the JSON object in the secret {name} of Secrets Manager has no key {key}")]
    NoKey { name: String, key: String },
    #[error("the key {key} of the secret {name} of Secrets Manager has neither a text, a number nor a boolean")]
    NoText { name: String, key: String },
    #[error("the secret {0} has more than {MOST_BYTES} bytes")]
    Long(String),
    #[error("the secret {0} has a null character, which no environment variable may have")]
    Null(String),
}

/// Values by what names the secret in the plan.
pub(crate) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Reads the secrets of the deployment that has this bucket. A service that does not answer ends the attempt, and a
    /// secret that is missing ends the trial.
    pub(crate) async fn read(trial: &SdkConfig, named: &BTreeSet<String>, bucket: &str) -> Result<Self, Failure> {
        let (ssm, mut managed) = (clients::ssm(trial), ManagedSecrets::new(clients::secrets_manager(trial)));
        let mut values = BTreeMap::new();
        for text in named {
            let value = match ManagedSecret::of(text) {
                Some(secret) => managed.value(secret).await?,
                None => value(&ssm, text, bucket).await?,
            };
            values.insert(text.clone(), value);
        }
        for (text, value) in &values {
            let name = secret_name(bucket, text).unwrap_or(text);
            if value.contains('\0') {
                return Err(SecretsError::Null(name.to_owned()).into());
            }
            if value.len() > MOST_BYTES {
                return Err(SecretsError::Long(name.to_owned()).into());
            }
            if value.len() < LEAST_BYTES {
                say(&format!("the secret {name} is shorter than {LEAST_BYTES} bytes: it is not hidden in the log"));
            }
        }
        let fields = values.values().flat_map(|value| fields(value));
        log::hide(Mask::new(values.values().cloned().chain(fields)));
        Ok(Self(values))
    }

    /// The variables that get these secrets.
    pub(crate) fn variables(&self, paths: SecretPaths) -> Environment {
        paths.into_iter().filter_map(|(variable, path)| Some((variable, self.0.get(&path)?.clone()))).collect()
    }

    /// The value of one secret.
    pub(crate) fn value(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// Reads one secret of Parameter Store.
async fn value(ssm: &Client, path: &str, bucket: &str) -> Result<String, Failure> {
    let own = secret_name(bucket, path).map(str::to_owned);
    let name = own.clone().unwrap_or_else(|| path.to_owned());
    match ssm.get_parameter().name(path).with_decryption(true).send().await {
        Ok(found) => Ok(found.parameter.and_then(|parameter| parameter.value).unwrap_or_default()),
        Err(error) => Err(match error.code() {
            Some("ParameterNotFound") => own.map_or(SecretsError::NoParameter(name), SecretsError::Missing).into(),
            // Also the code for a key of KMS that the role may not use
            // (https://docs.aws.amazon.com/systems-manager/latest/APIReference/CommonErrors.html).
            Some("AccessDeniedException") => {
                SecretsError::Denied { name, message: error.message().unwrap_or_default().to_owned() }.into()
            }
            _ => Failure::Interrupted(format!("the secret {name} could not be read: {}", DisplayErrorContext(&error))),
        }),
    }
}

impl From<SecretsError> for Failure {
    fn from(error: SecretsError) -> Self {
        Self::Secrets(Box::new(error))
    }
}
