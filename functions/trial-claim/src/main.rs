//! Invoked by the runner: claim a trial, reach its bucket, report metrics, end.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep::aws::{Deployment, access, ebs, lines};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let deployment = Deployment::from_env()?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(lines).reaching(access).reaching(ebs);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
