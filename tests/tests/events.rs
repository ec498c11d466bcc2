//! Payloads as AWS documents them, and our own small ones, through `event::parse`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spotsweep::event::{self, Event};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// File name and what it parses to.
fn parsed(folder: &Path) -> Vec<(String, Result<Event, event::ParseError>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |file: &Path| file.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), event::parse(read(file)))).collect()
}

#[test]
fn our_own_event_files_are_what_their_names_say() {
    for (file, event) in parsed(&root().join("tests/events")) {
        let event = event.unwrap_or_else(|error| panic!("{file}: {error}"));
        let expected = match file.as_str() {
            "s3-object-created" => "sweep-uploaded",
            "batch-job-state-change" => "trial-job-changed",
            "trial-claim" => "trial-claimed",
            "sweep-settling" => "sweep-settling",
            "reconcile" => "reconcile-due",
            other => panic!("say here what {other} parses to"),
        };
        assert_eq!(event.name(), expected, "{file}");
    }
}

/// AWS's samples: jobs of other names and kinds that no function handles yet are counted as unknown.
#[test]
fn aws_samples_parse_or_are_unknown() {
    let folder = root().join("../shared/data/aws-events");
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
        return;
    }
    let mut unknown = 0;
    for (file, event) in parsed(&folder) {
        if file.starts_with("imds-") {
            assert!(event.is_err(), "{file} is no EventBridge event");
            continue;
        }
        let event = event.unwrap_or_else(|error| panic!("{file}: {error}"));
        match file.as_str() {
            "s3-object-created-eventbridge" => {
                let Event::SweepUploaded(upload) = event else { panic!("{event:?}") };
                assert_eq!((upload.bucket.as_str(), upload.key.as_str()), ("amzn-s3-demo-bucket1", "example-key"));
                assert_eq!(upload.version_id.as_deref(), Some("IYV3p45BT0ac8hjHg1houSdS1a.Mro8e"));
                assert_eq!((upload.size, upload.uploaded_at.to_string()), (Some(5), "2021-11-12T00:00:00Z".into()));
            }
            _ => {
                assert!(matches!(event, Event::Unknown { .. }), "{file}: {event:?}");
                unknown += 1;
            }
        }
    }
    assert!(unknown > 10, "only {unknown} samples seen");
}

/// The same Batch samples under one of our job names.
#[test]
fn aws_batch_samples_parse_to_what_they_say() {
    let folder = root().join("../shared/data/aws-events");
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
        return;
    }
    let ours = |file: &str| {
        let mut raw = read(&folder.join(format!("{file}.json")));
        raw["detail"]["jobName"] = "spotsweep-digits-0123456789ab-2".into();
        event::parse(raw).unwrap()
    };
    let Event::TrialJobChanged(failed) = ours("batch-array-child-failed") else { panic!("not a trial") };
    assert_eq!((failed.index, failed.seen.ended[0].exit_code), (20_013, Some(1)));
    assert_eq!(failed.seen.ended[0].reason.as_deref(), Some("Essential container in task exited"));

    let Event::TrialJobChanged(reclaimed) = ours("batch-array-child-spot-reclaimed-runnable") else {
        panic!("not a trial")
    };
    assert_eq!((reclaimed.index, reclaimed.seen.ended[0].exit_code), (20_007, None));
    assert!(reclaimed.seen.ended[0].reason.as_ref().unwrap().starts_with("Host EC2 (instance i-"));
    assert_eq!(reclaimed.seen.current, spotsweep::trial::Attempt::default(), "the next attempt has not begun");

    let Event::PartJobChanged(parent) = ours("batch-array-parent-failed") else { panic!("not a part") };
    assert_eq!((parent.part, parent.status.is_terminal()), (2, true));
    let Event::TrialJobChanged(plain) = ours("batch-job-state-change-runnable") else { panic!("not a trial") };
    assert!(plain.seen.ended.is_empty() && plain.seen.job.child.is_none());
}

/// Drops each field of each known event in turn, and replaces it by a value of another type: an
/// error or an event, never a panic.
#[test]
fn malformed_events_are_errors() {
    let mut tried = 0;
    for file in fs::read_dir(root().join("tests/events")).unwrap() {
        let whole = read(&file.unwrap().path());
        for pointer in pointers(&whole, "") {
            for value in [Value::Null, Value::from(-1), Value::from("x"), Value::Array(vec![]), serde_json::json!({})] {
                let mut broken = whole.clone();
                *broken.pointer_mut(&pointer).unwrap() = value;
                let _ = event::parse(broken);
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
    let no_detail = serde_json::json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": {} });
    assert!(event::parse(no_detail).is_err(), "a known kind without its detail is an error");
}

fn pointers(value: &Value, at: &str) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (format!("{at}/{key}"), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(key, value)| (format!("{at}/{key}"), value)).collect(),
        _ => Vec::new(),
    };
    children.into_iter().flat_map(|(at, value)| [vec![at.clone()], pointers(value, &at)].concat()).collect()
}
