//! An attempt of a trial, and its current step.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_simulation::container::Container;
use spotsweep_world::{AttemptKey, Start, World};

use super::Policy;

/// The period in which a runner polls the metadata service (fact 32).
const IMDS_POLL: Duration = Duration::from_secs(5);

/// The variable with the trial's number, for the policies without a control plane.
pub(super) const TRIAL: &str = "TRIAL";

#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) trial: u32,
    /// The container's part in the sweep, under the policy with a control plane.
    pub(super) container: Option<Container>,
    pub(super) key: AttemptKey,
    pub(super) instance: String,
    pub(super) zone: String,
    pub(super) started: Timestamp,
    pub(super) sequence: u64,
    /// The number of its next step. Steps with other numbers are out of date, for example after a notice.
    pub(super) step: u64,
    pub(super) volume: Option<String>,
    pub(super) doing: Doing,
}

/// The current step of an attempt. Progress is in seconds of training.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doing {
    /// The attempt gets its dataset and its checkpoint.
    Fetching(Fetch),
    Training {
        from: f64,
        since: Timestamp,
    },
    /// The training is paused while a checkpoint is written.
    Saving {
        progress: f64,
        until: Timestamp,
    },
    /// The instance is about to end. `saved` is whether the checkpoint is complete.
    Leaving {
        progress: f64,
        saved: bool,
    },
    /// The training has reached its end.
    Ending {
        progress: f64,
    },
}

/// The ways to get the dataset and the checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fetch {
    /// A download from S3, which is complete after a time.
    Downloading { from: f64 },
    /// The claim of the workspace from the control plane.
    Claiming,
    /// The comparison of the newest checkpoint with the manifest.
    Verifying { from: f64 },
    /// The reading of the newest checkpoint into memory.
    Loading { from: f64 },
    /// A step of the published script.
    Script(Errand),
}

/// The current step of the published script.
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
    /// The script expects the device.
    Mount { volume: String },
}

/// The continuation after a step.
#[derive(Debug)]
pub(super) enum Next {
    After(Duration),
    Exit(i32),
    /// There is no further step, because the instance will be taken first.
    Never,
}

impl Agent {
    pub(super) fn new(start: &Start, policy: Policy, world: &World) -> Option<Self> {
        let container = match policy {
            Policy::Spotsweep => Some(Container::of(start, world)?),
            Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => None,
        };
        let trial = match &container {
            Some(container) => container.trial.index,
            None => start.number(TRIAL)?,
        };
        Some(Self {
            trial,
            container,
            key: start.attempt.clone(),
            instance: start.instance.clone(),
            zone: world.instance(&start.instance)?.zone.clone(),
            started: world.now(),
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

    /// Returns the seconds that it has trained by now, if it has begun to train.
    pub(super) fn progress(&self, now: Timestamp) -> Option<f64> {
        match &self.doing {
            Doing::Fetching(_) => None,
            Doing::Training { from, since } => Some(from + now.duration_since(*since).as_secs_f64()),
            Doing::Saving { progress, .. } | Doing::Leaving { progress, .. } | Doing::Ending { progress } => {
                Some(*progress)
            }
        }
    }

    /// Returns the time until the next poll of the metadata service after `now`.
    pub(super) fn next_poll(&self, now: Timestamp) -> Duration {
        let alive = now.duration_since(self.started).as_secs_f64();
        let polls = (alive / IMDS_POLL.as_secs_f64()).ceil();
        Duration::from_secs_f64((polls * IMDS_POLL.as_secs_f64() - alive).max(0.0))
    }
}
