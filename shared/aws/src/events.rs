//! EventBridge's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use spotsweep_control_plane::calls::{CallError, EventBridge, EventEntry};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to EventBridge over its SDK.
#[derive(Debug)]
pub(super) struct EventBridgeSdk(Lazy<Client>);

impl EventBridgeSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl EventBridge for EventBridgeSdk {
    async fn put_events(&self, entry: EventEntry) -> Result<Vec<(String, String)>, CallError> {
        let EventEntry { source, detail_type, detail } = entry;
        let entry = PutEventsRequestEntry::builder().source(source).detail_type(detail_type).detail(detail).build();
        let answer = self.0.put_events().entries(entry).send().await.map_err(call_error)?;
        let entries = answer.entries.unwrap_or_default().into_iter();
        Ok(entries.filter_map(|entry| Some((entry.error_code?, entry.error_message.unwrap_or_default()))).collect())
    }
}
