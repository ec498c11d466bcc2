//! Tests of CreateSnapshot: what it contains, how long it takes, and how it can fail.

use std::time::Duration;

use serde_json::json;
use spotsweep_world::ebs::{CreateVolume, FileSystem};
use spotsweep_world::{Filter, Selection};

use crate::lab::Lab;

const A: &str = "us-east-1a";
const B: &str = "us-east-1b";
const MIB: usize = 1 << 20;

/// Returns an instance and a volume that is attached to it.
fn attached(lab: &mut Lab, zone: &str) -> (String, String) {
    let (host, volume) = (lab.host(zone), lab.volume(zone));
    lab.attach(&volume, &host);
    (host, volume)
}

#[test]
fn a_snapshot_shows_the_moment_of_its_request() {
    let mut lab = Lab::new(100);
    let (host, volume) = attached(&mut lab, A);
    let write = |lab: &mut Lab, volume: &str, host: &str, text: &str| {
        lab.world.write_file(volume, host, "checkpoints/last", text).unwrap();
    };
    write(&mut lab, &volume, &host, "epoch 1");
    let snapshot = lab.try_snapshot(&volume).unwrap();
    write(&mut lab, &volume, &host, "epoch 2");
    lab.pass(10_000);
    let copy = lab.restore(&snapshot, B);
    let other = lab.host(B);
    assert!(lab.world.file_system(&copy, &other).is_err(), "not attached");
    lab.attach(&copy, &other);
    assert_eq!(lab.world.file_system(&copy, &other).unwrap().content("checkpoints/last"), Some(&b"epoch 1"[..]));
    write(&mut lab, &copy, &other, "epoch 9");
    assert_eq!(lab.world.files_of_snapshot(&snapshot).content("checkpoints/last"), Some(&b"epoch 1"[..]));
    assert_eq!(lab.world.files_of_volume(&volume).content("checkpoints/last"), Some(&b"epoch 2"[..]));
    assert_eq!(lab.world.volume(&copy).unwrap().size_gib, 10, "the snapshot's size");
}

#[test]
fn only_what_changed_since_the_latest_of_the_lineage_is_copied() {
    let mut lab = Lab::new(100);
    let (host, volume) = attached(&mut lab, A);
    let put = |lab: &mut Lab, volume: &str, host: &str, name: &str, fill: u8| {
        lab.world.write_file(volume, host, name, vec![fill; 10 * MIB]).unwrap();
    };
    let changed = |lab: &Lab, id: &str| lab.world.snapshot_of(id).unwrap().changed_bytes.unwrap() as usize / MIB;
    put(&mut lab, &volume, &host, "dataset", 1);
    put(&mut lab, &volume, &host, "checkpoint", 1);
    let first = lab.try_snapshot(&volume).unwrap();
    let took = lab.world.snapshot_of(&first).unwrap();
    let took = took.completes_at.unwrap().duration_since(took.started_at).unsigned_abs();
    assert_eq!(took, Duration::from_millis(400), "0.3 s and 20 MiB at 200 MiB/s");
    lab.pass(200);
    let shown = lab.world.describe_snapshots(&Selection { ids: vec![first.clone()], ..Selection::default() });
    assert_eq!(shown.unwrap().0[0].state.as_str(), "pending");
    lab.pass(200);
    put(&mut lab, &volume, &host, "checkpoint", 2);
    let second = lab.snapshot(&volume);
    assert_eq!((changed(&lab, &first), changed(&lab, &second)), (20, 10));
    // After a migration to another zone, it is still incremental (fact 4).
    let copy = lab.restore(&second, B);
    let other = lab.host(B);
    lab.attach(&copy, &other);
    let third = lab.snapshot(&copy);
    put(&mut lab, &copy, &other, "checkpoint", 3);
    let fourth = lab.snapshot(&copy);
    assert_eq!((changed(&lab, &third), changed(&lab, &fourth)), (0, 10));
    // Without any snapshot of its lineage everything has to be copied again.
    for id in [&first, &second, &third, &fourth] {
        lab.world.delete_snapshot(id).unwrap();
    }
    let fifth = lab.snapshot(&copy);
    assert_eq!(changed(&lab, &fifth), 20);
}

#[test]
fn a_later_snapshot_is_copied_after_the_earlier_ones() {
    let mut lab = Lab::new(100);
    let (host, volume) = attached(&mut lab, A);
    lab.world.write_file(&volume, &host, "first", vec![1; 40 * MIB]).unwrap();
    let first = lab.try_snapshot(&volume).unwrap();
    lab.world.write_file(&volume, &host, "second", vec![2; 20 * MIB]).unwrap();
    let second = lab.try_snapshot(&volume).unwrap();
    let third = lab.try_snapshot(&volume).unwrap();
    let took = |id: &str| {
        let snapshot = lab.world.snapshot_of(id).unwrap();
        snapshot.completes_at.unwrap().duration_since(snapshot.started_at).unsigned_abs()
    };
    // The first takes 0.3 s and 40 MiB at 200 MiB/s. The second has 20 MiB more. The third has nothing more, but does
    // not complete before it.
    assert_eq!([&first, &second, &third].map(|id| took(id).as_millis()), [500, 600, 600]);
}

