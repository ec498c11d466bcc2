//! Our own events: collect the leaderboard, the costs, the report and the summary.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep::aws::Deployment;
use spotsweep::report::render;

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let deployment = &Deployment::from_env().await?.with_page(render); // misconfiguration fails the cold start
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
