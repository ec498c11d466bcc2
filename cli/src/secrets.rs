//! A deployment's secrets in SSM Parameter Store. Their values are written and never read here.

#[cfg(feature = "local")]
mod from_shell;

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_ssm::Client;
use aws_sdk_ssm::error::ProvideErrorMetadata as _;
use aws_sdk_ssm::types::{ParameterMetadata, ParameterStringFilter, ParameterTier, ParameterType};
use spotsweep_protocol::claim::{secret_name, secret_parameter};
use spotsweep_protocol::failure::{Context, Failure};
use tokio::time::sleep;

#[cfg(feature = "local")]
pub(crate) use from_shell::{patterns, take_from_shell};

/// The largest value of a standard parameter, which costs nothing
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html>).
pub(crate) const MOST_BYTES: usize = 4096;

/// How often, and after which pause, to look whether a stored secret is listed.
const LISTED_TRIES: u32 = 20;
const LISTED_PAUSE: Duration = Duration::from_secs(1);

/// The secrets of the deployment with this bucket.
#[derive(Debug)]
pub(crate) struct Secrets {
    ssm: Client,
    bucket: String,
}

impl Secrets {
    /// Those of a deployment with this bucket.
    pub(crate) fn of_bucket(config: &SdkConfig, bucket: &str) -> Self {
        Self { ssm: Client::new(config), bucket: bucket.to_owned() }
    }

    /// Stores a value, and returns its version.
    pub(crate) async fn set(&self, name: &str, value: String) -> Result<i64, Failure> {
        let version = self.put(secret_parameter(&self.bucket, name), value).await?;
        // A sweep file that names a secret which is not listed yet would be refused.
        for _ in 0..LISTED_TRIES {
            let listed = self.all().await?;
            if listed.iter().any(|found| self.name(found) == Some(name)) {
                return Ok(version);
            }
            sleep(LISTED_PAUSE).await;
        }
        Err(Failure::new(format!("{name} is stored, but Parameter Store does not list it yet: wait before you submit")))
    }

    async fn put(&self, path: String, value: String) -> Result<i64, Failure> {
        let request = self.ssm.put_parameter().name(&path).value(value);
        let request = request.r#type(ParameterType::SecureString).tier(ParameterTier::Standard).overwrite(true);
        Ok(request.send().await.context(|| format!("cannot store {path} (ssm:PutParameter)"))?.version)
    }

    /// Lists the secrets.
    pub(crate) async fn all(&self) -> Result<Vec<ParameterMetadata>, Failure> {
        let own = secret_parameter(&self.bucket, "");
        let below = ParameterStringFilter::builder().key("Name").option("BeginsWith").values(&own).build();
        let below = below.context(|| "cannot list the secrets")?;
        let mut pages = self.ssm.describe_parameters().parameter_filters(below).into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.context(|| "cannot list the secrets (ssm:DescribeParameters)")?;
            found.extend(page.parameters.unwrap_or_default());
        }
        Ok(found)
    }

    /// The name of a listed secret.
    pub(crate) fn name<'a>(&self, found: &'a ParameterMetadata) -> Option<&'a str> {
        secret_name(&self.bucket, found.name()?)
    }

    /// Deletes a secret. Returns false if there is none of this name.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, Failure> {
        match self.ssm.delete_parameter().name(secret_parameter(&self.bucket, name)).send().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ParameterNotFound") => Ok(false),
            Err(error) => Err(error).context(|| format!("cannot delete {name} (ssm:DeleteParameter)")),
        }
    }
}
