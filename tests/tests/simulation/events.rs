//! Events with the members that AWS documents, and the control plane's own events, are parsed by `event::parse`.

use std::fs;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use spotsweep_control_plane::event::{self, Event, Job, ResourceChange};
use spotsweep_control_plane::input::Input;
use spotsweep_protocol::claim::NoticeKind;
use spotsweep_records::trial::Reason;
use spotsweep_records::workspace::{SnapshotState, is_of_key};
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::run::{Chaos, Simulation};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The events in a folder, by file name, and what each is parsed to.
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
            "sweep-keeping" => "sweep-keeping",
            "sweep-settling" => "sweep-settling",
            "reconcile" => "reconcile-due",
            "ec2-spot-interruption-warning" | "ec2-rebalance-recommendation" => "instance-noticed",
            "ebs-volume-available" | "ebs-snapshot-succeeded" => "resource-changed",
            other => panic!("say here what {other} parses to"),
        };
        assert_eq!(Input::from(event).about().name, expected, "{file}");
    }
}

/// Events that were invoked by hand, or that belong to another deployment in the account, change nothing.
#[tokio::test]
async fn what_is_not_of_this_deployment_changes_nothing() {
    let mut harness = Harness::new(0);
    let dropped = harness.put("own.yaml", "spotsweep: {workspace: off}\ntrials: [{lr: 1}]\n");
    let mut foreign = dropped.clone();
    foreign["detail"]["bucket"]["name"] = json!("of-somebody-else");
    let report = harness.deliver(&foreign).await.unwrap();
    assert!(report.steps[0].contains("\"of-somebody-else\" is not this deployment's"), "{:?}", report.steps);
    assert_eq!(harness.store.state(), (vec![], vec![]), "refused before anything is stored");
    assert!(harness.calls.take().iter().all(|call| call.action == "GetItem"));

    harness.deliver(&dropped).await.unwrap();
    let events = harness.run_jobs(|_| (60, 0));
    let of_batch: Vec<&Value> = events.iter().filter(|event| event["source"] == "aws.batch").collect();
    harness.deliver(of_batch[2]).await.unwrap();
    let before = harness.store.state();
    let own = before.0[0].id.to_string();
    let terminal = (*of_batch.last().unwrap()).clone();
    let with = |member: &str, value: &str| {
        let mut event = terminal.clone();
        event["detail"][member] = json!(value);
        event
    };
    let other = own.replace(|letter: char| letter.is_ascii_digit(), "0");
    let resource = |kind: &str, detail: Value| {
        let mut event = terminal.clone();
        event["source"] = json!("aws.ec2");
        (event["detail-type"], event["detail"], event["resources"]) = (json!(kind), detail, json!([]));
        event
    };
    let made = |event: &str, id: &str| json!({ "event": event, "result": "available", "snapshot_id": id });
    let mut settling = resource("Sweep Settling", json!({ "sweep": other }));
    settling["source"] = json!("spotsweep");
    let foreign = [
        with("jobId", "11111111-2222-3333-4444-555555555555"),
        with("jobName", &format!("spotsweep-{other}-0")),
        with("jobName", &format!("spotsweep-{own}-0r1")),
        with("jobName", "train"),
        resource("EC2 Spot Instance Interruption Warning", json!({ "instance-id": "i-00000000000000001" })),
        resource("EBS Volume Notification", made("createVolume", "vol-00000000000000001")),
        settling,
    ];
    for event in &foreign {
        harness.deliver(event).await.unwrap_or_else(|error| panic!("{event}: {error}"));
        harness.deliver_announced().await.unwrap();
        assert_eq!(harness.store.state(), before, "{event}");
    }
}

