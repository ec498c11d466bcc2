//! A trial's attempt, and what it does at a time.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_world::{AttemptKey, Start};

use super::Policy;

/// How often a runner looks at the metadata service (fact 32).
const IMDS_POLL: Duration = Duration::from_secs(5);

/// The variable by which the policies without a control plane know their trial.
pub(super) const TRIAL: &str = "TRIAL";

/// One attempt.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) trial: u32,
    pub(super) sweep: Option<SweepId>,
    pub(super) key: AttemptKey,
    pub(super) instance: String,
    pub(super) zone: String,
    /// Among all attempts of the trial.
    pub(super) attempt: u32,
    pub(super) token: Option<Secret>,
    pub(super) started: Timestamp,
    /// Counts the reports to the control plane.
    pub(super) sequence: u64,
    /// Only the step with this number counts; a notice makes the one that is waited for void.
    pub(super) step: u64,
    pub(super) volume: Option<String>,
    pub(super) doing: Doing,
}

/// What an attempt is at. Progress is in seconds of training.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doing {
    /// On the way to its bytes.
    Fetching(Fetch),
    Training {
        from: f64,
        since: Timestamp,
    },
    /// Training stands still while a checkpoint is written.
    Saving {
        progress: f64,
        until: Timestamp,
    },
    /// The instance is about to go; whether the checkpoint got whole.
    Leaving {
        progress: f64,
        saved: bool,
    },
    /// Trained to the end.
    Ending {
        progress: f64,
    },
}

/// The ways to the bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fetch {
    /// From S3: done when the time is over.
    Downloading { from: f64 },
    /// Asking the control plane for the workspace.
    Claiming,
    /// Holding the newest checkpoint against the seal.
    Verifying { from: f64 },
    /// Reading the newest checkpoint into memory.
    Loading { from: f64 },
    /// The published script.
    Script(Errand),
}

/// Where the published script is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Errand {
    /// describe-volumes by the Name tag, twice.
    Find,
    /// wait snapshot-completed; then delete-volume and create-volume.
    Snapshot { snapshot: String, volume: String },
    /// wait volume-available.
    Volume { volume: String },
    /// attach-volume, sleep, mount.
    Attach { volume: String },
    /// The device should be there.
    Mount { volume: String },
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    After(Duration),
    Exit(i32),
    /// Nothing more: the instance will be taken first.
    Never,
}

impl Agent {
    pub(super) fn new(start: &Start, zone: String, policy: Policy, now: Timestamp) -> Option<Self> {
        let (sweep, trial) = match policy {
            Policy::Spotsweep => {
                let index =
                    start.number("SPOTSWEEP_FIRST_INDEX")? + start.number("AWS_BATCH_JOB_ARRAY_INDEX").unwrap_or(0);
                (Some(SweepId::parse(start.variable("SPOTSWEEP_SWEEP")?)?), index)
            }
            Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => {
                (None, start.number(TRIAL)?)
            }
        };
        Some(Self {
            trial,
            sweep,
            key: start.attempt.clone(),
            instance: start.instance.clone(),
            zone,
            attempt: start.number("SPOTSWEEP_FIRST_ATTEMPT").unwrap_or(0) + start.attempt.attempt,
            token: start.variable(TOKEN_VARIABLE).and_then(|token| token.parse().ok()),
            started: now,
            sequence: 0,
            step: 0,
            volume: None,
            doing: Doing::Fetching(match policy {
                Policy::Spotsweep => Fetch::Claiming,
                Policy::SeedScript => Fetch::Script(Errand::Find),
                Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => {
                    Fetch::Downloading { from: 0.0 }
                }
            }),
        })
    }

    /// What it has behind it now, where it has come to train.
    pub(super) fn progress(&self, now: Timestamp) -> Option<f64> {
        match &self.doing {
            Doing::Fetching(_) => None,
            Doing::Training { from, since } => Some(from + now.duration_since(*since).as_secs_f64()),
            Doing::Saving { progress, .. } | Doing::Leaving { progress, .. } | Doing::Ending { progress } => {
                Some(*progress)
            }
        }
    }

    /// The first look at the metadata service from `now` on.
    pub(super) fn next_poll(&self, now: Timestamp) -> Duration {
        let alive = now.duration_since(self.started).as_secs_f64();
        let polls = (alive / IMDS_POLL.as_secs_f64()).ceil();
        Duration::from_secs_f64((polls * IMDS_POLL.as_secs_f64() - alive).max(0.0))
    }
}
