//! Stored state, and the one trait through which it is read and written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::input::Subject;
use spotsweep_protocol::ids::{DescribedJob, SweepId};
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::TrialRef;

/// A record as it was stored when it was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    /// The record.
    pub record: T,
    /// Counts the commits; a commit succeeds only on the version that was loaded.
    pub version: u64,
    /// When to look after it, while it is open.
    pub due: Option<Timestamp>,
    /// The newest entries of its history, which are stored in it and have no row of their own yet.
    pub recent: History,
}

impl<T> Versioned<T> {
    /// Whether its due time has passed.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// What a decision sees: the event's subject, and nothing else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The sweep, where the subject has one and it exists.
    pub sweep: Option<Versioned<Sweep>>,
    /// The trial, where the subject is one and it exists.
    pub trial: Option<Versioned<Trial>>,
    /// A page of the sweep's trials, where the subject is its settlement.
    pub trials: Vec<Trial>,
    /// Every trial that has reached a rung or was given its parameters, where the subject is a comparison.
    pub peers: Option<BTreeMap<u32, Peer>>,
    /// The trials that the resource belongs to, where the subject is one.
    pub referring: Vec<TrialRef>,
    /// Records past their due time, where the subject is those.
    pub overdue: Vec<Overdue>,
    /// When the first of those was due.
    pub oldest_due: Option<Timestamp>,
}

/// A record past its due time, as the index over open work shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overdue {
    /// A sweep.
    Sweep(SweepId),
    /// A trial, whose job can be described.
    Trial(DescribedJob),
}

/// One record to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The record, whole.
    pub record: Record,
    /// When to look after it; absent where nothing is left to do.
    pub due: Option<Timestamp>,
    /// Whether it stands where it stood, with newer figures: that needs no entry in its history. A runner reports by
    /// the minute, which is most of what a control plane costs.
    pub figures_only: bool,
    /// What must not be another one's for this to be written.
    pub reserved: Vec<Reservation>,
}

/// Something that only one of a sweep's trials or parameter sets may have at the same moment. It lasts for
/// [`RESERVED`]: by then the others see what was committed with it, or nothing was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// What.
    pub key: String,
    /// The trial or the set that has it. It may reserve it again.
    pub owner: u32,
}

/// How long a reservation lasts: twice the longest invocation.
pub const RESERVED: SignedDuration = SignedDuration::from_secs(120);

/// A record of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A sweep.
    Sweep(Box<Sweep>),
    /// A trial.
    Trial(Box<Trial>),
}

/// Who changed a record, why, and what it led to: an entry of its history, one for every change but of figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// When.
    pub at: Timestamp,
    /// Name of the input, see [`crate::input::About::name`].
    pub event: Cow<'static, str>,
    /// What was decided, for people.
    pub answer: String,
    /// Where the record stands from then on, in short: a record's history tells its way to what is stored.
    pub state: String,
    /// Names of the commands that follow, see [`crate::command::Command::name`].
    pub commands: Vec<Cow<'static, str>>,
}

/// Audit entries of a record by the version that each made.
pub type History = BTreeMap<u64, Audit>;

impl Record {
    /// The sweep that it is of.
    pub fn sweep(&self) -> &SweepId {
        match self {
            Self::Sweep(sweep) => &sweep.id,
            Self::Trial(trial) => &trial.sweep,
        }
    }

    /// Where it stands, in short: a sweep's stage; a trial's status and its workspace's stage.
    pub fn state(&self) -> String {
        match self {
            Self::Sweep(sweep) => sweep.stage.name().to_owned(),
            Self::Trial(trial) => trial.state(),
        }
    }
}

impl View {
    /// The version that a change of this record builds on; 0 where it is new.
    pub fn version_of(&self, record: &Record) -> u64 {
        match record {
            Record::Sweep(_) => self.sweep.as_ref().map_or(0, |held| held.version),
            Record::Trial(_) => self.trial.as_ref().map_or(0, |held| held.version),
        }
    }

    /// Ids of instances, volumes and snapshots that a change makes the record belong to: each gets a pointer row, no
    /// later than the change, so that the resource's events find the trial. Pointers are never taken back; a trial that
    /// has left its resource, or has never come to it, ignores what comes by them.
    pub fn new_references<'a>(&self, change: &'a Change) -> Vec<&'a str> {
        let Record::Trial(trial) = &change.record else { return Vec::new() };
        let held = self.trial.as_ref().and_then(|held| held.record.workspace.as_ref());
        let known: Vec<&str> = held.into_iter().flat_map(|workspace| workspace.resources()).collect();
        let now = trial.workspace.iter().flat_map(|workspace| workspace.resources());
        now.filter(|id| !known.contains(id)).collect()
    }

    /// What the decisions about other trials need of the trial that a change writes, and the version that it is of. It
    /// follows the record, so that it never has what the record has not. A change that is more than figures repeats it:
    /// that makes up for a write that was lost.
    pub fn peer_of<'a>(&self, change: &'a Change) -> Option<(&'a Trial, Peer, u64)> {
        match &change.record {
            Record::Trial(trial) if !change.figures_only => {
                let plan = self.sweep.as_ref().and_then(|held| held.record.plan.as_ref());
                Some((trial, Peer::of(trial, plan)?, self.version_of(&change.record) + 1))
            }
            Record::Trial(_) | Record::Sweep(_) => None,
        }
    }

    /// The entries of a record's history that it holds itself.
    pub fn recent_of(&self, record: &Record) -> History {
        let recent = match record {
            Record::Sweep(_) => self.sweep.as_ref().map(|held| &held.recent),
            Record::Trial(_) => self.trial.as_ref().map(|held| &held.recent),
        };
        recent.cloned().unwrap_or_default()
    }

    /// The view after a commit, which has left these entries in the record.
    pub fn apply(&mut self, change: Change, recent: History) {
        let version = self.version_of(&change.record) + 1;
        let due = change.due;
        match change.record {
            Record::Sweep(record) => self.sweep = Some(Versioned { record: *record, version, due, recent }),
            Record::Trial(record) => self.trial = Some(Versioned { record: *record, version, due, recent }),
        }
    }
}

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another commit has changed the record since it was loaded.
    #[error("the record has changed since it was loaded")]
    Conflict,
    /// The store did not take it.
    #[error("commit failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// Stored state: DynamoDB, or memory in tests and simulation.
pub trait Store: Sync {
    /// Loads what an input is about. Strongly consistent, but for [`Subject::Overdue`] and the peers of
    /// [`Subject::Comparison`].
    ///
    /// # Errors
    /// Whatever the store says; the event is delivered again.
    fn load(
        &self,
        subject: &Subject,
        now: Timestamp,
    ) -> impl Future<Output = Result<View, Box<dyn Error + Send + Sync>>> + Send;

    /// Loads the peers alone: [`View::peers`] of a comparison, for a view that has the sweep and the trial already.
    ///
    /// # Errors
    /// Whatever the store says; the event is delivered again.
    fn peers(
        &self,
        sweep: &SweepId,
    ) -> impl Future<Output = Result<BTreeMap<u32, Peer>, Box<dyn Error + Send + Sync>>> + Send;

    /// Writes a change and its audit entry, both or neither, if the record's version is still the
    /// view's. Of figures alone there is no entry. Says which entries the record holds from now on.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] where it is not.
    fn commit(
        &self,
        view: &View,
        change: &Change,
        audit: &Audit,
    ) -> impl Future<Output = Result<History, CommitError>> + Send;
}
