//! EBS: a volume or a snapshot has changed its state.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, bus, ebs, log_to_stdout};
use spotsweep_control_plane::decide::EbsState;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&EbsState])?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(ebs).reaching(bus);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
