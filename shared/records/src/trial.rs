//! A trial and what Batch and its own attempts have told of it.
//!
//! ```text
//! Waiting  --STARTING-----------------> Starting
//! Starting --RUNNING------------------> Running
//! Running  --attempt ended, retry-----> Waiting (RUNNABLE again, one attempt longer)
//! any      --SUCCEEDED----------------> Succeeded
//! any      --FAILED-------------------> Failed
//! ```
//! Events come late, twice and in any order (fact 2), so nothing here replaces: every
//! observation is *merged*, field by field, by operations that commute and repeat without
//! effect. The order of observations is (attempts ended, status), which Batch only ever raises.

mod early_stop;
mod interruptions;
mod job_status;
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
pub use job_status::JobStatus;
pub use reason::Reason;
pub use retry::{RetryOn, RetryRule, retry_rules};
pub use silence::{AgentState, Host, InstanceStatus, Silence, is_dead};
use spotsweep_protocol::claim::{Market, Outputs};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Curve;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;
use spotsweep_search::stop::Rank;
pub use stall::Stall;
pub use standing::Standing;
pub use suggested::Suggested;

/// Most attempts that Batch makes of one job (fact 18).
pub const JOB_ATTEMPTS: u32 = 10;

/// Exit code by which the runner says "interrupted, start me again" (EX_TEMPFAIL).
pub const INTERRUPTED_EXIT_CODE: i32 = 75;

/// How Batch's reason begins where the instance was taken (fact 12).
pub const HOST_GONE: &str = "Host EC2";

/// How Batch's reason begins where Docker, ECR or the ECS agent could not start the container
/// (<https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html>).
pub const NOT_STARTED: &str = "Task failed to start";

/// The container's reason where the ECS agent was not connected (the same page).
pub const AGENT_FAILED: &str = "AGENT";

/// False starts in a row before a trial is given up. One hiccup of Docker, ECR or the agent is worth another try (fact
/// 18), and so is one bad instance; an image that does not exist, or has no driver, fails each time.
pub const MAX_FALSE_STARTS: usize = 5;

/// How Batch's reason begins where an attempt ran for longer than the job's timeout.
const TIMED_OUT: &str = "Job attempt duration exceeded timeout";

/// What one event or one DescribeJobs answer says of a trial's job.
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
    /// The attempt under way, as far as it is known.
    pub current: Attempt,
    /// ARN of the ECS container instance that the attempt under way is placed on, which is not the EC2 instance
    /// (fact 13). Asked about at once and not kept: it would be a sixth of a record.
    pub container_instance: Option<String>,
    /// Whether the job was cancelled or terminated, so that its end says nothing of its last attempt.
    pub was_stopped: bool,
}

/// One container run of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// When the container started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// The container's exit code; absent after a spot reclaim (fact 12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// CloudWatch Logs stream of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_stream: Option<String>,
    /// EC2 instance, as the attempt itself told when it claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Availability zone, as the attempt itself told when it claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Instance type, as the attempt itself told when it claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// How the instance is paid for, as the attempt itself told when it claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<Market>,
    /// The newest report's number within the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

impl Attempt {
    /// Whether it ended because its instance was taken: in Batch's words, by the runner's own exit code, or because the
    /// container ran and its end was never seen. No document promises that Batch says "Host EC2" of every such end.
    pub fn was_interrupted(&self) -> bool {
        let by_code = self.exit_code == Some(INTERRUPTED_EXIT_CODE);
        !self.has_timed_out() && (by_code || self.is_reclaimed() || self.is_lost())
    }

    /// Whether it ran for longer than the job's timeout. Batch starts no further attempt then, whatever exit code the
    /// container ends with as it is stopped (<https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html>).
    pub fn has_timed_out(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.of_batch().starts_with(TIMED_OUT))
    }

    /// Of one that has ended: whether its container never ran, or its instance could not train.
    pub fn is_false_start(&self) -> bool {
        (self.ended_unseen() && !self.has_run()) || self.unfit().is_some()
    }

    /// It has run, and Batch says nothing of how it ended.
    fn is_lost(&self) -> bool {
        self.stopped_at.is_some() && self.ended_unseen() && self.has_run()
    }

    fn is_reclaimed(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.of_batch().starts_with(HOST_GONE))
    }

    /// An exit code is the only proof that a container ended by itself.
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

/// Takes the larger value; absent is smallest. Commutes, so the order of events does not matter.
fn raise<T: Ord + Clone>(held: &mut Option<T>, seen: &Option<T>) {
    if *seen > *held {
        held.clone_from(seen);
    }
}