#[test]
fn a_prepared_snapshot_is_there_from_the_start() {
    let mut lab = Lab::new(100);
    let snapshot = lab.world.prepare_snapshot(30, FileSystem::of([("dataset".to_owned(), vec![7; 5])]));
    let (copy, host) = (lab.restore(&snapshot, B), lab.host(B));
    lab.attach(&copy, &host);
    assert_eq!(lab.world.file_system(&copy, &host).unwrap().content("dataset"), Some(&[7; 5][..]));
    assert_eq!(lab.world.volume(&copy).unwrap().size_gib, 30);
    let next = lab.snapshot(&copy);
    assert_eq!(lab.world.snapshot_of(&next).unwrap().changed_bytes, Some(0), "incremental to what it came from");
}

#[test]
fn a_restored_volume_loads_its_bytes_lazily() {
    let mut lab = Lab::new(100);
    let (host, volume) = attached(&mut lab, A);
    lab.world.write_file(&volume, &host, "dataset", vec![7; 32 * MIB]).unwrap();
    let snapshot = lab.snapshot(&volume);
    let after = |lab: &mut Lab, initialization_rate| {
        let snapshot = Some(snapshot.clone());
        let made = CreateVolume { zone: B.into(), snapshot, initialization_rate, ..CreateVolume::default() };
        let id = lab.world.create_volume(made).unwrap().id;
        let done = lab.world.volume(&id).unwrap().initialized_at.unwrap();
        done.duration_since(lab.now).unsigned_abs()
    };
    assert_eq!(after(&mut lab, None), Duration::from_micros(150_000 + 31_250), "1 GiB/s by default here");
    assert_eq!(after(&mut lab, Some(256)), Duration::from_millis(150 + 125));
    assert!(lab.world.volume(&volume).unwrap().initialized_at.is_none(), "an empty volume has nothing to load");
}

#[test]
fn its_event_is_the_documented_one() {
    let mut lab = Lab::new(4);
    let volume = lab.volume(A);
    let snapshot = lab.snapshot(&volume);
    let event = lab.events.last().unwrap();
    let arn = format!("arn:aws:ec2::us-east-1:snapshot/{snapshot}");
    assert_eq!(event["detail-type"], "EBS Snapshot Notification");
    assert_eq!(event["resources"], json!([arn]));
    let wanted = json!({"event": "createSnapshot", "result": "succeeded", "cause": "", "request-id": "",
        "snapshot_id": arn, "source": format!("arn:aws:ec2::us-east-1:volume/{volume}"),
        "startTime": "2026-11-21T00:00:00Z", "endTime": "2026-11-21T00:00:00Z"});
    assert_eq!(event["detail"], wanted);
}

#[test]
fn five_are_in_progress_at_most_even_if_deleted() {
    let mut lab = Lab::new(4);
    let volume = lab.volume(A);
    let pending: Vec<String> = (0..5).map(|_| lab.try_snapshot(&volume).unwrap()).collect();
    assert_eq!(lab.try_snapshot(&volume), Err("ConcurrentSnapshotLimitExceeded"));
    lab.world.delete_snapshot(&pending[0]).unwrap();
    assert_eq!(lab.world.delete_snapshot(&pending[0]).unwrap_err().code, "InvalidSnapshot.NotFound");
    assert_eq!(lab.world.snapshots().count(), 4);
    assert_eq!(lab.try_snapshot(&volume), Err("ConcurrentSnapshotLimitExceeded"), "it completes before it goes");
    lab.pass(300);
    assert!(lab.try_snapshot(&volume).is_ok());
    let events = lab.ebs_events().into_iter().filter(|event| event.starts_with("createSnapshot")).count();
    assert_eq!(events, 4, "the deleted one has no event");
}

#[test]
fn what_fails_fails_loudly() {
    let mut lab = Lab::new(4);
    let volume = lab.volume(A);
    lab.world.trouble_mut().failing_snapshots = 1;
    let failing = lab.try_snapshot(&volume).unwrap();
    let sound = lab.try_snapshot(&volume).unwrap();
    lab.pass(300);
    let pending = lab.try_snapshot(&volume).unwrap();
    lab.world.delete_volume(&volume).unwrap();
    lab.collect();
    let states = [&failing, &sound, &pending].map(|id| lab.world.snapshot_of(id).unwrap().state.as_str());
    assert_eq!(states, ["error", "completed", "error"], "a source deleted while pending (fact 24)");
    let events = lab.ebs_events();
    for id in [&failing, &pending] {
        assert!(events.contains(&format!("createSnapshot failed {id}")), "{events:?}");
    }
    assert_eq!(lab.try_snapshot(&volume), Err("IncorrectState"));
    let wrong = CreateVolume { zone: A.into(), snapshot: Some(pending), ..CreateVolume::default() };
    assert_eq!(lab.world.create_volume(wrong).unwrap_err().code, "IncorrectState");
    let of = Selection { filters: vec![Filter::new("status", "error")], ..Selection::default() };
    assert_eq!(lab.world.describe_snapshots(&of).unwrap().0.len(), 2);
    assert_eq!(lab.world.leftovers().snapshots.len(), 3);
}
