//! Where the attempt runs, as the instance's metadata service tells it.

use aws_config::imds::Client;

use crate::exit::{chain, say};

/// Both absent where there is no IMDS.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// `i-…`
    pub(crate) instance: Option<String>,
    /// Availability zone, such as `us-east-1a`.
    pub(crate) zone: Option<String>,
}

impl Place {
    /// Asks IMDSv2 (facts 32). Not knowing the place is no reason not to train.
    pub(crate) async fn find(imds: &Client) -> Self {
        match imds.get("/latest/meta-data/instance-id").await {
            Ok(instance) => Self {
                instance: named(instance.as_ref()),
                zone: imds
                    .get("/latest/meta-data/placement/availability-zone")
                    .await
                    .ok()
                    .and_then(|zone| named(zone.as_ref())),
            },
            Err(error) => {
                say(&format!("no instance metadata ({}); going on without", chain(&error)));
                Self::default()
            }
        }
    }
}

fn named(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