/// AWS's sample events are unknown: their jobs have other names, or no function handles their kind.
#[test]
fn events_with_the_members_of_aws_parse_or_are_unknown() {
    let folder = root().join("tests/data/aws-events");
    let mut unknown = 0;
    let change_of = |id: &str, change| (id.to_owned(), change);
    for (file, event) in parsed(&folder) {
        if file.starts_with("imds-") {
            assert!(event.is_err(), "{file} is no EventBridge event");
            continue;
        }
        let event = event.unwrap_or_else(|error| panic!("{file}: {error}"));
        match file.as_str() {
            "s3-object-created-eventbridge" => {
                let Event::SweepUploaded(upload) = event else { panic!("{event:?}") };
                assert_eq!(
                    (upload.bucket.as_str(), upload.key.as_str()),
                    ("amzn-s3-demo-bucket", "sweeps/digits.yaml")
                );
                assert_eq!(upload.version_id.as_deref(), Some("Qm7xT2nVw0pLk9sJd4fGh1aZc8eRb5Yu"));
                assert_eq!((upload.size, upload.uploaded_at.to_string()), (Some(21), "2026-03-14T15:09:26Z".into()));
            }
            "ec2-spot-interruption-warning" | "ec2-rebalance-recommendation" => {
                let Event::InstanceNoticed { instance, kind } = event else { panic!("{file}: {event:?}") };
                assert!(instance.starts_with("i-"), "{instance}");
                assert_eq!(kind == NoticeKind::Interruption, file.contains("interruption"));
            }
            "ebs-createVolume-available"
            | "ebs-createVolume-failed"
            | "ebs-deleteVolume-deleted"
            | "ebs-createSnapshot-succeeded" => {
                let Event::ResourceChanged { id, change } = event else { panic!("{file}: {event:?}") };
                let expected = match file.as_str() {
                    "ebs-createVolume-available" => change_of("vol-0b953a8357dbed143", ResourceChange::VolumeMade),
                    "ebs-createVolume-failed" => {
                        // The event names a disabled key. The cause decides whether creating another volume is worth a
                        // try.
                        let ResourceChange::VolumeFailed(cause) = &change else { panic!("{change:?}") };
                        assert!(is_of_key(cause), "{cause}");
                        change_of("vol-0b953a8357dbed143", ResourceChange::VolumeFailed(cause.clone()))
                    }
                    "ebs-deleteVolume-deleted" => change_of("vol-0b953a8357dbed143", ResourceChange::VolumeDeleted),
                    _ => change_of("snap-04f28c1dc006f68ef", ResourceChange::SnapshotEnded(SnapshotState::Completed)),
                };
                assert_eq!((id, change), expected, "{file}");
            }
            _ => {
                assert!(matches!(event, Event::Unknown { .. }), "{file}: {event:?}");
                unknown += 1;
            }
        }
    }
    assert!(unknown > 5, "only {unknown} of them seen");
}

/// The same events of Batch, with one of our job names.
#[test]
fn batch_events_parse_to_what_they_say() {
    let folder = root().join("tests/data/aws-events");
    let ours = |file: &str| {
        let mut raw = read(&folder.join(format!("{file}.json")));
        raw["detail"]["jobName"] = "spotsweep-digits-0123456789ab-2".into();
        event::parse(raw).unwrap()
    };
    let Event::JobChanged(Job::Trial(failed)) = ours("batch-array-child-failed") else { panic!("not a trial") };
    assert_eq!((failed.index, failed.seen.ended[0].exit_code), (20_013, Some(1)));
    assert_eq!(failed.seen.ended[0].reason.as_ref().map(Reason::of_batch), Some("Essential container in task exited"));

    let Event::JobChanged(Job::Trial(reclaimed)) = ours("batch-array-child-spot-reclaimed-runnable") else {
        panic!("not a trial")
    };
    assert_eq!((reclaimed.index, reclaimed.seen.ended[0].exit_code), (20_007, None));
    assert!(reclaimed.seen.ended[0].reason.as_ref().unwrap().of_batch().starts_with("Host EC2 (instance i-"));
    assert_eq!(reclaimed.seen.current, spotsweep_records::trial::Attempt::default(), "the next attempt has not begun");

    let Event::JobChanged(Job::Part(parent)) = ours("batch-array-parent-failed") else { panic!("not a part") };
    assert_eq!((parent.part, parent.status.is_terminal()), (2, true));
    let Event::JobChanged(Job::Trial(plain)) = ours("batch-job-state-change-runnable") else { panic!("not a trial") };
    assert!(plain.seen.ended.is_empty() && plain.seen.job.child.is_none());
}

/// If a field of a known event is missing or has another type, `parse` returns an error or an event, and never panics.
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

