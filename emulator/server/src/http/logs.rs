//! The wire protocol of CloudWatch Logs, JSON 1.1. GetLogEvents reads the output of containers, from the start of a
//! stream on. FilterLogEvents reads the events that rules have recorded (`filter`).
//!
//! A stream is the attempt's own file. Its lines have no times of their own, so each gets the time of the newest
//! (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html>).

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

/// The prefix of `X-Amz-Target`.
pub(super) const VERSION: &str = "Logs_20140328.";
const GET: &str = "GetLogEvents";
const FILTER: &str = "FilterLogEvents";
/// The most events of one answer, as on AWS.
const MOST_EVENTS: usize = 10_000;
/// The most bytes of one answer, as on AWS.
const PAGE_BYTES: u64 = 1 << 20;
/// The time after which an unchanged, unfinished line counts as the last one.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetLogEvents {
    log_group_name: String,
    log_stream_name: String,
    next_token: Option<String>,
    #[serde(default)]
    start_from_head: bool,
    /// The number of events, 1 to 10 000.
    limit: Option<usize>,
    /// The first wanted time, in milliseconds since 1970.
    start_time: Option<u64>,
    /// The first time that is no longer wanted, in milliseconds since 1970.
    end_time: Option<u64>,
}

/// A refusal: its code and its reason.
type Refusal = (&'static str, String);

pub(super) fn call(core: &Arc<Core>, target: &str, body: &Bytes) -> Answer {
    let outcome = match target.strip_prefix(VERSION) {
        Some(GET) => serde_json::from_slice::<GetLogEvents>(body)
            // Members that are not emulated are refused too.
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

/// Checks the group. A stream's name begins with the job definition's name (Batch user guide, "Use the awslogs log
/// driver").
fn check_group(core: &Arc<Core>, request: &GetLogEvents) -> Result<(), Refusal> {
    let definition = request.log_stream_name.split('/').next().unwrap_or_default();
    if core.with(|world, _now| world.is_log_group(definition, &request.log_group_name)) {
        return Ok(());
    }
    Err(("ResourceNotFoundException", "The specified log group does not exist.".to_owned()))
}

/// Returns one page. Its token is the position in the file, which stays the same at the end, as on AWS.
fn events(logs: &Path, request: &GetLogEvents) -> Result<Value, Refusal> {
    let missing = || ("ResourceNotFoundException", "The specified log stream does not exist.".to_owned());
    let name = Path::new(&request.log_stream_name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(missing());
    }
    let path = logs.join(name);
    let limit = request.limit.unwrap_or(MOST_EVENTS);
    if !(1..=MOST_EVENTS).contains(&limit) {
        let message = format!("limit must be between 1 and {MOST_EVENTS}, not {limit}");
        return Err(("InvalidParameterException", message));
    }
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => missing(),
        _ => ("ServiceUnavailableException", error.to_string()),
    };
    let place = place(request).ok_or_else(|| {
        let message = "The specified nextToken is invalid.";
        ("InvalidParameterException", message.to_owned())
    })?;
    let offset = match place {
        Place::From(offset) => offset,
        Place::Before(end) => beginning(&path, end, limit).map_err(unreadable)?,
    };
    let (mut bytes, at) = page(&path, offset).map_err(unreadable)?;
    if let Place::Before(Some(end)) = place {
        bytes.truncate(usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX));
    }
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

/// The position of a page.
#[derive(Clone, Copy)]
enum Place {
    /// The events from a position in the file on.
    From(u64),
    /// The events before a position in the file; without one, the newest.
    Before(Option<u64>),
}

/// Returns the position of the wanted page: from the start on or after a token; otherwise the newest events, or those
/// before a token.
fn place(request: &GetLogEvents) -> Option<Place> {
    match &request.next_token {
        None if request.start_from_head => Some(Place::From(0)),
        None => Some(Place::Before(None)),
        Some(token) => match token.split_once('/')? {
            ("f", offset) => Some(Place::From(offset.parse().ok()?)),
            ("b", offset) => Some(Place::Before(Some(offset.parse().ok()?))),
            _other => None,
        },
    }
}

/// Returns where the last `lines` lines before a position in the file begin, or before the end of its last whole line.
/// They are one page at most.
fn beginning(path: &Path, end: Option<u64>, lines: usize) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let is_quiet = is_quiet(file.metadata()?.modified()?);
    let end = end.unwrap_or(file.metadata()?.len());
    let from = end.saturating_sub(PAGE_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(end - from).read_to_end(&mut bytes)?;
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) if last + 1 == bytes.len() || !is_quiet => last,
        Some(_) | None => bytes.len(),
    };
    let breaks = bytes[..whole].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let begin = breaks.map(|(place, _)| place + 1).nth(lines - 1);
    // The bytes begin with a part of a line, unless they begin at the file's start.
    let first_whole = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    let begin = begin.unwrap_or(if from == 0 { 0 } else { first_whole });
    Ok(from + begin as u64)
}

/// Returns whole lines from `offset` on, and the time of the newest one.
fn page(path: &Path, offset: u64) -> io::Result<(Vec<u8>, SystemTime)> {
    let mut file = File::open(path)?;
    let modified = file.metadata()?.modified()?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(PAGE_BYTES).read_to_end(&mut bytes)?;
    let is_quiet = is_quiet(modified);
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        // A line longer than a page is returned in pieces.
        _ if bytes.len() as u64 == PAGE_BYTES && !bytes.contains(&b'\n') => {}
        Some(end) if bytes.len() as u64 == PAGE_BYTES || !is_quiet => bytes.truncate(end + 1),
        None if !is_quiet => bytes.clear(),
        Some(_) | None => {}
    }
    Ok((bytes, modified))
}

/// Whether an unfinished line counts as the last one.
fn is_quiet(modified: SystemTime) -> bool {
    modified.elapsed().is_ok_and(|since| since >= QUIET)
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

    /// The test reads pages of two lines from the end to the start, and from the end on.
    #[test]
    fn a_stream_is_read_backwards() {
        let folder = std::env::temp_dir().join(format!("spotsweep-logs-back-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("s"), "1\n2\n3\n4\n5\n").unwrap();
        let page = |next_token: Option<String>, start_from_head| {
            let request = GetLogEvents {
                log_group_name: "/aws/batch/job".to_owned(),
                log_stream_name: "s".to_owned(),
                next_token,
                start_from_head,
                limit: Some(2),
                start_time: None,
                end_time: None,
            };
            let page = events(&folder, &request).unwrap();
            let lines: Vec<String> =
                page["events"].as_array().unwrap().iter().map(|event| event["message"].to_string()).collect();
            let token = |name: &str| page[name].as_str().unwrap().to_owned();
            (lines.concat(), token("nextBackwardToken"), token("nextForwardToken"))
        };
        let (newest, back, forth) = page(None, false);
        let (middle, back, _) = page(Some(back), false);
        let (first, back, _) = page(Some(back), false);
        let (none, end, _) = page(Some(back.clone()), false);
        assert_eq!([newest, middle, first, none], ["\"4\"\"5\"", "\"2\"\"3\"", "\"1\"", ""]);
        assert_eq!(back, end, "at the beginning the token stays the same");
        assert_eq!(page(Some(forth), true).0, "", "nothing has come since");
        std::fs::remove_dir_all(&folder).unwrap();
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
        assert_eq!(read(&folder, "train/default/1", Some("x/0")), Err("InvalidParameterException"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
