//! Configuration of AWS clients for the local stack: the caller's environment changes nothing.

use aws_config::{Region, SdkConfig};
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use spotsweep_aws::{behavior, http_client};

/// The region of the local stack.
pub const LOCAL_REGION: &str = "us-east-1";
/// Both halves of the local stack's credentials.
pub const LOCAL_CREDENTIAL: &str = "test";

/// A local endpoint. The variables of whoever calls (a profile, another endpoint) change nothing.
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
