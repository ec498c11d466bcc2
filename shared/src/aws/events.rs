//! EventBridge: our own event, on the account's default bus.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;

use super::executor::Outcome;
use crate::event::{Event, OWN_SOURCE, SETTLING_DETAIL_TYPE, SettlingDetail};
use crate::ids::SweepId;

pub(super) async fn announce(client: &Client, sweep: SweepId) -> Outcome {
    let detail = serde_json::to_string(&SettlingDetail { sweep: sweep.to_string() })?;
    let entry =
        PutEventsRequestEntry::builder().source(OWN_SOURCE).detail_type(SETTLING_DETAIL_TYPE).detail(detail).build();
    let answer = client.put_events().entries(entry).send().await?;
    // PutEvents answers 200 even where it took nothing.
    if let Some(failed) = answer.entries().iter().find(|entry| entry.error_code().is_some()) {
        return Err(format!("{}: {}", failed.error_code().unwrap_or(""), failed.error_message().unwrap_or("")).into());
    }
    Ok(vec![Event::SettlingAnnounced(sweep)])
}
