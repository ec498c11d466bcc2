//! Stored state in memory, with the table's semantics. A commit succeeds only on the version that was loaded, and adds
//! its audit entry.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use spotsweep_control_plane::decide::decide;
use spotsweep_control_plane::input::{Input, Subject};
use spotsweep_control_plane::metrics::Telemetry;
use spotsweep_control_plane::settings::Settings;
use spotsweep_control_plane::store::{
    Audit, Change, CommitError, History, Overdue, RESERVED, Record, Reservation, Store, Versioned, View,
};
use spotsweep_protocol::ids::{DescribedJob, SweepId};
use spotsweep_protocol::rungs::Rung;
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::{TrialRef, Workspace};

use crate::calls::{Calls, Name, Unanswered};
use crate::decision_log::DecisionLog;
use crate::injected_bug::InjectedBug;
use crate::limits::ITEM_BYTES;
use crate::{nouns, table};

const PUT_ITEM: Name = ("dynamodb", "PutItem");

/// The table.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// Records decisions, if it is switched on.
    pub decision_log: DecisionLog,
    rows: Mutex<Rows>,
    is_blind: AtomicBool,
    injected: Mutex<Option<InjectedBug>>,
    unaudited: Mutex<Option<&'static str>>,
    calls: Arc<Calls>,
}

#[derive(Debug, Default)]
struct Rows {
    sweeps: BTreeMap<SweepId, Versioned<Sweep>>,
    trials: BTreeMap<(SweepId, u32), Versioned<Trial>>,
    references: BTreeMap<String, Vec<TrialRef>>,
    /// By trial: the version of its record, and what other trials read of it.
    peers: BTreeMap<(SweepId, u32), (u64, Peer)>,
    /// By key: the trial that has reserved it, and until when.
    reserved: BTreeMap<(SweepId, String), (u32, Timestamp)>,
    audits: BTreeMap<Of, Vec<Audit>>,
    /// Number of changes of figures alone, which have no audit entry.
    unaudited: BTreeMap<Of, u64>,
    /// Records that were written since the last check of the audit entries.
    unchecked: BTreeSet<Of>,
}

/// A sweep, or a trial of it.
type Of = (SweepId, Option<u32>);

impl MemoryStore {
    /// Creates an empty table that records the calls on it.
    pub fn new(calls: Arc<Calls>) -> Self {
        Self { calls, ..Self::default() }
    }

