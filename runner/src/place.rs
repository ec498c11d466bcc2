//! Where the attempt runs, as the instance's metadata service says.

use std::time::Duration;

use aws_config::imds::Client;
use aws_config::imds::client::error::ImdsError;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{Machine, Market};
use tokio::time::{Instant, sleep};

use crate::log::say;

/// How long a service that does not answer is asked again: it limits packets per second for the whole instance, and
/// misses are common while containers start (EC2 user guide, "Instance metadata query throttling").
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
const NOT_FOUND: u16 = 404;

/// Asks IMDSv2 (fact 32). Not knowing the place is no reason not to train: the control plane may know it.
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
        defect: None,
    }
}

/// The region, such as `us-east-1`.
pub(crate) async fn region(imds: &Client) -> Option<String> {
    ask(imds, "/latest/meta-data/placement/region", patience()).await
}

/// On instances of ours the service is root's alone, so anyone else is refused every time.
fn patience() -> Instant {
    let is_root = rustix::process::geteuid().is_root();
    Instant::now() + if is_root { PATIENCE } else { Duration::ZERO }
}

/// One value, asked for again after a miss; `None` where the service does not have it.
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
