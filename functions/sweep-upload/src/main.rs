//! S3 Object Created: validate, expand, plan, submit the array job.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, batch, bus, log_to_stdout, targets, uploads};
use spotsweep_control_plane::decide::SweepUpload;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&SweepUpload])?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(uploads).reaching(targets).reaching(batch).reaching(bus);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