    /// The table after these inputs, each decided at its time.
    pub fn replayed<'a>(inputs: impl IntoIterator<Item = &'a (Timestamp, Input)>, settings: &Settings) -> Self {
        let store = Self::default();
        let mut rows = store.lock();
        for (now, input) in inputs {
            let Some(subject) = input.about().subject else { continue };
            let view = rows.view(&subject, *now);
            if let Some(change) = decide(nouns::ALL, &view, input, settings, *now).change {
                // Without a version to compare, a commit succeeds.
                let _ = rows.commit(None, &change, None);
                if let Some((trial, peer, version)) = view.peer_of(&change) {
                    rows.put_peer(trial, peer, version);
                }
            }
        }
        drop(rows);
        store
    }

    /// Injects a bug: commits succeed even if the record has changed since it was loaded.
    pub(crate) fn commit_blindly(&self) {
        self.is_blind.store(true, Ordering::Relaxed);
    }

    /// Injects a bug into the records of trials, or into what is read of them.
    pub(crate) fn inject(&self, bug: InjectedBug) {
        *self.injected.lock().unwrap_or_else(PoisonError::into_inner) = Some(bug);
    }

    fn injected(&self) -> Option<InjectedBug> {
        *self.injected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_peers(&self, found: BTreeMap<u32, Peer>) -> BTreeMap<u32, Peer> {
        match self.injected() {
            Some(InjectedBug::CompareReversed) => {
                found.into_iter().map(|(index, peer)| (index, reversed(peer))).collect()
            }
            Some(InjectedBug::OverlookPeers) => BTreeMap::new(),
            _other => found,
        }
    }

    /// Injects a bug: this event leaves no audit entry.
    pub(crate) fn skip_audits_of(&self, event: &'static str) {
        *self.unaudited.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
    }

    /// The stored sweeps and trials, without versions, due times and audit entries.
    pub fn state(&self) -> (Vec<Sweep>, Vec<Trial>) {
        let rows = self.lock();
        let sweeps = rows.sweeps.values().map(|held| held.record.clone()).collect();
        (sweeps, rows.trials.values().map(|held| held.record.clone()).collect())
    }

    /// Calls `look` for every sweep, in order.
    pub fn each_sweep(&self, mut look: impl FnMut(&Sweep)) {
        self.lock().sweeps.values().for_each(|held| look(&held.record));
    }

    /// Calls `look` for every trial, in order.
    pub fn each_trial(&self, mut look: impl FnMut(&Trial)) {
        self.lock().trials.values().for_each(|held| look(&held.record));
    }

    /// Whether any sweep is in this stage.
    pub fn has_sweep_in(&self, stage: &Stage) -> bool {
        self.sweeps_in(stage) > 0
    }

    /// Number of sweeps in this stage.
    pub fn sweeps_in(&self, stage: &Stage) -> usize {
        self.lock().sweeps.values().filter(|held| held.record.stage == *stage).count()
    }

    /// Number of audit entries.
    pub fn audits(&self) -> usize {
        self.lock().audits.values().map(Vec::len).sum()
    }

    /// Checks that the audit entries agree with the records. Each version has one, except for changes of figures alone,
    /// and the last one has the record's state.
    ///
    /// # Errors
    /// The record that does not agree with its audit entries.
    pub fn check_audits(&self) -> Result<(), String> {
        let mut rows = self.lock();
        while let Some(of) = rows.unchecked.pop_first() {
            let stored = match of.1 {
                None => rows.sweeps.get(&of.0).map(|held| (held.version, held.record.stage.name().to_owned())),
                Some(index) => rows.trials.get(&(of.0.clone(), index)).map(|held| (held.version, held.record.state())),
            };
            let written = rows.audits.get(&of).map_or(&[][..], Vec::as_slice);
            let figures = rows.unaudited.get(&of).copied().unwrap_or(0);
            let tells = written.last().map(|last| (written.len() as u64 + figures, last.state.clone()));
            if stored != tells {
                return Err(format!("{of:?} is stored as {stored:?}, its audit entries tell {tells:?}"));
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes a record that is about to be written, according to the bug.
fn inject(bug: InjectedBug, before: Option<&Trial>, trial: &mut Trial) {
    let (newest, is_over) = (trial.attempts.keys().next_back().copied().unwrap_or(0), trial.is_over());
    if let (InjectedBug::ForgetNotices, Some(workspace)) = (bug, &mut trial.workspace) {
        workspace.under_notice.clear();
    }
    if let (InjectedBug::ForgetContinued, Some(workspace)) = (bug, &mut trial.workspace)
        && !workspace.continued_by.is_empty()
    {
        workspace.continued_by.clear();
        let before = before.and_then(|before| before.workspace.as_ref());
        workspace.stage = before.map_or_else(|| workspace.stage.clone(), |before| before.stage.clone());
    }
    if bug == InjectedBug::ForgetStops && is_over {
        trial.stopped = None;
    }
    if bug == InjectedBug::ForgetSuggestions && trial.ended > 0 {
        trial.suggested = None;
    }
    if bug == InjectedBug::ForgetFetches {
        trial.attempts.values_mut().for_each(|attempt| attempt.fetch = None);
    }
    if bug == InjectedBug::ReplaceRungs {
        trial.rungs.values_mut().for_each(|rung| rung.mean = f64::from(newest));
    }
}

/// Inverts the values at a trial's rungs. Simulated values are between 0 and 1.
fn reversed(mut peer: Peer) -> Peer {
    for rung in peer.rungs.values_mut() {
        *rung = Rung { value: 1.0 - rung.value, best: 1.0 - rung.best, mean: 1.0 - rung.mean };
    }
    peer
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
            Subject::Comparison(id, index) => {
                View { peers: Some(self.peers_of(id)), ..self.view(&Subject::Trial(id.clone(), *index), now) }
            }
            Subject::Settlement(id, page) => {
                let sweep = self.sweeps.get(id).cloned();
                let indexes = sweep.as_ref().map_or(0..0, |held| held.record.page(*page));
                let trials = self.trials.range((id.clone(), indexes.start)..(id.clone(), indexes.end));
                View { sweep, trials: trials.map(|(_, held)| held.record.clone()).collect(), ..View::default() }
            }
            Subject::Resource(id) => {
                View { referring: self.references.get(id).cloned().unwrap_or_default(), ..View::default() }
            }
            Subject::Overdue => View { overdue: self.overdue(now), ..View::default() },
        }
    }

    fn peers_of(&self, sweep: &SweepId) -> BTreeMap<u32, Peer> {
        let of = self.peers.iter().filter(|((of, _), _)| of == sweep);
        of.map(|((_, index), (_, peer))| (*index, peer.clone())).collect()
    }

    fn put_peer(&mut self, trial: &Trial, peer: Peer, version: u64) {
        let held = self.peers.entry((trial.sweep.clone(), trial.index)).or_default();
        if held.0 < version {
            *held = (version, peer);
        }
    }

    fn reserve(&mut self, sweep: &SweepId, of: &Reservation, now: Timestamp) -> Result<(), CommitError> {
        let key = (sweep.clone(), of.key.clone());
        if self.reserved.get(&key).is_some_and(|(owner, until)| *owner != of.owner && *until >= now) {
            return Err(CommitError::Conflict);
        }
        self.reserved.insert(key, (of.owner, now.checked_add(RESERVED).unwrap_or(now)));
        Ok(())
    }

    fn overdue(&self, now: Timestamp) -> Vec<Overdue> {
        let sweeps = self.sweeps.values().filter(|held| held.is_overdue(now));
        let trials = self.trials.values().filter(|held| held.is_overdue(now)).map(|Versioned { record, .. }| {
            DescribedJob { sweep: record.sweep.clone(), index: Some(record.index), job: record.job.clone() }
        });
        sweeps.map(|held| Overdue::Sweep(held.record.id.clone())).chain(trials.map(Overdue::Trial)).collect()
    }

    /// Stores a pointer from an instance, volume or snapshot to a trial.
    fn point(&mut self, resource: &str, record: &Record) {
        let Record::Trial(trial) = record else { return };
        let trials = self.references.entry(resource.to_owned()).or_default();
        if !trials.contains(&trial.of()) {
            trials.push(trial.of());
        }
    }

    fn commit(&mut self, held: Option<u64>, change: &Change, audit: Option<&Audit>) -> Result<(), CommitError> {
        let due = change.due;
        let of = match &change.record {
            Record::Sweep(record) => {
                put(&mut self.sweeps, record.id.clone(), held, *record.clone(), due)?;
                (record.id.clone(), None)
            }
            Record::Trial(record) => {
                put(&mut self.trials, (record.sweep.clone(), record.index), held, *record.clone(), due)?;
                (record.sweep.clone(), Some(record.index))
            }
        };
        if change.figures_only {
            *self.unaudited.entry(of.clone()).or_default() += 1;
        } else {
            self.audits.entry(of.clone()).or_default().extend(audit.cloned());
        }
        self.unchecked.insert(of);
        Ok(())
    }
}

/// The partition in which a subject is stored.
fn partition(subject: &Subject) -> &str {
    match subject {
        Subject::Sweep(id) | Subject::Trial(id, _) | Subject::Comparison(id, _) | Subject::Settlement(id, _) => {
            id.as_str()
        }
        Subject::Resource(id) => id,
        Subject::Overdue => "index/open",
    }
}

fn failed(error: Unanswered) -> CommitError {
    CommitError::Failed(error.into())
}

/// Puts a row; if `held` is given, only over that version.
fn put<K: Ord, T>(
    rows: &mut BTreeMap<K, Versioned<T>>,
    key: K,
    held: Option<u64>,
    record: T,
    due: Option<Timestamp>,
) -> Result<(), CommitError> {
    let stored = rows.get(&key).map_or(0, |row| row.version);
    if held.is_some_and(|held| held != stored) {
        return Err(CommitError::Conflict);
    }
    rows.insert(key, Versioned { record, version: stored + 1, due, recent: History::new() });
    Ok(())
}

impl Store for MemoryStore {
    async fn load(&self, subject: &Subject, now: Timestamp) -> Result<View, Box<dyn Error + Send + Sync>> {
        let (action, on) = match subject {
            Subject::Sweep(_) | Subject::Trial(..) => ("GetItem", None),
            Subject::Comparison(..) | Subject::Settlement(..) | Subject::Resource(_) => ("Query", None),
            Subject::Overdue => ("Query", Some("index/open".to_owned())),
        };
        let mut view = self.calls.call_on(("dynamodb", action), on, || self.lock().view(subject, now)).await?;
        self.calls.use_units(partition(subject), table::read(subject, &view));
        view.peers = view.peers.map(|found| self.change_peers(found));
        Ok(view)
    }

    async fn peers(&self, sweep: &SweepId) -> Result<BTreeMap<u32, Peer>, Box<dyn Error + Send + Sync>> {
        let found = self.calls.call_on(("dynamodb", "Query"), None, || self.lock().peers_of(sweep)).await?;
        self.calls.use_units(sweep.as_str(), table::of_peers(&found));
        Ok(self.change_peers(found))
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<History, CommitError> {
        let held = (!self.is_blind.load(Ordering::Relaxed)).then(|| view.version_of(&change.record));
        let unaudited = *self.unaudited.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = unaudited.is_none_or(|event| audit.event != event);
        let reserved = if self.injected() == Some(InjectedBug::OverlookPeers) { &[][..] } else { &change.reserved };
        for reservation in reserved {
            let reserve = || self.lock().reserve(change.record.sweep(), reservation, audit.at);
            self.calls.call(PUT_ITEM, reserve).await.map_err(failed)??;
        }
        // The order of the table: first the pointers, then the record with its audit entry.
        for resource in view.new_references(change) {
            let point = || self.lock().point(resource, &change.record);
            self.calls.call(PUT_ITEM, point).await.map_err(failed)?;
        }
        let mut change = change.clone();
        if let (Some(bug), Record::Trial(trial)) = (self.injected(), &mut change.record) {
            let kept = trial.workspace.as_ref().and_then(Workspace::kept).map(|kept| kept.until);
            inject(bug, view.trial.as_ref().map(|held| &held.record), trial);
            let forgotten = trial.workspace.as_ref().and_then(Workspace::kept).map(|kept| kept.until);
            // According to the record, this is due when the workspace is no longer kept.
            change.due = if forgotten == kept { change.due } else { forgotten };
        }
        let bytes = table::bytes(&change.record);
        if bytes > ITEM_BYTES {
            return Err(CommitError::Failed(
                format!("the item has {bytes} bytes, and {ITEM_BYTES} is the most").into(),
            ));
        }
        self.calls.use_units(change.record.sweep().as_str(), table::written(bytes));
        let commit = || self.lock().commit(held, &change, is_kept.then_some(audit));
        self.calls.call(PUT_ITEM, commit).await.map_err(failed)??;
        if let Some((trial, peer, version)) = view.peer_of(&change) {
            let put = || self.lock().put_peer(trial, peer, version);
            self.calls.call(PUT_ITEM, put).await.map_err(failed)?;
        }
        Ok(History::new())
    }
}

impl Telemetry for MemoryStore {
    fn decided(&self, view: &View, input: &Input) {
        self.decision_log.record(view, input);
    }
}
