//! CloudWatch Logs' wire: JSON 1.1. GetLogEvents reads what containers print, from the head of a stream on;
//! FilterLogEvents what rules have recorded (`filter`).
//!
//! A stream is the attempt's own file. Its lines have no times of their own: each gets the time of the newest (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html>).

mod filter;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, answer};
use crate::driver::Core;

/// What `X-Amz-Target` begins with.
pub(super) const VERSION: &str = "Logs_20140328.";
const GET: &str = "GetLogEvents";
const FILTER: &str = "FilterLogEvents";
/// Most events of one answer, as AWS has it.
const MOST_EVENTS: usize = 10_000;
/// Most bytes of one answer, as AWS has it.
const PAGE_BYTES: u64 = 1 << 20;
/// An unfinished line that stays so for this long is taken to be the last.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetLogEvents {
    log_group_name: String,
    log_stream_name: String,
    next_token: Option<String>,
    #[serde(default)]
    start_from_head: bool,
    /// 1 to 10 000 events.
    limit: Option<usize>,
    /// Milliseconds since 1970: the first event that is wanted.
    start_time: Option<u64>,
    /// Milliseconds since 1970: the first event that is not.
    end_time: Option<u64>,
}

/// A refusal: its code, and why.
type Refusal = (&'static str, String);

pub(super) fn call(core: &Arc<Core>, target: &str, body: &Bytes) -> Answer {
    let outcome = match target.strip_prefix(VERSION) {
        Some(GET) => serde_json::from_slice::<GetLogEvents>(body)
            // Also for members that are not emulated.
            .map_err(|error| ("SerializationException", error.to_string()))
            .and_then(|request| {
                check_group(core, &request)?;
                events(core.logs(), &request)
            }),
        Some(FILTER) => filter::filter(core, body),
        Some(_) | None => Err((
            "UnknownOperationException",
            format!("{target} is not known to spotsweep-emulator: it has {VERSION}{GET} and {VERSION}{FILTER}."),
        )),
    };
    Ok(match outcome {
        Ok(page) => answer(200, "application/x-amz-json-1.1", page.to_string()),
        Err((code, message)) => {
            answer(400, "application/x-amz-json-1.1", json!({ "__type": code, "message": message }).to_string())
        }
    })
}

/// A stream's name begins with the job definition's (Batch user guide, "Use the awslogs log driver").
fn check_group(core: &Arc<Core>, request: &GetLogEvents) -> Result<(), Refusal> {
    let definition = request.log_stream_name.split('/').next().unwrap_or_default();
    if core.with(|world, _now| world.is_log_group(definition, &request.log_group_name)) {
        return Ok(());
    }
    Err(("ResourceNotFoundException", "The specified log group does not exist.".to_owned()))
}

/// One page. The token is the place in the file: at the end it stays the same, as AWS's does.
fn events(logs: &Path, request: &GetLogEvents) -> Result<Value, Refusal> {
    let missing = || ("ResourceNotFoundException", "The specified log stream does not exist.".to_owned());
    let name = Path::new(&request.log_stream_name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(missing());
    }
    let offset = match &request.next_token {
        Some(token) => token.strip_prefix("f/").and_then(|offset| offset.parse().ok()),
        None => request.start_from_head.then_some(0),
    };
    let offset: u64 = offset.ok_or_else(|| {
        let message = "spotsweep-emulator reads forward only: give startFromHead, or the nextForwardToken before";
        ("InvalidParameterException", message.to_owned())
    })?;
    let limit = request.limit.unwrap_or(MOST_EVENTS);
    if !(1..=MOST_EVENTS).contains(&limit) {
        let message = format!("limit must be between 1 and {MOST_EVENTS}, not {limit}");
        return Err(("InvalidParameterException", message));
    }
    let (mut bytes, at) = page(&logs.join(name), offset).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => missing(),
        _ => ("ServiceUnavailableException", error.to_string()),
    })?;
    let millis = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    if let Some((last, _)) = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(limit - 1) {
        bytes.truncate(last + 1);
    }
    let is_wanted = request.start_time.is_none_or(|start| millis >= u128::from(start))
        && request.end_time.is_none_or(|end| millis < u128::from(end));
    let events: Vec<Value> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|_| is_wanted)
        .map(|line| String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']).to_owned())
        .map(|line| json!({ "timestamp": millis, "ingestionTime": millis, "message": line }))
        .collect();
    let next = offset + bytes.len() as u64;
    Ok(json!({ "events": events, "nextForwardToken": format!("f/{next}"), "nextBackwardToken": format!("b/{offset}") }))
}

/// Whole lines from `offset` on, and when the newest was written.
fn page(path: &Path, offset: u64) -> io::Result<(Vec<u8>, SystemTime)> {
    let mut file = File::open(path)?;
    let modified = file.metadata()?.modified()?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(PAGE_BYTES).read_to_end(&mut bytes)?;
    let is_quiet = modified.elapsed().is_ok_and(|since| since >= QUIET);
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        // A line longer than a page goes out in pieces.
        _ if bytes.len() as u64 == PAGE_BYTES && !bytes.contains(&b'\n') => {}
        Some(end) if bytes.len() as u64 == PAGE_BYTES || !is_quiet => bytes.truncate(end + 1),
        None if !is_quiet => bytes.clear(),
        Some(_) | None => {}
    }
    Ok((bytes, modified))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(logs: &Path, stream: &str, token: Option<&str>) -> Result<(Vec<String>, String), &'static str> {
        let next_token = token.map(str::to_owned);
        let request = GetLogEvents {
            log_group_name: "/aws/batch/job".to_owned(),
            log_stream_name: stream.to_owned(),
            next_token,
            start_from_head: token.is_none(),
            limit: None,
            start_time: None,
            end_time: None,
        };
        let page = events(logs, &request).map_err(|(code, _)| code)?;
        let lines =
            page["events"].as_array().unwrap().iter().map(|event| event["message"].as_str().unwrap().to_owned());
        Ok((lines.collect(), page["nextForwardToken"].as_str().unwrap().to_owned()))
    }

    #[test]
    fn a_stream_is_read_to_its_end_and_further() {
        let folder = std::env::temp_dir().join(format!("spotsweep-logs-{}", std::process::id()));
        let stream = folder.join("train/default/1");
        std::fs::create_dir_all(stream.parent().unwrap()).unwrap();
        std::fs::write(&stream, "one\r\ntwo\nthr").unwrap();
        let (lines, token) = read(&folder, "train/default/1", None).unwrap();
        assert_eq!(lines, ["one", "two"], "the third is not whole");
        assert_eq!(read(&folder, "train/default/1", Some(&token)).unwrap(), (vec![], token.clone()));
        std::fs::write(&stream, "one\r\ntwo\nthree").unwrap();
        let long_ago = std::fs::FileTimes::new().set_modified(SystemTime::now() - 2 * QUIET);
        File::options().write(true).open(&stream).unwrap().set_times(long_ago).unwrap();
        assert_eq!(read(&folder, "train/default/1", Some(&token)).unwrap().0, ["three"], "nothing more comes");
        for stream in ["train/default/2", "train/default", "../logs", "/etc/passwd"] {
            assert_eq!(read(&folder, stream, None), Err("ResourceNotFoundException"), "{stream}");
        }
        assert_eq!(read(&folder, "train/default/1", Some("b/0")), Err("InvalidParameterException"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
