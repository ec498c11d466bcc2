//! A trial, and what Batch and its own attempts have reported of it.
//!
//! ```text
//! Waiting  --STARTING-----------------> Starting
//! Starting --RUNNING------------------> Running
//! Running  --attempt ended, retry-----> Waiting (RUNNABLE again, one attempt longer)
//! any      --SUCCEEDED----------------> Succeeded
//! any      --FAILED-------------------> Failed
//! ```
//! Events come late, twice and in any order (fact 2). So no observation replaces the record: each one is *merged*,
//! field by field, by operations that commute and that have no effect when they are repeated. The order of observations
//! is (attempts ended, status), which Batch only ever raises.

mod early_stop;
mod fetch;
mod interruptions;
mod job_status;
mod leaving;
mod notes;
mod reason;
mod retry;
mod silence;
mod stall;
mod standing;
mod suggested;
mod unfit;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::stored::is_default;
use crate::workspace::{TrialRef, Workspace};
pub use early_stop::{Comparison, EarlyStop};
pub use fetch::fetching;
pub use job_status::JobStatus;
pub use leaving::Leaving;
pub use reason::Reason;
pub use retry::{RetryOn, RetryRule, job_attempts, retry_rules};
pub use silence::{AgentState, Host, InstanceStatus, Silence, is_dead};
use spotsweep_protocol::claim::{Fetch, Market, Outputs};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Curve;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;
pub use stall::Stall;
pub use standing::Standing;
pub use suggested::Suggested;

/// Most attempts that Batch makes of one job (fact 18).
pub const JOB_ATTEMPTS: u32 = 10;

/// Exit code of the runner after an interruption (EX_TEMPFAIL). Batch starts the next attempt.
pub const INTERRUPTED_EXIT_CODE: i32 = 75;

/// The start of Batch's reason after a reclaim of the instance (fact 12).
pub const HOST_GONE: &str = "Host EC2";

/// The start of Batch's reason when Docker, ECR or the ECS agent could not start the container
/// (<https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html>).
pub const NOT_STARTED: &str = "Task failed to start";

/// The start of the container's reason when the ECS agent was not connected (the same page).
pub const AGENT_FAILED: &str = "AGENT";

/// False starts in a row until a trial fails. A single failure of Docker, ECR or the agent is worth another try (fact
/// 18), and so is one unfit instance. An image that does not exist, or that lacks the driver, fails each time.
pub const MAX_FALSE_STARTS: usize = 5;

/// The start of Batch's reason when an attempt ran for longer than the job's timeout.
const TIMED_OUT: &str = "Job attempt duration exceeded timeout";

/// What one event or one answer of DescribeJobs shows of a trial's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The job: a child of the array, or the plain job of a single trial.
    pub job: JobId,
    /// Its state.
    pub status: JobStatus,
    /// Batch's `statusReason`.
    pub reason: Option<Reason>,
    /// The attempts that have ended, oldest first.
    pub ended: Vec<Attempt>,
    /// The attempt under way, as far as Batch shows it.
    pub current: Attempt,
    /// ARN of the ECS container instance of the attempt under way, which is not the id of the EC2 instance (fact 13).
    /// It is looked up at once and not stored, because it would take a sixth of a record.
    pub container_instance: Option<String>,
    /// Whether the job was cancelled or terminated, so that its end does not describe the last attempt.
    pub was_stopped: bool,
}

/// One container run of a trial, with what Batch and its runner have reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// When the container started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the container ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// The container's exit code; absent after a reclaim (fact 12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why the attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// CloudWatch Logs stream of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_stream: Option<String>,
    /// EC2 instance, from the attempt's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Availability zone, from the attempt's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Instance type, from the attempt's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// How the instance is paid for, from the attempt's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<Market>,
    /// The number of the newest report within the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// How far it has fetched its data sets; absent if the instance had them, or if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<Fetch>,
    /// Why no workspace goes to it any more, where only its record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Leaving>,
}

impl Attempt {
    /// Whether the attempt was interrupted: by Batch's reason, by the runner's exit code, or because the container ran
    /// and nothing reported its end. No document promises that Batch gives "Host EC2" for every reclaim.
    pub fn was_interrupted(&self) -> bool {
        let by_code = self.exit_code == Some(INTERRUPTED_EXIT_CODE);
        !self.has_timed_out() && (by_code || self.is_reclaimed() || self.is_lost())
    }

