//! Reads events that an EventBridge rule has recorded in a log group of CloudWatch Logs: from there, or from the output
//! of `aws logs filter-log-events`.

use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::error::ProvideErrorMetadata;
use jiff::Timestamp;
use serde::Deserialize;
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

#[derive(Deserialize)]
struct Page {
    events: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    message: String,
    /// Milliseconds since 1970.
    ingestion_time: i64,
}

/// Reads a recording, oldest event first.
///
/// # Errors
/// The message says what is wrong, and with which line of the log group.
pub(super) fn read(text: &[u8]) -> Result<Vec<Recorded>, String> {
    let page: Page = serde_json::from_slice(text)
        .map_err(|error| format!("this is not what `aws logs filter-log-events --output json` prints: {error}"))?;
    if page.events.is_empty() {
        return Err("it has no events; is the log group right, and is the rule's resource policy in place?".to_owned());
    }
    sorted(&page.events)
}

/// Reads the log group, oldest event first. It is empty if nothing was recorded.
pub(super) async fn fetch(client: &Client, group: &str) -> Result<Vec<Recorded>, Failure> {
    let mut pages = client.filter_log_events().log_group_name(group).into_paginator().send();
    let mut lines = Vec::new();
    while let Some(page) = pages.next().await {
        let page = match page {
            // The local stack makes a group with its first event.
            Err(error) if error.code() == Some("ResourceNotFoundException") => break,
            page => page.context(|| format!("cannot read the log group {group} (logs:FilterLogEvents)"))?,
        };
        lines.extend(page.events().iter().filter_map(|event| {
            Some(Line { message: event.message()?.to_owned(), ingestion_time: event.ingestion_time()? })
        }));
    }
    sorted(&lines).map_err(|problem| Failure::new(format!("log group {group}: {problem}")))
}

fn sorted(lines: &[Line]) -> Result<Vec<Recorded>, String> {
    let mut recorded = Vec::new();
    for (number, line) in (1..).zip(lines) {
        recorded.push(one(line).map_err(|problem| format!("event {number}: {problem}"))?);
    }
    recorded.sort_by_key(|recorded| recorded.at);
    Ok(recorded)
}

fn one(line: &Line) -> Result<Recorded, String> {
    let event: Value =
        serde_json::from_str(&line.message).map_err(|error| format!("its message is no JSON: {error}"))?;
    let time =
        event.get("time").and_then(Value::as_str).ok_or("its message has no `time`: it is no EventBridge event")?;
    let at = time.parse().map_err(|error| format!("its time {time:?} cannot be read: {error}"))?;
    let received = Timestamp::from_millisecond(line.ingestion_time)
        .map_err(|error| format!("its ingestionTime {} cannot be read: {error}", line.ingestion_time))?;
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
    fn what_is_no_recording_is_refused() {
        for (text, part) in [
            ("[]", "filter-log-events"),
            (r#"{"events": []}"#, "no events"),
            (r#"{"events": [{"ingestionTime": 1, "message": "START RequestId"}]}"#, "event 1: its message is no JSON"),
            (r#"{"events": [{"ingestionTime": 1, "message": "{}"}]}"#, "event 1: its message has no `time`"),
            (
                r#"{"events": [{"ingestionTime": 1, "message": "{\"time\": \"today\"}"}]}"#,
                "event 1: its time \"today\"",
            ),
        ] {
            let refused = read(text.as_bytes());
            assert!(refused.as_ref().is_err_and(|problem| problem.contains(part)), "{text}: {refused:?}");
        }
    }
}
