//! Stored state in memory, with the table's semantics: a commit succeeds only on the version that
//! was loaded, and brings its audit row with it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use spotsweep::command::DescribedJob;
use spotsweep::event::Subject;
use spotsweep::ids::SweepId;
use spotsweep::lifecycle::{Stage, Sweep};
use spotsweep::store::{Audit, Change, CommitError, Held, Overdue, Record, Store, View};
use spotsweep::trial::Trial;
use spotsweep::workspace::TrialRef;

use crate::crash::Crash;

/// The table.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
    crash: Arc<Crash>,
}

#[derive(Debug, Default)]
struct Rows {
    sweeps: BTreeMap<SweepId, Held<Sweep>>,
    trials: BTreeMap<(SweepId, u32), Held<Trial>>,
    references: BTreeMap<String, Vec<TrialRef>>,
    audits: Vec<Audit>,
}

impl MemoryStore {
    /// An empty table whose calls pass the given fault points.
    pub fn new(crash: Arc<Crash>) -> Self {
        Self { rows: Mutex::default(), crash }
    }

    /// Everything that counts of the stored state: versions, due times and audit rows do not.
    pub fn state(&self) -> (Vec<Sweep>, Vec<Trial>) {
        let rows = self.lock();
        let sweeps = rows.sweeps.values().map(|held| held.record.clone()).collect();
        (sweeps, rows.trials.values().map(|held| held.record.clone()).collect())
    }

    /// Looks at every trial, in order.
    pub fn each_trial(&self, mut look: impl FnMut(&Trial)) {
        self.lock().trials.values().for_each(|held| look(&held.record));
    }

    /// Whether a sweep has come to this stage.
    pub fn has_sweep_in(&self, stage: &Stage) -> bool {
        self.lock().sweeps.values().any(|held| held.record.stage == *stage)
    }

    /// Number of audit rows.
    pub fn audits(&self) -> usize {
        self.lock().audits.len()
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    fn view(&self, subject: &Subject, now: Timestamp) -> View {
        match subject {
            Subject::Sweep(id) => View { sweep: self.sweeps.get(id).cloned(), ..View::default() },
            Subject::Trial(id, index) => View {
                sweep: self.sweeps.get(id).cloned(),
                trial: self.trials.get(&(id.clone(), *index)).cloned(),
                ..View::default()
            },
            Subject::Settlement(id) => View {
                sweep: self.sweeps.get(id).cloned(),
                trials: self
                    .trials
                    .iter()
                    .filter(|((of, _), _)| of == id)
                    .map(|(_, held)| held.record.clone())
                    .collect(),
                ..View::default()
            },
            Subject::Resource(id) => {
                View { referring: self.references.get(id).cloned().unwrap_or_default(), ..View::default() }
            }
            Subject::Overdue => View { overdue: self.overdue(now), ..View::default() },
        }
    }

    fn overdue(&self, now: Timestamp) -> Vec<Overdue> {
        let sweeps = self.sweeps.values().filter(|held| held.is_overdue(now));
        let trials = self.trials.values().filter(|held| held.is_overdue(now)).map(|Held { record, .. }| DescribedJob {
            sweep: record.sweep.clone(),
            index: Some(record.index),
            job: record.job.clone(),
        });
        sweeps.map(|held| Overdue::Sweep(held.record.id.clone())).chain(trials.map(Overdue::Trial)).collect()
    }

    fn commit(
        &mut self,
        held: u64,
        change: &Change,
        references: Vec<String>,
        audit: &Audit,
    ) -> Result<(), CommitError> {
        let due = change.due;
        match &change.record {
            Record::Sweep(record) => {
                let id = record.id.clone();
                put(&mut self.sweeps, id, held, Held { record: record.clone(), version: held + 1, due })?;
            }
            Record::Trial(record) => {
                let key = (record.sweep.clone(), record.index);
                put(&mut self.trials, key, held, Held { record: record.clone(), version: held + 1, due })?;
                for id in references {
                    self.references.entry(id).or_default().push(record.of());
                }
            }
        }
        self.audits.push(audit.clone());
        Ok(())
    }
}

fn put<K: Ord, T>(rows: &mut BTreeMap<K, Held<T>>, key: K, held: u64, row: Held<T>) -> Result<(), CommitError> {
    if rows.get(&key).map_or(0, |row| row.version) != held {
        return Err(CommitError::Conflict);
    }
    rows.insert(key, row);
    Ok(())
}

impl Store for MemoryStore {
    async fn load(&self, subject: &Subject, now: Timestamp) -> Result<View, Box<dyn Error + Send + Sync>> {
        Ok(self.crash.call("load", || self.lock().view(subject, now)).await)
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<(), CommitError> {
        let held = view.version_of(&change.record);
        let references: Vec<String> = view.new_references(change).into_iter().map(str::to_owned).collect();
        self.crash.call("commit", || self.lock().commit(held, change, references, audit)).await
    }
}
