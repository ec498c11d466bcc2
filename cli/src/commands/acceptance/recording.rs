//! Reads events that an EventBridge rule has recorded in a log group of CloudWatch Logs.

use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::error::ProvideErrorMetadata;
use jiff::Timestamp;
use serde_json::Value;

use spotsweep_protocol::failure::{Context, Failure};

/// One event, and when it arrived.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    /// The whole event with its envelope.
    pub(super) event: Value,
    /// The event's own `time`, to the second.
    pub(super) at: Timestamp,
    /// When CloudWatch Logs received it.
    pub(super) received: Timestamp,
}

/// Reads the log group, oldest event first. It is empty if nothing was recorded.
pub(super) async fn fetch(client: &Client, group: &str) -> Result<Vec<Recorded>, Failure> {
    let mut pages = client.filter_log_events().log_group_name(group).into_paginator().send();
    let mut recorded = Vec::new();
    while let Some(page) = pages.next().await {
        let page = match page {
            // The local stack makes a group with its first event.
            Err(error) if error.code() == Some("ResourceNotFoundException") => break,
            page => page.context(|| format!("cannot read the log group {group} (logs:FilterLogEvents)"))?,
        };
        for event in page.events() {
            let (Some(message), Some(received)) = (event.message(), event.ingestion_time()) else { continue };
            let one = one(message, received);
            recorded.push(one.map_err(|problem| Failure::new(format!("log group {group}: {problem}")))?);
        }
    }
    recorded.sort_by_key(|recorded| recorded.at);
    Ok(recorded)
}

/// Parses a line of the log group, which CloudWatch Logs has received so many milliseconds after 1970.
fn one(message: &str, received_ms: i64) -> Result<Recorded, String> {
    let event: Value = serde_json::from_str(message).map_err(|error| format!("{message} is no JSON: {error}"))?;
    let time = event.get("time").and_then(Value::as_str);
    let time = time.ok_or_else(|| format!("{message} has no `time`: it is no EventBridge event"))?;
    let at = time.parse().map_err(|error| format!("the time {time:?} cannot be read: {error}"))?;
    let received = Timestamp::from_millisecond(received_ms)
        .map_err(|error| format!("the ingestionTime {received_ms} cannot be read: {error}"))?;
    Ok(Recorded { event, at, received })
}

impl Recorded {
    /// Text at a JSON pointer. It is empty if there is none.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The envelope's `detail-type`.
    pub(super) fn kind(&self) -> &str {
        self.text("/detail-type")
    }

    /// Seconds from the event's time to its arrival. EventBridge cuts its times to the second.
    pub(super) fn delay_seconds(&self) -> f64 {
        self.received.duration_since(self.at).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_event_is_refused() {
        for (message, part) in
            [("START RequestId", "is no JSON"), ("{}", "has no `time`"), (r#"{"time": "today"}"#, "the time \"today\"")]
        {
            let refused = one(message, 1);
            assert!(refused.as_ref().is_err_and(|problem| problem.contains(part)), "{message}: {refused:?}");
        }
    }
}