/// Other people's jobs with names and ids like ours, and objects that S3 cannot have, are errors or foreign events.
#[tokio::test]
async fn what_mimics_our_names_overflows_nothing() {
    let harness = Harness::new(1);
    let job = read(&root().join("tests/events/batch-job-state-change.json"));
    let numbers = ["0", "1", "99", "100", "429496", "429497", "4294967295", "4294967296", "99999999999999999999", "-1"];
    let mut tried = 0;
    for first in numbers {
        for second in numbers {
            let names =
                [format!("spotsweep-a-0123456789ab-{first}"), format!("spotsweep-a-0123456789ab-{first}r{second}")];
            for name in names {
                let mut raw = job.clone();
                raw["detail"]["jobName"] = name.into();
                raw["detail"]["jobId"] = format!("0f:{second}").into();
                for (status, time) in
                    [("RUNNABLE", 0), ("STARTING", 1), ("RUNNING", 1), ("FAILED", i64::MAX), ("SUCCEEDED", i64::MIN)]
                {
                    raw["detail"]["status"] = status.into();
                    raw["detail"]["startedAt"] = time.into();
                    if event::parse(raw.clone()).is_ok() {
                        harness.deliver(&raw).await.unwrap_or_else(|error| panic!("{raw}: {error}"));
                    }
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 1000);
    let upload = read(&root().join("tests/events/s3-object-created.json"));
    for field in ["key", "etag", "version-id", "sequencer"] {
        let mut raw = upload.clone();
        raw["detail"]["object"][field] = "x".repeat(100_000).into();
        assert!(event::parse(raw).is_err(), "{field}");
    }
}

fn pointers(value: &Value, at: &str) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (format!("{at}/{key}"), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(key, value)| (format!("{at}/{key}"), value)).collect(),
        _ => Vec::new(),
    };
    children.into_iter().flat_map(|(at, value)| [vec![at.clone()], pointers(value, &at)].concat()).collect()
}

/// EC2's and EBS's events with missing fields, with fields of other types, or about other people's instances are errors
/// or are ignored. The record of a running trial does not change.
#[tokio::test]
async fn ten_thousand_mutated_ec2_events_change_nothing() {
    let account = Account { workspace_gib: 20, ..Account::default() };
    let mut simulation = Simulation::new(1, &account, Chaos::none(), "- {a: 1}\n");
    simulation.run_until(|simulation| !simulation.watch.resumes.is_empty()).unwrap();
    let harness = &simulation.harness;
    let (sweeps, trials) = harness.store.state();
    let workspace = trials[0].workspace.clone().unwrap();
    let ours: Vec<String> = workspace.resources().map(str::to_owned).collect();
    let instance = workspace.wanted.unwrap().instance;
    let volume = workspace.volume.id.unwrap();

    let mut bases = Vec::new();
    for file in [
        "ec2-spot-interruption-warning",
        "ec2-rebalance-recommendation",
        "ebs-volume-available",
        "ebs-snapshot-succeeded",
    ] {
        let foreign = read(&root().join(format!("tests/events/{file}.json")));
        let text =
            foreign.to_string().replace("i-1234567890abcdef0", &instance).replace("vol-1234567890abcdef0", &volume);
        bases.extend([foreign, serde_json::from_str(&text).unwrap()]);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut errors, mut ignored, mut meant) = (0, 0, 0);
    for _ in 0..10_000 {
        let mut raw = bases[rng.next_u32() as usize % bases.len()].clone();
        for _ in 0..=rng.next_u32() % 3 {
            mutate(&mut raw, &mut rng);
        }
        match event::parse(raw.clone()) {
            Err(_) => errors += 1,
            // The event is still complete, and about our instance or volume, so it is no mutation.
            Ok(Event::InstanceNoticed { instance: id, .. } | Event::ResourceChanged { id, .. })
                if ours.contains(&id) =>
            {
                meant += 1;
            }
            Ok(event) => {
                let report = harness.deliver(&raw).await.unwrap_or_else(|error| panic!("{event:?}: {error}"));
                assert!(report.steps.iter().all(|step| step.contains("ignored, ")), "{:?}", report.steps);
                ignored += 1;
            }
        }
    }
    assert_eq!(harness.store.state(), (sweeps, trials));
    println!("{errors} errors, {ignored} ignored with a reason, {meant} still meant what they said");
    assert!(errors > 1000 && ignored > 1000, "{errors} {ignored} {meant}");
}

/// Removes a field, or replaces it by something else.
fn mutate(value: &mut Value, rng: &mut ChaCha8Rng) {
    let pointers = pointers(value, "");
    let Some(pointer) = pointers.get(rng.next_u32() as usize % pointers.len().max(1)) else { return };
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    if rng.next_u32().is_multiple_of(3) {
        if let Some(map) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
            map.remove(key);
        }
        return;
    }
    let Some(field) = value.pointer_mut(pointer) else { return };
    *field = match (rng.next_u32() % 7, field.as_str()) {
        (0, Some(text)) => Value::from(text.chars().take(text.chars().count() / 2).collect::<String>()),
        (1, Some(text)) => Value::from(text.replace('0', "g")),
        (2, Some(text)) => Value::from(format!("{text}\u{0}/../*")),
        (3, _) => Value::from("i-00000000000000000"),
        (4, _) => Value::Null,
        (5, _) => json!([1, {}]),
        _ => Value::from(-1),
    };
}
