//! Our own events: make the leaderboard, the costs, the report and the summary.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, batch, bus_and_topics, ebs, ecs, log_to_stdout, results};
use spotsweep_control_plane::decide::SweepSettled;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&SweepSettled])?; // misconfiguration fails the cold start
    let deployment = &deployment.reaching(batch).reaching(ecs).reaching(ebs).reaching(bus_and_topics).reaching(results);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