    /// Whether the attempt ran for longer than the job's timeout. Batch then starts no further attempt, whatever the
    /// exit code of the stopped container is (<https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html>).
    pub fn has_timed_out(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.of_batch().starts_with(TIMED_OUT))
    }

    /// Whether an ended attempt was a false start: its container never ran, or its instance was unfit.
    pub fn is_false_start(&self) -> bool {
        (self.ended_unseen() && !self.has_run()) || self.unfit().is_some()
    }

    /// Whether the attempt has run and Batch does not report how it ended.
    fn is_lost(&self) -> bool {
        self.stopped_at.is_some() && self.ended_unseen() && self.has_run()
    }

    fn is_reclaimed(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.of_batch().starts_with(HOST_GONE))
    }

    /// Whether nothing shows how the container ended: only an exit code proves that it ended by itself.
    fn ended_unseen(&self) -> bool {
        self.exit_code.is_none() && !self.has_timed_out() && !self.is_reclaimed()
    }

    fn has_run(&self) -> bool {
        self.started_at.is_some() || self.sequence.is_some()
    }

    fn merge(&mut self, other: &Self) {
        raise(&mut self.started_at, &other.started_at);
        raise(&mut self.stopped_at, &other.stopped_at);
        raise(&mut self.exit_code, &other.exit_code);
        raise(&mut self.reason, &other.reason);
        raise(&mut self.log_stream, &other.log_stream);
        raise(&mut self.instance, &other.instance);
        raise(&mut self.zone, &other.zone);
        raise(&mut self.instance_type, &other.instance_type);
        raise(&mut self.market, &other.market);
        raise(&mut self.sequence, &other.sequence);
    }
}

/// Takes the larger value; absent is smallest. This commutes, so the order of events does not matter.
fn raise<T: Ord + Clone>(held: &mut Option<T>, seen: &Option<T>) {
    if *seen > *held {
        held.clone_from(seen);
    }
}

/// What the runner has reported at the end of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The attempt that ended.
    pub attempt: u32,
    /// The training command's exit code.
    pub exit_code: i32,
    /// The collected files, and those that were left out.
    pub outputs: Outputs,
    /// Wall time of the training command in seconds.
    pub seconds: f64,
    /// The reason of a failure, from the training's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One training with one parameter set: one child of an array job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The trial's sweep.
    pub sweep: SweepId,
    /// Index within the sweep, from 0.
    pub index: u32,
    /// The trial's Batch job. While the trial is being submitted again, the job of the round before.
    pub job: JobId,
    /// The number of the trial's submission, from 0. There can be several, because Batch makes ten attempts of one job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: u32,
    /// Whether the round's job still has to be submitted, or found.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resubmitting: bool,
    /// Number of attempts that have ended.
    pub ended: u32,
    /// Batch's state of the job.
    pub status: JobStatus,
    /// Why the job is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The attempts by number, from 1: `AWS_BATCH_JOB_ATTEMPT`, plus the attempts of earlier rounds.
    pub attempts: BTreeMap<u32, Attempt>,
    /// The newest attempt that has claimed the trial. It fences the older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<u32>,
    /// The secret that the runner of that attempt has drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// When that runner's last request came, to the minute. It is stored as seconds since 1970: text would be three
    /// times as long, and every report would write another kilobyte (docs/costs.md).
    #[serde(
        default,
        rename = "reported",
        skip_serializing_if = "Option::is_none",
        with = "jiff::fmt::serde::timestamp::second::optional"
    )]
    pub reported_at: Option<Timestamp>,
    /// The metrics by name. `last` is from the newest attempt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// The trial's parameters, if they were suggested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<Suggested>,
    /// The metric at the rungs that the trial has reached. The first report of a rung counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rungs: Curve,
    /// The trial's comparisons with other trials, by rung.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compared: BTreeMap<u64, Comparison>,
    /// The comparison that stopped the trial early, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<EarlyStop>,
    /// The newest attempt's end, as its runner has reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The newest attempt's stall; absent where its newest report has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// The newest attempt's silence; absent when it reports again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// The snapshot that the trial's volume starts from, where each trial of the sweep has its own. The first claim
    /// looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_from: Option<String>,
    /// The trial whose collected checkpoint this trial starts from. The first claim looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<TrialRef>,
    /// The trial's workspace, once an attempt has an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

