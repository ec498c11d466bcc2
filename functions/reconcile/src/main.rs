//! Schedule: repeats the work of overdue records.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use spotsweep_aws::{Deployment, batch, bus_and_topics, ebs, ecs, hosts, log_to_stdout, targets, uploads};
use spotsweep_control_plane::decide::{Reconcile, SweepUpload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log_to_stdout();
    let deployment = Deployment::from_env(&[&Reconcile, &SweepUpload])?; // misconfiguration fails the cold start
    let deployment = deployment.reaching(uploads).reaching(targets).reaching(batch).reaching(ecs).reaching(ebs);
    let deployment = &deployment.reaching(hosts).reaching(bus_and_topics);
    run(service_fn(move |raw: LambdaEvent<Value>| deployment.respond(raw.payload))).await
}
