//! Invoked by the runner: claims a trial, gets credentials, reports metrics and stalls, ends.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, access, bus_and_topics, drains, ebs, lines, log_to_stdout, tasks};
use spotsweep_control_plane::decide::TrialClaim;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&TrialClaim])?; // misconfiguration fails the cold start
    let deployment = deployment.reaching(lines).reaching(tasks).reaching(access).reaching(ebs).reaching(bus_and_topics);
    let deployment = &deployment.reaching(drains);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
