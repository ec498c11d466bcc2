//! The only users of the AWS SDKs: the store in DynamoDB, the executor over S3, Batch, EC2, ECS
//! and EventBridge, and the reader behind the command line.

mod batch;
mod dynamodb;
mod ebs;
mod ecs;
mod emf;
mod events;
mod executor;
mod gather;
mod multipart;
mod origin;
mod prices;
mod reader;
mod s3;

use std::env;
use std::error::Error;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use jiff::Timestamp;
use serde_json::Value;

pub use dynamodb::DynamoStore;
pub use executor::{AwsExecutor, Page};
pub use reader::{Entry, ReadError, Reader};

use crate::event;
use crate::handle::handle;
use crate::settings::Settings;

/// Everything that one function needs, made once at cold start.
#[derive(Debug)]
pub struct Deployment {
    /// Stored state.
    pub store: DynamoStore,
    /// Effects.
    pub executor: AwsExecutor,
    /// Names and times.
    pub settings: Settings,
}

impl Deployment {
    /// Reads the environment that `infra/control-plane.yaml` gives to every function.
    ///
    /// # Errors
    /// Says which variable is missing: a misconfigured function fails its cold start.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub async fn from_env() -> Result<Self, String> {
        let variable = |name: &str| env::var(name).ok();
        let settings = Settings::from_variables(variable)?;
        let table =
            variable("SPOTSWEEP_TABLE").ok_or("SPOTSWEEP_TABLE is not set; infra/control-plane.yaml sets it")?;
        let retention_days = match variable("SPOTSWEEP_RETENTION_DAYS") {
            None => RETENTION_DAYS,
            Some(text) => {
                text.parse().map_err(|_| format!("SPOTSWEEP_RETENTION_DAYS is {text:?}; set a whole number"))?
            }
        };
        let config = sdk_config().await;
        let store = DynamoStore::new(&config, table, retention_days);
        Ok(Self { store, executor: AwsExecutor::new(&config), settings })
    }
}

impl Deployment {
    /// For the one function that draws reports.
    #[must_use]
    pub fn with_page(self, page: Page) -> Self {
        Self { executor: self.executor.with_page(page), ..self }
    }

    /// Handles what Lambda hands to a function, to its end, and gives the function's answer.
    ///
    /// # Errors
    /// An event that is none, or the first thing that failed: Lambda delivers again, and then to the DLQ.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub async fn respond(&self, raw: Value) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let event = event::parse(raw)?;
        let report = handle(&self.store, &self.executor, &self.settings, event, Timestamp::now()).await?;
        Ok(report.into_response())
    }
}

/// Days for which audit rows and finished records are kept, where the deployment does not say.
pub const RETENTION_DAYS: u32 = 90;

/// Configuration for every client of this process: one HTTP client, shared, because a cold start's
/// first call costs 8.8 ms with one client each and 3.8 ms with one for all; TLS by rustls and ring
/// (facts: toolchain, cold start).
pub async fn sdk_config() -> SdkConfig {
    let http = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(http).load().await
}
