//! The SDKs' configuration in a function, from the environment variables that Lambda sets
//! (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>).
//!
//! The SDKs' default chain is not used. It looks for profiles, metadata services and single sign-on, which a function
//! does not have, and adds their clients to every binary.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use super::{behavior, http_client};

/// The SDKs' default connect timeout.
const CONNECT: Duration = Duration::from_millis(3100);

/// Reads a variable of the environment.
pub(super) type Variable = fn(&str) -> Option<String>;

/// Returns one configuration for all clients of a function.
pub(super) fn config(variable: Variable) -> Result<SdkConfig, String> {
    let wanted = |name| variable(name).ok_or_else(|| format!("{name} is not set; Lambda sets it"));
    // The credentials are the same for the life of the process, because Lambda starts another process with the next
    // ones.
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

/// The endpoints from `AWS_ENDPOINT_URL_EC2` and the like, or from `AWS_ENDPOINT_URL`. The functions reach the local
/// stack by them (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>).
#[derive(Debug)]
struct Endpoints(Variable);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace([' ', '-'], "_");
        (self.0)(&format!("{}_{service}", key.env())).or_else(|| (self.0)(key.env()))
    }
}
