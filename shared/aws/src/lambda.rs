//! The SDKs' configuration in a function, from what Lambda puts into its environment
//! (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>).
//!
//! Not the SDKs' default chain: it looks for profiles, metadata services and single sign-on, of which a function has
//! none, and costs every binary their clients.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use super::{behavior, http_client};

/// As in the SDKs' defaults.
const CONNECT: Duration = Duration::from_millis(3100);

/// A variable of the environment.
pub(super) type Variable = fn(&str) -> Option<String>;

/// One configuration for every client of a function.
pub(super) fn config(variable: Variable) -> Result<SdkConfig, String> {
    let wanted = |name| variable(name).ok_or_else(|| format!("{name} is not set; Lambda sets it"));
    // Fixed for as long as the process lives: Lambda starts another one with the next credentials.
    let credentials = Credentials::new(
        wanted("AWS_ACCESS_KEY_ID")?,
        wanted("AWS_SECRET_ACCESS_KEY")?,
        variable("AWS_SESSION_TOKEN"),
        None,
        "Lambda",
    );
    Ok(SdkConfig::builder()
        .behavior_version(behavior())
        .region(Region::new(wanted("AWS_REGION")?))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).build())
        .http_client(http_client())
        .service_config(Endpoints(variable))
        .build())
}

/// `AWS_ENDPOINT_URL_EC2`, `AWS_ENDPOINT_URL`: how the local stack is reached
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>).
#[derive(Debug)]
struct Endpoints(Variable);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace([' ', '-'], "_");
        (self.0)(&format!("{}_{service}", key.env())).or_else(|| (self.0)(key.env()))
    }
}
