//! Where the attempt runs, as the instance's metadata service tells it.

use aws_config::imds::Client;
use spotsweep::claim::{Machine, Market};

use crate::exit::{chain, say};

/// Asks IMDSv2 (facts 32). Not knowing the place is no reason not to train.
pub(crate) async fn find(imds: &Client) -> Machine {
    let instance = match imds.get("/latest/meta-data/instance-id").await {
        Ok(instance) => named(instance.as_ref()),
        Err(error) => {
            say(&format!("no instance metadata ({}); going on without", chain(&error)));
            return Machine::default();
        }
    };
    let ask = async |path: &str| imds.get(path).await.ok().and_then(|answer| named(answer.as_ref()));
    let life_cycle = ask("/latest/meta-data/instance-life-cycle").await;
    Machine {
        instance,
        zone: ask("/latest/meta-data/placement/availability-zone").await,
        instance_type: ask("/latest/meta-data/instance-type").await,
        market: life_cycle.map(|kind| if kind == "spot" { Market::Spot } else { Market::OnDemand }),
    }
}

fn named(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