/// What the runner told at the end of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The attempt that ended.
    pub attempt: u32,
    /// The training command's exit code.
    pub exit_code: i32,
    /// What was uploaded.
    pub outputs: Outputs,
    /// Wall time of the training command.
    pub seconds: f64,
    /// What its output gives as the reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One trial: one parameter set, one array index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The sweep.
    pub sweep: SweepId,
    /// Index within the sweep, from 0.
    pub index: u32,
    /// The trial's Batch job; while it is being submitted again, the one before.
    pub job: JobId,
    /// Which submission of the trial that is, from 0: Batch makes ten attempts of one job.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: u32,
    /// Whether the round's job has yet to be submitted, or found.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resubmitting: bool,
    /// Number of attempts that have ended.
    pub ended: u32,
    /// The job's state.
    pub status: JobStatus,
    /// Why it is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// By `AWS_BATCH_JOB_ATTEMPT`, from 1.
    pub attempts: BTreeMap<u32, Attempt>,
    /// The newest attempt that has claimed the trial: it fences the older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<u32>,
    /// The secret of the runner that has claimed it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// When that runner last asked or reported, by the minute. Stored as seconds since 1970: as text it would be three
    /// times as long, and every report would write another kilobyte (docs/costs.md).
    #[serde(
        default,
        rename = "reported",
        skip_serializing_if = "Option::is_none",
        with = "jiff::fmt::serde::timestamp::second::optional"
    )]
    pub reported_at: Option<Timestamp>,
    /// By metric name; `last` is the newest attempt's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// Its parameters, where they were suggested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<Suggested>,
    /// The metric at the rungs that it has reached. The first report of a rung counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rungs: Curve,
    /// By rung: its comparisons with other trials.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compared: BTreeMap<u64, Comparison>,
    /// How it compared with the other trials when they were last in view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Why it does not go on, where it was stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<EarlyStop>,
    /// The newest attempt's end, as the runner told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The newest attempt's stall; absent where its newest report has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// The newest attempt whose reports were missing for long; absent where it reports again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// The snapshot that its volume starts from, where each trial of the sweep has its own; its first claim looks it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_from: Option<String>,
    /// The trial whose collected checkpoint it starts from; its first claim looks that up, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<TrialRef>,
    /// The trial's volume, from the first place on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

impl Trial {
    /// A trial of which nothing is known but its job.
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
            rank: None,
            stopped: None,
            end: None,
            stall: None,
            silence: None,
            starts_from: None,
            restores: None,
            workspace: None,
        }
    }

    /// Merges what Batch says of the trial's job of a round. The result does not depend on the order or number of
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

    /// Where it stands, in short: Batch's state of its newest attempt, and its workspace's stage.
    pub fn state(&self) -> String {
        let workspace = self.workspace.as_ref().map(|workspace| workspace.stage.name());
        let workspace = workspace.map(|stage| format!(", workspace {stage}")).unwrap_or_default();
        format!("{:?} after {}{workspace}", self.status, self.ended)
    }

    /// Which trial of which sweep it is.
    pub fn of(&self) -> TrialRef {
        TrialRef { sweep: self.sweep.clone(), index: self.index }
    }

    /// It ends here, as Batch's state of its job does not say.
    pub fn fail(&mut self, reason: StopReason) {
        self.status = JobStatus::Failed;
        self.reason = Some(Reason::Stopped(reason));
    }

    /// The attempts that have ended, oldest first. Their numbers have gaps where a round ended early.
    pub fn ended_attempts(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.attempts.range(..=self.ended).map(|(_, attempt)| attempt)
    }

    /// Whether Batch has given it up for reclaims or false starts alone. Reclaims are retried by Batch until the
    /// attempts of one job are used up; whether a rule matches an end without words is not documented.
    pub fn is_worn_out(&self) -> bool {
        let is_last = self.ended == self.round.saturating_add(1).saturating_mul(JOB_ATTEMPTS);
        let last = self.attempts.get(&self.ended);
        let was_interrupted = last.is_some_and(|last| last.is_lost() || (is_last && last.was_interrupted()));
        let is_false_start = (1..MAX_FALSE_STARTS).contains(&self.false_starts());
        self.status == JobStatus::Failed && (was_interrupted || is_false_start)
    }

    /// The record of an attempt, made where there is none.
    pub fn attempt(&mut self, number: u32) -> &mut Attempt {
        self.attempts.entry(number).or_default()
    }

    /// Merges an attempt's figures: the newest report gives `last`, all give `min` and `max`.
    pub fn report(&mut self, metrics: &BTreeMap<String, Metric>) {
        for (name, seen) in metrics {
            self.metrics.entry(name.clone()).and_modify(|held| *held = held.and(*seen)).or_insert(*seen);
        }
    }

    /// When the last attempt's container ended.
    pub fn stopped_at(&self) -> Option<Timestamp> {
        self.attempts.values().filter_map(|attempt| attempt.stopped_at).max()
    }

    /// Seconds in which a container of this trial ran, over all attempts that have ended.
    pub fn run_seconds(&self) -> f64 {
        let ran = |attempt: &Attempt| Some(attempt.stopped_at?.duration_since(attempt.started_at?).as_secs_f64());
        self.attempts.values().filter_map(ran).fold(0.0, |sum, seconds| sum + seconds)
    }
}

#[cfg(test)]
mod tests;
