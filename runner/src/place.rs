//! Where the attempt runs, from the instance's metadata service and the ECS agent.

use std::time::Duration;

use aws_config::imds::Client;
use aws_config::imds::client::error::ImdsError;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{Machine, Market, Task};
use tokio::time::{Instant, sleep, timeout};

use crate::log::say;

/// How long a service that does not answer is asked again. It limits packets per second for the whole instance, and
/// failures are common while containers start (EC2 user guide, "Instance metadata query throttling").
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
const NOT_FOUND: u16 = 404;
/// The agent's endpoint for this container; the ECS agent sets it in each one.
const TASK_METADATA: &str = "ECS_CONTAINER_METADATA_URI_V4";
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Asks IMDSv2 (fact 32). If it does not answer, the attempt still trains: the control plane may know the place.
pub(crate) async fn find(imds: &Client) -> Machine {
    let until = patience();
    let instance = ask(imds, "/latest/meta-data/instance-id", until).await;
    let zone = ask(imds, "/latest/meta-data/placement/availability-zone", until).await;
    if instance.is_none() || zone.is_none() {
        return Machine { instance, zone, ..Machine::default() };
    }
    let life_cycle = ask(imds, "/latest/meta-data/instance-life-cycle", until).await;
    Machine {
        instance,
        zone,
        instance_type: ask(imds, "/latest/meta-data/instance-type", until).await,
        market: life_cycle.map(|kind| if kind == "spot" { Market::Spot } else { Market::OnDemand }),
        ..Machine::default()
    }
}

/// The region, such as `us-east-1`.
pub(crate) async fn region(imds: &Client) -> Option<String> {
    ask(imds, "/latest/meta-data/placement/region", patience()).await
}

/// This attempt's ECS task and container, from the agent's endpoint for the container; `None` if there is none
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4-response.html>).
pub(crate) async fn task(connector: Connector) -> Option<Task> {
    let url = std::env::var(TASK_METADATA).ok().filter(|url| !url.is_empty())?;
    let until = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        let problem = match timeout(ANSWER_LIMIT, labels(&connector, &url)).await {
            Ok(Ok(labels)) => return named_task(&labels),
            Ok(Err(problem)) => problem,
            Err(_elapsed) => "no answer".to_owned(),
        };
        if Instant::now() + pause > until {
            say(&format!("the ECS agent does not say which task this is ({problem}); going on without"));
            return None;
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

async fn labels(connector: &Connector, url: &str) -> Result<Value, String> {
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(url.to_owned()).map_err(|_error| format!("{TASK_METADATA} is no URL"))?;
    let answer = connector.call(request).await.map_err(|error| error.to_string())?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("status {}", status.as_u16()));
    }
    let body = ByteStream::new(answer.into_body()).collect().await.map_err(|error| error.to_string())?;
    let mut described: Value = serde_json::from_slice(&body.into_bytes()).map_err(|error| error.to_string())?;
    Ok(described["Labels"].take())
}

fn named_task(labels: &Value) -> Option<Task> {
    let label = |name: &str| labels[format!("com.amazonaws.ecs.{name}")].as_str().map(str::to_owned);
    Some(Task { arn: label("task-arn")?, container: label("container-name")? })
}

/// On Spotsweep's instances only root can reach the service, so for other users each retry would fail.
fn patience() -> Instant {
    let is_root = rustix::process::geteuid().is_root();
    Instant::now() + if is_root { PATIENCE } else { Duration::ZERO }
}

/// One value, with retries after a failure; `None` if the service does not have it.
async fn ask(imds: &Client, path: &'static str, until: Instant) -> Option<String> {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match imds.get(path).await {
            Ok(answer) => return named(answer.as_ref()),
            Err(ImdsError::ErrorResponse(error)) if error.response().status().as_u16() == NOT_FOUND => return None,
            Err(error) => error,
        };
        if Instant::now() + pause > until {
            say(&format!("the metadata service does not say {path} ({}); going on without", chain(&error)));
            return None;
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

fn named(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
