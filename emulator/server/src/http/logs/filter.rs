//! FilterLogEvents for the log groups in which rules record events
//! (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>).

use serde::Deserialize;
use serde_json::{Value, json};

use super::{MOST_EVENTS, Refusal};
use crate::driver::Core;

/// The name of the stream. EventBridge's own streams have random names.
const STREAM: &str = "00000000-0000-4000-8000-000000000000";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilterLogEvents {
    log_group_name: String,
    next_token: Option<String>,
    /// The number of events, 1 to 10 000.
    limit: Option<usize>,
    /// The first wanted time, in milliseconds since 1970.
    start_time: Option<i64>,
}

/// Returns one page. Its token is the number of the next event, and is absent at the end, as on AWS.
pub(super) fn filter(core: &Core, body: &[u8]) -> Result<Value, Refusal> {
    let request: FilterLogEvents =
        serde_json::from_slice(body).map_err(|error| ("SerializationException", error.to_string()))?;
    let limit = request.limit.unwrap_or(MOST_EVENTS);
    if !(1..=MOST_EVENTS).contains(&limit) {
        let message = format!("limit must be between 1 and {MOST_EVENTS}, not {limit}");
        return Err(("InvalidParameterException", message));
    }
    let from = match &request.next_token {
        None => 0,
        Some(token) => token
            .parse()
            .map_err(|_| ("InvalidParameterException", "The specified nextToken is invalid.".to_owned()))?,
    };
    let lines = core.log_groups().page(&request.log_group_name, from, limit);
    let lines =
        lines.ok_or_else(|| ("ResourceNotFoundException", "The specified log group does not exist.".to_owned()))?;
    let next = (lines.len() == limit).then(|| (from + limit).to_string());
    let millis = |at: jiff::Timestamp| at.as_millisecond();
    let events =
        (from..).zip(lines).filter(|(_, line)| request.start_time.is_none_or(|start| millis(line.ingested) >= start));
    let event = |(number, line): (usize, crate::delivery::Line)| {
        json!({ "eventId": format!("{number:056}"), "logStreamName": STREAM, "message": line.message,
            "timestamp": millis(line.ingested), "ingestionTime": millis(line.ingested) })
    };
    let mut page = json!({ "events": events.map(event).collect::<Vec<_>>(), "searchedLogStreams": [] });
    if let Some(next) = next {
        page["nextToken"] = Value::String(next);
    }
    Ok(page)
}
