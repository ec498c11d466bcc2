//! Secrets Manager's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use spotsweep_control_plane::calls::{CallError, DescribedSecret, SecretsManager};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to Secrets Manager over its SDK.
#[derive(Debug)]
pub(super) struct SecretsManagerSdk(Lazy<Client>);

impl SecretsManagerSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl SecretsManager for SecretsManagerSdk {
    async fn describe_secret(&self, name: String) -> Result<DescribedSecret, CallError> {
        let found = self.0.describe_secret().secret_id(name).send().await.map_err(call_error)?;
        Ok(DescribedSecret { is_being_deleted: found.deleted_date.is_some() })
    }
}
