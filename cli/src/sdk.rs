//! AWS clients: one HTTP client between them, and no look at the caller's environment for the
//! local stack.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider, SharedHttpClient};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};

/// The region of the local stack.
pub(crate) const LOCAL_REGION: &str = "us-east-1";
/// Both halves of the local stack's credentials.
pub(crate) const LOCAL_CREDENTIAL: &str = "test";

/// AWS as the caller's environment and profile say, endpoint variables included.
pub(crate) async fn from_environment() -> SdkConfig {
    aws_config::defaults(behavior()).http_client(http_client()).load().await
}

/// A local endpoint. The variables of whoever calls (a profile, another endpoint) change nothing.
pub(crate) fn local(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new(LOCAL_CREDENTIAL, LOCAL_CREDENTIAL, None, None, "local stack");
    SdkConfig::builder()
        .behavior_version(behavior())
        .region(Region::new(LOCAL_REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .http_client(http_client())
        .build()
}

/// S3 with the bucket in the path where there is an own endpoint: `bucket.127.0.0.1` resolves
/// nowhere.
pub(crate) fn s3(config: &SdkConfig) -> aws_sdk_s3::Client {
    let own_endpoint = config.endpoint_url().is_some();
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(config).force_path_style(own_endpoint).build())
}

fn behavior() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}

fn http_client() -> SharedHttpClient {
    let provider = tls::Provider::Rustls(CryptoMode::Ring);
    aws_smithy_http_client::Builder::new().tls_provider(provider).build_https()
}
