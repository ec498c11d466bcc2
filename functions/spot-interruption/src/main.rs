//! EC2's two warnings: an interruption notice, and a recommendation to rebalance.

use jiff::Timestamp;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep::aws::Deployment;
use spotsweep::event;
use spotsweep::handle::handle;

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let deployment = &Deployment::from_env().await?; // misconfiguration fails the cold start
    run(service_fn(move |raw: LambdaEvent<Value>| async move {
        let event = event::parse(raw.payload)?;
        let Deployment { store, executor, settings } = deployment;
        let report = handle(store, executor, settings, event, Timestamp::now()).await?;
        Ok::<Value, Error>(report.into_response())
    }))
    .await
}
