//! The stored state, and the trait that reads and writes it.

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

/// A record as it was when it was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    /// The record.
    pub record: T,
    /// The number of commits. A commit succeeds only on the version that was loaded.
    pub version: u64,
    /// The due time, while the record is open.
    pub due: Option<Timestamp>,
    /// The newest entries of the record's history, which are stored in the record itself and have no rows of their own
    /// yet.
    pub recent: History,
}

impl<T> Versioned<T> {
    /// Whether the due time has passed.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// The loaded records of an input's subject, which are all that a decision depends on besides the input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The sweep, if the subject has one that exists.
    pub sweep: Option<Versioned<Sweep>>,
    /// The trial, if the subject is one that exists.
    pub trial: Option<Versioned<Trial>>,
    /// A page of the sweep's trials, if the subject is its settlement.
    pub trials: Vec<Trial>,
    /// Every trial that has reached a rung or has suggested parameters, if the subject is a comparison.
    pub peers: Option<BTreeMap<u32, Peer>>,
    /// The trials that the resource belongs to, if the subject is a resource.
    pub referring: Vec<TrialRef>,
    /// Records past their due time, if these are the subject.
    pub overdue: Vec<Overdue>,
    /// The earliest due time of these.
    pub oldest_due: Option<Timestamp>,
}

/// A record past its due time, as the index of open work shows it.
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
    /// The whole record.
    pub record: Record,
    /// The due time; absent if nothing is left to do.
    pub due: Option<Timestamp>,
    /// Whether only figures have changed. Such a change needs no entry in the history. A runner reports every minute,
    /// so most of the control plane's costs are for such changes.
    pub figures_only: bool,
    /// Reservations without which the change is not written.
    pub reserved: Vec<Reservation>,
}

/// A claim of one trial or parameter set to something that no other may have at the same time. It lasts for
/// [`RESERVED`]. After that time other claims see what was committed with it, or nothing was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The name of what is reserved.
    pub key: String,
    /// The trial or the set that reserves it, and that may reserve it again.
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

/// An entry of a record's history: why the record was changed, and what followed. Every change has one, except for
/// changes of figures only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The time of the change.
    pub at: Timestamp,
    /// Name of the input, see [`crate::input::About::name`].
    pub event: Cow<'static, str>,
    /// The decision, as text for people.
    pub answer: String,
    /// A short description of the record after the change, so that a record's history shows all its states.
    pub state: String,
    /// Names of the commands that follow, see [`crate::command::Command::name`].
    pub commands: Vec<Cow<'static, str>>,
}

/// Audit entries of a record by the version of their commit.
pub type History = BTreeMap<u64, Audit>;

impl Record {
    /// Returns the id of the record's sweep.
    pub fn sweep(&self) -> &SweepId {
        match self {
            Self::Sweep(sweep) => &sweep.id,
            Self::Trial(trial) => &trial.sweep,
        }
    }

    /// Returns a short description: a sweep's stage, or a trial's status and its workspace's stage.
    pub fn state(&self) -> String {
        match self {
            Self::Sweep(sweep) => sweep.stage.name().to_owned(),
            Self::Trial(trial) => trial.state(),
        }
    }
}

impl View {
    /// Returns the version on which a change of this record is based; 0 for a new record.
    pub fn version_of(&self, record: &Record) -> u64 {
        match record {
            Record::Sweep(_) => self.sweep.as_ref().map_or(0, |held| held.version),
            Record::Trial(_) => self.trial.as_ref().map_or(0, |held| held.version),
        }
    }

    /// Returns the ids of instances, volumes and snapshots that the record belongs to after a change, and did not
    /// before. A pointer row is written for each, not later than the change, so that the resource's events find the
    /// trial. Pointers are never removed. A trial that has left its resource, or never got it, ignores the resource's
    /// events.
    pub fn new_references<'a>(&self, change: &'a Change) -> Vec<&'a str> {
        let Record::Trial(trial) = &change.record else { return Vec::new() };
        let held = self.trial.as_ref().and_then(|held| held.record.workspace.as_ref());
        let known: Vec<&str> = held.into_iter().flat_map(|workspace| workspace.resources()).collect();
        let now = trial.workspace.iter().flat_map(|workspace| workspace.resources());
        now.filter(|id| !known.contains(id)).collect()
    }

    /// Returns the row about the changed trial for decisions about other trials, with the version of the record. The
    /// row is derived from the record, so it never has something that the record lacks. Every change that is more than
    /// figures writes it again, which makes up for a write that was lost.
    pub fn peer_of<'a>(&self, change: &'a Change) -> Option<(&'a Trial, Peer, u64)> {
        match &change.record {
            Record::Trial(trial) if !change.figures_only => {
                let plan = self.sweep.as_ref().and_then(|held| held.record.plan.as_ref());
                Some((trial, Peer::of(trial, plan)?, self.version_of(&change.record) + 1))
            }
            Record::Trial(_) | Record::Sweep(_) => None,
        }
    }

    /// Returns the entries of a record's history that are stored in the record itself.
    pub fn recent_of(&self, record: &Record) -> History {
        let recent = match record {
            Record::Sweep(_) => self.sweep.as_ref().map(|held| &held.recent),
            Record::Trial(_) => self.trial.as_ref().map(|held| &held.recent),
        };
        recent.cloned().unwrap_or_default()
    }

    /// Updates the view after a commit that has left these entries in the record.
    pub fn apply(&mut self, change: Change, recent: History) {
        let version = self.version_of(&change.record) + 1;
        let due = change.due;
        match change.record {
            Record::Sweep(record) => self.sweep = Some(Versioned { record: *record, version, due, recent }),
            Record::Trial(record) => self.trial = Some(Versioned { record: *record, version, due, recent }),
        }
    }
}

/// Why a commit has failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another commit has changed the record since it was loaded.
    #[error("the record has changed since it was loaded")]
    Conflict,
    /// The store has not accepted the change.
    #[error("commit failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// The stored state: DynamoDB, or memory in tests and simulation.
pub trait Store: Sync {
    /// Loads the records that an input is about. The reads are strongly consistent, except those for
    /// [`Subject::Overdue`] and for the peers of [`Subject::Comparison`].
    ///
    /// # Errors
    /// Returns the store's error. The event is delivered again.
    fn load(
        &self,
        subject: &Subject,
        now: Timestamp,
    ) -> impl Future<Output = Result<View, Box<dyn Error + Send + Sync>>> + Send;

    /// Loads only [`View::peers`], for a comparison whose view has the sweep and the trial already.
    ///
    /// # Errors
    /// Returns the store's error. The event is delivered again.
    fn peers(
        &self,
        sweep: &SweepId,
    ) -> impl Future<Output = Result<BTreeMap<u32, Peer>, Box<dyn Error + Send + Sync>>> + Send;

    /// Writes both a change and its audit entry, or neither, if the record's version is still the view's. A change of
    /// figures only has no entry. Returns the entries that are stored in the record after that.
    ///
    /// # Errors
    /// Returns [`CommitError::Conflict`] if the version differs.
    fn commit(
        &self,
        view: &View,
        change: &Change,
        audit: &Audit,
    ) -> impl Future<Output = Result<History, CommitError>> + Send;
}
