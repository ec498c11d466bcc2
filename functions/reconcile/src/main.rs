//! Schedule: re-drive whatever an event did not.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep::aws::{Deployment, batch, bus, ebs, ecs, targets, uploads};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let deployment = Deployment::from_env()?; // misconfiguration fails the cold start
    let deployment =
        &deployment.reaching(uploads).reaching(targets).reaching(batch).reaching(ecs).reaching(ebs).reaching(bus);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
