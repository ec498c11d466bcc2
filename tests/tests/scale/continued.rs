//! How many trials of a sweep can each go on from a snapshot of their own: so many are submitted within the limits, and
//! the sweep's record stays small.

use std::time::Duration;

use serde_json::json;
use spotsweep_control_plane::store::Record;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};
use spotsweep_simulation::harness::Harness;
use spotsweep_world::ebs::{CreateSnapshot, CreateVolume};

use crate::{account, deliver, put, records};

/// Number of trials that have ended and are retried.
const COUNT: u32 = 10_000;
/// Largest size in bytes of a record that is read with each event of its trials.
const SMALL: usize = 8 << 10;

/// Number of snapshots of one volume that EC2 takes at once (fact 24).
const OF_ONE_VOLUME: u32 = 5;

/// Makes so many completed snapshots, of as many volumes as needed, and returns their ids.
fn snapshots(harness: &mut Harness, count: u32) -> Vec<String> {
    let mut ids = Vec::new();
    for _volume in 0..count.div_ceil(OF_ONE_VOLUME) {
        let request = CreateVolume { zone: account().zones[0].clone(), size_gib: Some(20), ..CreateVolume::default() };
        let volume = harness.cloud.world().create_volume(request).unwrap().id;
        harness.pass(Duration::from_secs(1));
        for _snapshot in 0..OF_ONE_VOLUME {
            let request = CreateSnapshot { volume: volume.clone(), ..CreateSnapshot::default() };
            ids.push(harness.cloud.world().create_snapshot(request).unwrap().id);
        }
    }
    harness.pass(Duration::from_secs(1));
    ids
}

/// A failed trial of which this snapshot is kept.
fn failed(of: &Sweep, like: &Trial, (index, snapshot): (u32, &String), harness: &Harness) -> Trial {
    let until = harness.now + Duration::from_secs(86_400);
    let volume = json!({ "operation": 1, "id": "vol-1", "zone": "us-east-1a", "origin": { "origin": "blank" },
        "state": "absent", "used": true, "saved_by": 2 });
    let kept = json!({ "id": snapshot, "volume": "vol-1", "state": "completed", "asked_at": harness.now });
    let stage = json!({ "stage": "kept", "since": harness.now, "until": until });
    let workspace = json!({ "stage": stage, "volume": volume, "snapshots": { "2": kept }, "operations": 2 });
    let workspace = Some(serde_json::from_value(workspace).unwrap());
    Trial { sweep: of.id.clone(), index, status: JobStatus::Failed, workspace, ..like.clone() }
}

#[tokio::test]
async fn as_many_trials_go_on_from_their_snapshots() {
    let (old, trial) = records(Stage::Settled, COUNT);
    let mut harness = Harness::with(1, &account());
    let ids = snapshots(&mut harness, COUNT);
    for of in (0..).zip(&ids) {
        put(&harness.store, Record::Trial(Box::new(failed(&old, &trial, of, &harness)))).await;
    }
    put(&harness.store, Record::Sweep(Box::new(old.clone()))).await;

    let trials: String = (0..COUNT).map(|index| format!("- {{lr: {index}}}\n")).collect();
    let file = format!("trials:\n{trials}spotsweep: {{workspace: {{snapshots: [{}]}}}}\n", ids.join(", "));
    let dropped = harness.put("again.yaml", &file);
    let took = deliver(&harness, vec![dropped], 1).unwrap();

    let (sweeps, trials) = harness.store.state();
    let again = sweeps.iter().find(|sweep| sweep.id != old.id).unwrap();
    assert_eq!(again.stage, Stage::Running);
    assert_eq!(again.plan.as_ref().unwrap().jobs().len(), 1);
    let has_noted = |trial: &&Trial| trial.workspace.as_ref().unwrap().continued_by.contains(&again.id);
    assert_eq!(trials.iter().filter(has_noted).count(), COUNT as usize);
    let record = serde_json::to_vec(again).unwrap().len();
    assert!(record < SMALL, "the sweep's record has {record} bytes");
    println!("in one invocation {} MB, {:.1} s; the record has {record} bytes", took.bytes >> 20, took.seconds);
}
