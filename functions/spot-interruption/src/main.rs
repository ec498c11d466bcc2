//! EC2's two announcements: an interruption notice, and a rebalance recommendation.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, ebs, log_to_stdout};
use spotsweep_control_plane::decide::SpotInterruption;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&SpotInterruption])?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(ebs);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
