//! The secrets of an attempt: read from Parameter Store with the trial's own credentials, and hidden from now on in
//! everything that the runner passes on.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ssm::Client;
use aws_sdk_ssm::error::{DisplayErrorContext, ProvideErrorMetadata as _};
use spotsweep_protocol::claim::{Environment, SecretNames, secret_name};
use spotsweep_protocol::mask::{LEAST_BYTES, Mask};

use crate::exit::Failure;
use crate::log::{self, say};

/// Why an attempt has no secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error("this deployment has no secret {0} any more: `spotsweep secret set {0}`, then `spotsweep retry`")]
    Missing(String),
    #[error("the trial's role may not read the secret {name}: {message}")]
    Denied { name: String, message: String },
    #[error("the secret {0} has a null character, which no environment variable may have")]
    Null(String),
}

/// Values by the name of the parameter.
pub(crate) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Reads the secrets. A service that does not answer ends the attempt, and a secret that is missing ends the trial.
    pub(crate) async fn read(ssm: &Client, names: &BTreeSet<String>) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        for name in names {
            values.insert(name.clone(), value(ssm, name).await?);
        }
        log::hide(Mask::new(values.values()));
        for (name, value) in &values {
            let own = secret_name(name);
            if value.contains('\0') {
                return Err(SecretsError::Null(own.to_owned()).into());
            }
            if value.len() < LEAST_BYTES {
                say(&format!("the secret {own} is shorter than {LEAST_BYTES} bytes: it is not hidden in the log"));
            }
        }
        Ok(Self(values))
    }

    /// The variables that get these secrets.
    pub(crate) fn variables(&self, names: SecretNames) -> Environment {
        names.into_iter().filter_map(|(variable, name)| Some((variable, self.0.get(&name)?.clone()))).collect()
    }

    /// The value of one secret.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Reads one secret.
async fn value(ssm: &Client, name: &str) -> Result<String, Failure> {
    let own = || secret_name(name).to_owned();
    match ssm.get_parameter().name(name).with_decryption(true).send().await {
        Ok(found) => Ok(found.parameter.and_then(|parameter| parameter.value).unwrap_or_default()),
        Err(error) => Err(match error.code() {
            Some("ParameterNotFound") => SecretsError::Missing(own()).into(),
            // Also the code for a key of KMS that the role may not use
            // (https://docs.aws.amazon.com/systems-manager/latest/APIReference/CommonErrors.html).
            Some("AccessDeniedException") => {
                SecretsError::Denied { name: own(), message: error.message().unwrap_or_default().to_owned() }.into()
            }
            _ => {
                Failure::Interrupted(format!("the secret {} could not be read: {}", own(), DisplayErrorContext(&error)))
            }
        }),
    }
}

impl From<SecretsError> for Failure {
    fn from(error: SecretsError) -> Self {
        Self::Secrets(Box::new(error))
    }
}
