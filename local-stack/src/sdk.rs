//! Configures AWS clients for the local stack. The caller's environment has no effect on them.

use aws_config::{Region, SdkConfig};
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use spotsweep_aws::{behavior, http_client};

/// The region of the local stack.
pub const LOCAL_REGION: &str = "us-east-1";
/// The access key id and the secret key of the local stack.
pub const LOCAL_CREDENTIAL: &str = "test";

/// The configuration for a local endpoint. Variables of the caller, such as a profile or another endpoint, have no
/// effect.
pub fn local(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new(LOCAL_CREDENTIAL, LOCAL_CREDENTIAL, None, None, "local stack");
    SdkConfig::builder()
        .behavior_version(behavior())
        .region(Region::new(LOCAL_REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .http_client(http_client())
        .build()
}
