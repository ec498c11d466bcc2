//! Describe calls whose answers lag behind, because EC2 answers from servers that do not all know the newest state
//! (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>). No document says that about AWS
//! Batch, and none excludes it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::World;
use super::ebs::{Snapshot, Volume};
use super::ids::RunRef;

/// The past states of something, oldest first.
#[derive(Debug)]
struct History<T>(Vec<(Timestamp, T)>);

impl<T> Default for History<T> {
    fn default() -> Self {
        History(Vec::new())
    }
}

impl<T> History<T> {
    /// Returns the state at that time: the newest one that is not later, or else the first.
    fn at(&self, time: Timestamp) -> Option<&T> {
        let known = self.0.iter().rev().find(|(since, _)| *since <= time);
        known.or_else(|| self.0.first()).map(|(_, state)| state)
    }

    fn push(&mut self, since: Timestamp, state: T) {
        self.0.push((since, state));
    }

    fn last(&self) -> Option<&T> {
        self.0.last().map(|(_, state)| state)
    }
}

/// The past states of all resources that are described, if describe calls lag.
#[derive(Debug, Default)]
pub(super) struct Past {
    volumes: BTreeMap<String, History<Volume>>,
    snapshots: BTreeMap<String, History<Snapshot>>,
    runs: BTreeMap<RunRef, History<Value>>,
}

impl World {
    /// Records what has changed since the last call.
    pub(super) fn remember(&mut self) {
        if self.trouble.lag_ms == 0 {
            return;
        }
        let now = self.now;
        for volume in self.ebs.volumes.values() {
            let past = self.past.volumes.entry(volume.id.clone()).or_default();
            let is_same = |old: &Volume| (old.state, &old.attachment) == (volume.state, &volume.attachment);
            if !past.last().is_some_and(is_same) {
                past.push(now, volume.clone());
            }
        }
        for snapshot in self.ebs.snapshots.values() {
            let past = self.past.snapshots.entry(snapshot.id.clone()).or_default();
            if past.last().is_none_or(|old| old.state != snapshot.state) {
                past.push(now, snapshot.clone());
            }
        }
    }

    /// Records the new state of a job.
    pub(super) fn remember_run(&mut self, run: RunRef, detail: &Value) {
        if self.trouble.lag_ms > 0 {
            self.past.runs.entry(run).or_default().push(self.now, detail.clone());
        }
    }

    /// Returns the time whose states the next answer has.
    pub(super) fn lagging(&mut self) -> Timestamp {
        if self.trouble.lag_ms == 0 {
            return self.now;
        }
        self.remember();
        let lag = Duration::from_millis(self.trouble.lag_ms).mul_f64(self.throttle.unit());
        self.now.saturating_sub(lag).unwrap_or(self.now)
    }

    pub(super) fn volume_at<'a>(&'a self, volume: &'a Volume, time: Timestamp) -> &'a Volume {
        self.past.volumes.get(&volume.id).and_then(|past| past.at(time)).filter(|_| time < self.now).unwrap_or(volume)
    }

    pub(super) fn snapshot_at<'a>(&'a self, snapshot: &'a Snapshot, time: Timestamp) -> &'a Snapshot {
        let past = self.past.snapshots.get(&snapshot.id).and_then(|past| past.at(time));
        past.filter(|_| time < self.now).unwrap_or(snapshot)
    }

    pub(super) fn run_at(&self, run: RunRef, time: Timestamp) -> Option<&Value> {
        self.past.runs.get(&run).and_then(|past| past.at(time)).filter(|_| time < self.now)
    }
}
