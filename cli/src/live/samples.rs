//! Records for the tests of the live view.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Over, Plan, Ranking, Stage as SweepStage, Sweep};
use spotsweep_records::trial::{Attempt, JobStatus, Trial};
use spotsweep_records::workspace::{
    Initialized, Origin, Place, Snapshot, SnapshotState, Stage, Volume, VolumeState, Workspace,
};

use super::look::{Batch, Look};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}

pub(super) fn id() -> SweepId {
    SweepId::derive("b", "sweeps/digits.yaml", "v")
}

pub(crate) fn trial(index: u32, status: JobStatus) -> Trial {
    Trial { status, ..Trial::new(id(), index, JobId::from(format!("job:{index}"))) }
}

/// An attempt whose instance was reclaimed.
pub(crate) fn interrupted(zone: &str, from: i64, to: i64) -> Attempt {
    Attempt {
        started_at: Some(at(from)),
        stopped_at: Some(at(to)),
        zone: Some(zone.to_owned()),
        instance: Some(format!("i-{zone}")),
        reason: Some(format!("Host EC2 (instance i-{zone}) terminated.").into()),
        ..Attempt::default()
    }
}

/// A trial that has been running since then.
pub(crate) fn running(index: u32, zone: &str, since: i64) -> Trial {
    let mut trial = trial(index, JobStatus::Running);
    *trial.attempt(1) = Attempt { stopped_at: None, reason: None, ..interrupted(zone, since, 0) };
    trial
}

/// A trial that has succeeded with this value.
pub(crate) fn succeeded(index: u32, from: i64, to: i64, value: f64) -> Trial {
    let mut trial = trial(index, JobStatus::Succeeded);
    trial.ended = 1;
    *trial.attempt(1) = Attempt { reason: None, exit_code: Some(0), ..interrupted("us-east-1a", from, to) };
    trial.metrics.insert("accuracy".to_owned(), Metric { min: 0.0, ..Metric::of(value, None, Source::Stated) });
    trial
}

fn volume(zone: &str) -> Volume {
    Volume {
        operation: 1,
        id: Some("vol-1".to_owned()),
        zone: zone.to_owned(),
        origin: Origin::Blank,
        state: VolumeState::Available,
        used: true,
        saved_by: None,
    }
}

fn place(attempt: u32, zone: &str) -> Place {
    Place { attempt, instance: format!("i-{zone}"), zone: zone.to_owned() }
}

/// A workspace that an attempt has mounted.
pub(crate) fn attached(zone: &str) -> Workspace {
    let stage = Stage::Attached { to: place(1, zone), device: 0, mounted: true };
    Workspace { stage, ..detached(zone, zone) }
}

/// A workspace that waits for its snapshot, to be moved.
pub(super) fn detached(zone: &str, wanted: &str) -> Workspace {
    Workspace {
        stage: Stage::AwaitingSnapshot,
        volume: volume(zone),
        source: None,
        snapshots: BTreeMap::new(),
        operations: 1,
        wanted: Some(place(2, wanted)),
        under_notice: BTreeMap::new(),
        left_by: 0,
        user_owned: false,
        second_copy: false,
        finished: false,
        pending_deletes: [].into(),
        continued_by: [].into(),
        unanswered: BTreeMap::new(),
        missing: BTreeMap::new(),
        seal: None,
        refusals: 0,
        refused_since: None,
        refused: None,
        unavailable: None,
        initialized: Initialized::default(),
        notes: Vec::new(),
    }
}

/// A snapshot for which a notice to attempt 1 has asked.
pub(super) fn early_snapshot(second: i64) -> Snapshot {
    Snapshot {
        id: None,
        volume: "vol-1".to_owned(),
        state: SnapshotState::Pending,
        asked_at: at(second),
        early: Some(1),
    }
}

/// A sweep of so many trials, dropped at second 0 and ranked by accuracy.
pub(super) fn sweep(trials: u32, stage: SweepStage) -> Sweep {
    let mut upload = Upload {
        bucket: "b".to_owned(),
        key: "sweeps/digits.yaml".to_owned(),
        version_id: None,
        fingerprint: "v".to_owned(),
        size: None,
        uploaded_at: at(0),
    };
    upload.uploaded_at = at(0);
    let plan: Plan = serde_json::from_value(serde_json::json!({
        "trials": trials, "queue": "spot", "definition": "train:1", "attempts": 50,
        "parts": Plan::cut(trials).iter().map(|part| serde_json::json!({ "trials": part.trials, "job": "job" }))
            .collect::<Vec<_>>(),
    }))
    .unwrap_or_else(|error| unreachable!("a plan: {error}"));
    let metric = Some(Ranking { name: "accuracy".to_owned(), maximize: true, over: Over::Last });
    Sweep { id: id(), stage, plan: Some(Plan { metric, ..plan }), ..Sweep::new(upload) }
}

/// A look at a running sweep.
pub(crate) fn look(second: i64, total: u32, trials: Vec<Trial>) -> Look {
    Look { at: at(second), sweep: sweep(total, SweepStage::Running), trials, batch: Batch::default(), outcome: None }
}
