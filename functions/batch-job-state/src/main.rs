//! Batch Job State Change: track the trial, settle the sweep.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, batch, bus, ebs, ecs, log_to_stdout};
use spotsweep_control_plane::decide::BatchJobState;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&BatchJobState])?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(batch).reaching(ecs).reaching(ebs).reaching(bus);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
