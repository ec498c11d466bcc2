//! The only users of the AWS SDKs in the control plane: the store in DynamoDB, the calls that commands consist of, and
//! the reader for the command line. Nothing is decided here.
//!
//! Each service is a feature, so that a function's build compiles only the SDKs of the services that it uses.

#[cfg(feature = "batch")]
mod batch;
mod call_error;
#[cfg(feature = "s3")]
mod draw;
mod dynamodb;
#[cfg(feature = "ec2")]
mod ec2;
#[cfg(feature = "ecs")]
mod ecs;
mod emf;
#[cfg(feature = "eventbridge")]
mod events;
#[cfg(any(feature = "batch", feature = "ec2"))]
mod fields;
mod lambda;
mod lazy;
mod logs;
#[cfg(all(feature = "ec2", feature = "pricing", feature = "s3"))]
mod pricing;
mod reader;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "secretsmanager")]
mod secrets_manager;
mod services;
#[cfg(all(feature = "eventbridge", feature = "sns"))]
mod sns;
#[cfg(feature = "ssm")]
mod ssm;
#[cfg(feature = "sts")]
mod sts;
#[cfg(any(feature = "batch", feature = "ec2"))]
mod wait;

use std::env;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use jiff::Timestamp;
use serde_json::Value;

pub use dynamodb::DynamoStore;
pub use logs::log_to_stdout;
pub use reader::{ReadError, Reader};
#[cfg(feature = "s3")]
pub use s3::{is_gone, measure, path_style_s3};
#[cfg(feature = "sts")]
pub use services::access;
#[cfg(feature = "batch")]
pub use services::batch;
#[cfg(feature = "eventbridge")]
pub use services::bus;
#[cfg(all(feature = "eventbridge", feature = "sns"))]
pub use services::bus_and_topics;
#[cfg(all(feature = "batch", feature = "ecs"))]
pub use services::drains;
#[cfg(feature = "ec2")]
pub use services::ebs;
#[cfg(all(feature = "batch", feature = "ec2", feature = "ecs"))]
pub use services::hosts;
#[cfg(all(feature = "ec2", feature = "pricing", feature = "s3"))]
pub use services::results;
#[cfg(all(feature = "batch", feature = "ec2", feature = "secretsmanager", feature = "ssm"))]
pub use services::targets;
#[cfg(feature = "ecs")]
pub use services::{ecs, tasks};
#[cfg(feature = "s3")]
pub use services::{lines, uploads};

use spotsweep_control_plane::decide::Noun;
use spotsweep_control_plane::event::{self, Event};
use spotsweep_control_plane::execute::{Service, Services};
use spotsweep_control_plane::handle::{HandleError, Report, handle};
use spotsweep_control_plane::settings::Settings;
use spotsweep_protocol::cause::chain;

/// Everything that one function needs. The table's client is made at its cold start, and each other client at its first
/// use.
#[derive(Debug)]
pub struct Deployment {
    /// The stored state.
    pub store: DynamoStore,
    /// The services that execute commands.
    pub executor: Services<'static>,
    /// The nouns whose inputs this function decides.
    pub nouns: &'static [&'static dyn Noun],
    /// The deployment's names and times.
    pub settings: Settings,
    config: SdkConfig,
}

impl Deployment {
    /// Reads the environment that `infra/control-plane.yaml` gives to every function. The function uses its table, and
    /// the services that are added. It decides the inputs of its nouns and those that every function decides.
    ///
    /// # Errors
    /// Returns an error that names a missing variable, so that a misconfigured function fails its cold start.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_env(nouns: &'static [&'static dyn Noun]) -> Result<Self, String> {
        let variable: lambda::Variable = |name| env::var(name).ok();
        let settings = Settings::from_variables(variable)?;
        let table =
            variable("SPOTSWEEP_TABLE").ok_or("SPOTSWEEP_TABLE is not set; infra/control-plane.yaml sets it")?;
        let retention_days = match variable("SPOTSWEEP_RETENTION_DAYS") {
            None => RETENTION_DAYS,
            Some(text) => {
                text.parse().map_err(|_| format!("SPOTSWEEP_RETENTION_DAYS is {text:?}; set a whole number"))?
            }
        };
        let config = lambda::config(variable)?;
        let store = DynamoStore::new(&config, table, retention_days);
        Ok(Self { store, executor: Services::default(), nouns, settings, config })
    }

    /// Adds a service.
    #[must_use]
    pub fn reaching<S: Service + 'static>(self, open: impl FnOnce(&SdkConfig) -> S) -> Self {
        Self { executor: self.executor.reaching(open(&self.config)), ..self }
    }

    /// Handles completely what Lambda gives to a function, and returns the function's response.
    ///
    /// # Errors
    /// Returns the text of the first error with all causes, because Lambda uses only an error's own text. Lambda
    /// repeats the delivery, and then puts the event into the DLQ.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub async fn respond(&self, raw: Value) -> Result<Value, String> {
        let event = event::parse(raw).map_err(|error| chain(&error))?;
        let is_request = matches!(event, Event::TrialRequested(_));
        let handled = handle(&self.store, &self.executor, self.nouns, &self.settings, event, Timestamp::now()).await;
        handled.map(Report::into_response).map_err(|error| match error {
            // The sender of the request has proved nothing yet, and the cause may name records and roles. It is in the
            // log.
            HandleError::Load(_) if is_request => {
                "a record could not be read: the function's log has the cause".to_owned()
            }
            HandleError::Load(_)
            | HandleError::Commit(..)
            | HandleError::Execute(_)
            | HandleError::Illegal(_)
            | HandleError::Steps => chain(&error),
        })
    }
}

/// Days for which audit entries and finished records are kept, if the deployment does not say.
pub const RETENTION_DAYS: u32 = 90;

/// Loads the configuration for all clients of a process from the user's environment, profiles or roles.
pub async fn sdk_config() -> SdkConfig {
    aws_config::defaults(behavior()).http_client(http_client()).load().await
}

/// Returns one HTTP client for all clients of a process. A cold start's first call takes 8.8 ms with one for each
/// client and 3.8 ms with one for all. TLS is rustls with ring, because aws-lc's jitter entropy takes 30 ms of every
/// cold start.
pub fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

/// Returns the version of the SDKs' defaults. It is fixed, so that an update of an SDK does not change behaviour by
/// itself.
pub fn behavior() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}
