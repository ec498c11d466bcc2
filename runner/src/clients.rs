//! The SDK clients, on one shared HTTP client.
//!
//! The runner calls Lambda with the job role's credentials. It reaches the bucket with the trial's own, which
//! `trial-claim` lends: all trials share the job role, so it cannot separate their outputs.

mod issued;
mod roots;

use std::sync::Arc;
use std::time::Duration;

use aws_config::imds;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::config::{IdentityCache, Region, SharedCredentialsProvider};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode};

use crate::claim::{Claims, INVOKE_TIMEOUT};
use crate::exit::Failure;
use crate::place;
use issued::Issued;
use roots::amazon_roots;

/// IMDS answers in milliseconds, or it is not there.
const IMDS_TIMEOUT: Duration = Duration::from_secs(1);

/// Enough for uploads to continue after a minute of S3 errors.
const S3_ATTEMPTS: u32 = 5;

/// All trials of a sweep may start at once, and Parameter Store takes 40 requests in a second
/// (<https://docs.aws.amazon.com/general/latest/gr/ssm.html>).
const SECRET_ATTEMPTS: u32 = 10;

const TLS: tls::Provider = tls::Provider::Rustls(CryptoMode::Ring);

/// The clients of the services that the runner calls.
pub(crate) struct Clients {
    pub(crate) lambda: aws_sdk_lambda::Client,
    pub(crate) imds: imds::Client,
    shared: SdkConfig,
}

impl Clients {
    /// Takes region and credentials from where AWS Batch puts them. It calls only IMDS, if no region is set.
    pub(crate) async fn connect() -> Result<Self, Failure> {
        let http = aws_smithy_http_client::Builder::new().tls_provider(TLS).tls_context(tls_context()?).build_https();
        let shared = aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(http.clone()).load().await;
        let imds = imds::Client::builder()
            .configure(&ProviderConfig::without_region().with_http_client(http))
            .max_attempts(1)
            .connect_timeout(IMDS_TIMEOUT)
            .read_timeout(IMDS_TIMEOUT)
            .build();
        let shared = with_region(shared, &imds).await?;
        Ok(Self { lambda: lambda(&shared), imds, shared })
    }

    /// The region of all these clients.
    pub(crate) fn region(&self) -> Option<&str> {
        self.shared.region().map(AsRef::as_ref)
    }

    /// The configuration of an attempt that has claimed its trial. Its clients reach only what belongs to the trial.
    pub(crate) async fn of_trial(&self, claims: &Arc<Claims>) -> Result<SdkConfig, Failure> {
        let cache = IdentityCache::lazy().load_timeout(claims.longest_wait()).build();
        let credentials = SharedCredentialsProvider::new(Issued::borrow(claims).await?);
        Ok(self.shared.to_builder().credentials_provider(credentials).identity_cache(cache).build())
    }
}

/// A client for the bucket.
pub(crate) fn s3(trial: &SdkConfig) -> aws_sdk_s3::Client {
    // Emulators of S3 have no host name per bucket.
    let is_named = |name: &&str| std::env::var_os(name).is_some();
    let own_endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].iter().any(is_named);
    let config = aws_sdk_s3::config::Builder::from(trial)
        .force_path_style(own_endpoint)
        .retry_config(RetryConfig::standard().with_max_attempts(S3_ATTEMPTS))
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

/// A client for Parameter Store.
pub(crate) fn ssm(trial: &SdkConfig) -> aws_sdk_ssm::Client {
    let retries = RetryConfig::standard().with_max_attempts(SECRET_ATTEMPTS);
    aws_sdk_ssm::Client::from_conf(aws_sdk_ssm::config::Builder::from(trial).retry_config(retries).build())
}

/// A client for Secrets Manager.
pub(crate) fn secrets_manager(trial: &SdkConfig) -> aws_sdk_secretsmanager::Client {
    let config = aws_sdk_secretsmanager::config::Builder::from(trial);
    let retries = RetryConfig::standard().with_max_attempts(SECRET_ATTEMPTS);
    aws_sdk_secretsmanager::Client::from_conf(config.retry_config(retries).build())
}

/// An HTTP connector for servers that are not AWS's.
pub(crate) fn connector() -> Result<Connector, Failure> {
    Ok(Connector::builder().tls_provider(TLS).tls_context(tls_context()?).build())
}

fn tls_context() -> Result<TlsContext, Failure> {
    let trust = TrustStore::default().with_pem_certificate(amazon_roots());
    let context = TlsContext::builder().with_trust_store(trust).build();
    context.map_err(|error| Failure::System("set up TLS", std::io::Error::other(error)))
}

/// Older ECS agents set no region in containers (fact 38), and the SDK's own query of the metadata service gives up
/// early.
async fn with_region(shared: SdkConfig, imds: &imds::Client) -> Result<SdkConfig, Failure> {
    // An empty variable counts as not set.
    if shared.region().is_some_and(|region| !region.as_ref().is_empty()) {
        return Ok(shared);
    }
    let Some(region) = place::region(imds).await else {
        let reason = "the metadata service does not say the region, and AWS_REGION is not set".to_owned();
        return Err(Failure::Interrupted(reason));
    };
    Ok(shared.into_builder().region(Region::new(region)).build())
}

fn lambda(shared: &SdkConfig) -> aws_sdk_lambda::Client {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(INVOKE_TIMEOUT).build();
    let config = aws_sdk_lambda::config::Builder::from(shared).timeout_config(timeouts).build();
    aws_sdk_lambda::Client::from_conf(config)
}