impl Trial {
    /// Makes the record of a trial of which only the job is known.
    pub fn new(sweep: SweepId, index: u32, job: JobId) -> Self {
        Self {
            sweep,
            index,
            job,
            round: 0,
            resubmitting: false,
            ended: 0,
            status: JobStatus::Submitted,
            reason: None,
            attempts: BTreeMap::new(),
            claimed_by: None,
            secret: None,
            reported_at: None,
            metrics: BTreeMap::new(),
            suggested: None,
            rungs: Curve::new(),
            compared: BTreeMap::new(),
            stopped: None,
            end: None,
            stall: None,
            silence: None,
            starts_from: None,
            restores: None,
            workspace: None,
        }
    }

    /// Merges an observation of the job of one round. The result does not depend on the order or number of
    /// observations.
    pub fn observe(&mut self, round: u32, seen: &Observation) {
        let earlier = round.saturating_mul(JOB_ATTEMPTS);
        let ended = earlier.saturating_add(u32::try_from(seen.ended.len()).unwrap_or(u32::MAX));
        let (held_at, seen_at) = ((self.round, self.ended, self.status), (round, ended, seen.status));
        if seen_at > held_at {
            (self.round, self.ended, self.status) = seen_at;
            self.job.clone_from(&seen.job);
            self.reason.clone_from(&seen.reason);
        } else if seen_at == held_at {
            raise(&mut self.reason, &seen.reason);
        }
        for (number, attempt) in (earlier.saturating_add(1)..).zip(&seen.ended) {
            self.attempt(number).merge(attempt);
        }
        let is_placed = seen.container_instance.is_some() || seen.current != Attempt::default();
        if !seen.status.is_terminal() && is_placed {
            self.attempt(ended.saturating_add(1)).merge(&seen.current);
        }
    }

    /// Returns a short description for the history: Batch's state, the number of ended attempts, and the workspace's
    /// stage.
    pub fn state(&self) -> String {
        let workspace = self.workspace.as_ref().map(|workspace| workspace.stage.name());
        let workspace = workspace.map(|stage| format!(", workspace {stage}")).unwrap_or_default();
        format!("{:?} after {}{workspace}", self.status, self.ended)
    }

    /// Returns the trial's sweep and index.
    pub fn of(&self) -> TrialRef {
        TrialRef { sweep: self.sweep.clone(), index: self.index }
    }

    /// Fails the trial for a reason that Batch's state of the job does not show.
    pub fn fail(&mut self, reason: StopReason) {
        self.status = JobStatus::Failed;
        self.reason = Some(Reason::Stopped(reason));
    }

    /// Returns the attempts that have ended, oldest first. Their numbers have gaps where a round ended early.
    pub fn ended_attempts(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.attempts.range(..=self.ended).map(|(_, attempt)| attempt)
    }

    /// Returns the record of an attempt, which is made if there is none.
    pub fn attempt(&mut self, number: u32) -> &mut Attempt {
        self.attempts.entry(number).or_default()
    }

    /// Merges an attempt's figures. The newest report gives `last`, and all reports give `min` and `max`.
    pub fn report(&mut self, metrics: &BTreeMap<String, Metric>) {
        for (name, seen) in metrics {
            self.metrics.entry(name.clone()).and_modify(|held| *held = held.and(*seen)).or_insert(*seen);
        }
    }

    /// Returns when the last container ended.
    pub fn stopped_at(&self) -> Option<Timestamp> {
        self.attempts.values().filter_map(|attempt| attempt.stopped_at).max()
    }

    /// Returns the seconds for which containers of this trial ran, over all attempts that have ended.
    pub fn run_seconds(&self) -> f64 {
        let ran = |attempt: &Attempt| Some(attempt.stopped_at?.duration_since(attempt.started_at?).as_secs_f64());
        self.attempts.values().filter_map(ran).fold(0.0, |sum, seconds| sum + seconds)
    }
}

#[cfg(test)]
mod tests;
