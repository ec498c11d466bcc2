//! The secrets of an attempt: read from Parameter Store with the trial's own credentials, and hidden from now on in
//! everything that the runner passes on.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ssm::Client;
use aws_sdk_ssm::error::{DisplayErrorContext, ProvideErrorMetadata as _};
use spotsweep_protocol::claim::{Environment, SecretPaths, secret_name};
use spotsweep_protocol::mask::{LEAST_BYTES, Mask};

use crate::exit::Failure;
use crate::log::{self, say};

/// Why an attempt has no secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error("this deployment has no secret {0} any more: `spotsweep secret set {0}`, then `spotsweep retry`")]
    Missing(String),
    #[error("Parameter Store has no parameter {0} any more: store it as a SecureString, then `spotsweep retry`")]
    NoParameter(String),
    #[error("the trial's role may not read the secret {name}: {message}")]
    Denied { name: String, message: String },
    #[error("the secret {0} has a null character, which no environment variable may have")]
    Null(String),
}

/// Values by the path of the parameter.
pub(crate) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Reads the secrets of the deployment that has this bucket. A service that does not answer ends the attempt, and a
    /// secret that is missing ends the trial.
    pub(crate) async fn read(ssm: &Client, paths: &BTreeSet<String>, bucket: &str) -> Result<Self, Failure> {
        let mut values = BTreeMap::new();
        for path in paths {
            values.insert(path.clone(), value(ssm, path, bucket).await?);
        }
        log::hide(Mask::new(values.values()));
        for (path, value) in &values {
            let name = secret_name(bucket, path).unwrap_or(path);
            if value.contains('\0') {
                return Err(SecretsError::Null(name.to_owned()).into());
            }
            if value.len() < LEAST_BYTES {
                say(&format!("the secret {name} is shorter than {LEAST_BYTES} bytes: it is not hidden in the log"));
            }
        }
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

/// Reads one secret.
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
