//! Looks at a sweep: its record, its trials' records, and Batch's reasons if trials wait for long.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::Trial;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{Instant, sleep};

use super::queued;
use crate::sweeps::Found;
use spotsweep_protocol::failure::{Context, Failure};

/// Time between two looks at a sweep, and at one of which more than [`MANY`] trials have started, because each of them
/// is a row.
const PAUSE: Duration = Duration::from_secs(2);
const LONG_PAUSE: Duration = Duration::from_secs(5);
const MANY: usize = 500;
/// The same for a sweep whose trials have all ended: its end is seconds away, and a demo's stack ends with it.
const SHORT_PAUSE: Duration = Duration::from_millis(500);
/// Time between two questions to Batch.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// DescribeJobs accepts so many ids (fact 19). The head of the queue is blocked, and it is among the first jobs.
const MOST_IDS: usize = 100;
/// How Batch's reasons begin for a job that blocks its queue. Other reasons are about the attempt before.
const BLOCKED: [&str; 3] = ["CAPACITY:", "MISCONFIGURATION:", "UNDETERMINED"];
/// Looks that may fail in a row. It is some minutes of a lost network, because each takes its own time to fail.
const MOST_FAILURES: u32 = 60;

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// Time of the look.
    pub(crate) at: Timestamp,
    /// The sweep's record.
    pub(crate) sweep: Sweep,
    /// Trials that have ever started, by index.
    pub(crate) trials: Vec<Trial>,
    /// Why trials wait.
    pub(crate) batch: Batch,
    /// The result next to an ended sweep, if it could be read: see [`outcome`].
    pub(crate) outcome: Option<Value>,
}

/// What Batch says about waiting trials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Reasons why a job blocks its queue.
    pub(crate) reasons: BTreeSet<String>,
    /// What is wrong with the queue.
    pub(crate) queue: Option<String>,
    /// Why nothing is known.
    pub(crate) unasked: Option<String>,
}

impl Look {
    /// Number of trials. It is 0 until the file has been read.
    pub(crate) fn total(&self) -> u32 {
        self.sweep.plan.as_ref().map_or(0, |plan| plan.trials)
    }

    /// How long to wait until the next look.
    fn pause(&self) -> Duration {
        let ended = self.trials.iter().filter(|trial| trial.is_over()).count();
        match self.trials.len() {
            rows if rows > MANY => LONG_PAUSE,
            _few if ended > 0 && ended == self.total() as usize => SHORT_PAUSE,
            _few => PAUSE,
        }
    }

    /// Whether nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.sweep.stage, Stage::Settled | Stage::Rejected)
    }
}

/// Looks at one sweep.
pub(crate) struct Watcher {
    found: Found,
    batch: aws_sdk_batch::Client,
    asked: Option<(Instant, Batch)>,
}

impl Watcher {
    pub(crate) fn new(found: Found) -> Self {
        let batch = aws_sdk_batch::Client::new(&found.target.batch);
        Self { found, batch, asked: None }
    }

    /// Reads the sweep, then its trials. If the sweep has settled, so have they. The results are complete when the
    /// summary exists, shortly before the record says so, and a demo's stack ends then.
    pub(crate) async fn look(&mut self) -> Result<Look, Failure> {
        self.found.refresh().await?;
        let mut sweep = self.found.sweep.clone();
        let outcome = match sweep.stage {
            Stage::Settling => outcome(&self.found).await.ok().filter(|summary| !summary.is_null()),
            Stage::Settled | Stage::Rejected => outcome(&self.found).await.ok(),
            Stage::Reading
            | Stage::Keeping { .. }
            | Stage::Submitting { .. }
            | Stage::Announcing
            | Stage::Running
            | Stage::Withdrawing { .. } => None,
        };
        if outcome.is_some() && sweep.stage == Stage::Settling {
            sweep.enter(Stage::Settled);
        }
        let trials = if sweep.plan.is_some() { self.found.trials().await? } else { Vec::new() };
        let at = Timestamp::now();
        let batch =
            if queued::is_long(&sweep, &trials, at) { self.ask(&sweep, &trials).await } else { Batch::default() };
        Ok(Look { at, sweep, trials, batch, outcome })
    }

    /// Asks Batch from time to time. If it cannot be asked, the rest is shown all the same.
    async fn ask(&mut self, sweep: &Sweep, trials: &[Trial]) -> Batch {
        if let Some((_, batch)) = self.asked.as_ref().filter(|(at, _)| at.elapsed() < ASK_EVERY) {
            return batch.clone();
        }
        let answer = match &sweep.plan {
            Some(plan) => self.blocked(plan, trials).await,
            None => Ok(Batch::default()),
        };
        let batch = answer.unwrap_or_else(|failure| Batch { unasked: Some(failure.to_string()), ..Batch::default() });
        self.asked = Some((Instant::now(), batch.clone()));
        batch
    }

    async fn blocked(&self, plan: &Plan, trials: &[Trial]) -> Result<Batch, Failure> {
        let jobs = self.batch.describe_jobs().set_jobs(Some(waiting(plan, trials))).send().await;
        let jobs = jobs.context(|| "DescribeJobs failed")?.jobs.unwrap_or_default();
        let reasons = jobs.into_iter().filter_map(|job| job.status_reason);
        let reasons = reasons.filter(|reason| BLOCKED.iter().any(|begin| reason.starts_with(begin))).collect();
        let queues = self.batch.describe_job_queues().job_queues(&plan.queue).send().await;
        let queues = queues.context(|| "DescribeJobQueues failed")?.job_queues.unwrap_or_default();
        let queue = match queues.first() {
            None => Some(format!("there is no queue {}", plan.queue)),
            Some(queue) => {
                let state = queue.state.as_ref().map_or("", |state| state.as_str());
                let status = queue.status.as_ref().map_or("", |status| status.as_str());
                let is_fine = state == "ENABLED" && matches!(status, "VALID" | "UPDATING" | "CREATING" | "");
                let reason = queue.status_reason.as_deref().unwrap_or_default();
                (!is_fine).then(|| format!("the queue {} is {state}, {status}: {reason}", plan.queue))
            }
        };
        Ok(Batch { reasons, queue, unasked: None })
    }

    /// Looks repeatedly until the sweep has ended, or the receiver is gone. A failed look is passed on and repeated.
    /// After too many failures, the last one ends it.
    pub(crate) fn follow(mut self, first: &Look) -> Receiver<Result<Look, Failure>> {
        let (to, looks) = mpsc::channel(1);
        let (mut pause, mut failures) = (first.pause(), 0);
        tokio::spawn(async move {
            while failures < MOST_FAILURES {
                sleep(pause).await;
                let look = self.look().await;
                failures = if look.is_err() { failures + 1 } else { 0 };
                let is_over = look.as_ref().is_ok_and(Look::is_over);
                pause = look.as_ref().map_or(PAUSE, Look::pause);
                if to.send(look).await.is_err() || is_over {
                    return;
                }
            }
        });
        looks
    }
}

/// The result next to an ended sweep: `summary.json`, or the answer to a rejected file. Null if it does not exist any
/// more.
pub(crate) async fn outcome(found: &Found) -> Result<Value, Failure> {
    let Sweep { id, upload, stage, .. } = &found.sweep;
    let is_rejected = *stage == Stage::Rejected;
    let key = if is_rejected { upload.rejected_key() } else { format!("{}summary.json", id.results_prefix()) };
    let Some(bytes) = found.read(&key).await? else { return Ok(Value::Null) };
    let value: Value = serde_json::from_slice(&bytes).context(|| format!("{key} is not JSON"))?;
    // A later file of the same name has its own answer there.
    let is_its_own = value.get("sweep").and_then(Value::as_str) == Some(id.as_str());
    Ok(if is_its_own { value } else { Value::Null })
}

/// Jobs of the first trials that have no instance.
fn waiting(plan: &Plan, trials: &[Trial]) -> Vec<String> {
    let mut seen = trials.iter().peekable();
    let job = |index: u32| match seen.next_if(|trial| trial.index == index) {
        Some(trial) => queued::is_waiting(trial).then(|| trial.job.to_string()),
        None => plan.job_of(index).map(|job| job.to_string()),
    };
    (0..plan.trials).filter_map(job).take(MOST_IDS).collect()
}

#[cfg(test)]
mod tests {
    use spotsweep_records::trial::JobStatus;

    use super::*;
    use crate::live::samples::{look, running, succeeded, sweep, trial};

    #[test]
    fn looks_keep_their_distance() {
        let all = |count: u32, over: bool| -> Vec<Trial> {
            (0..count).map(|index| if over { succeeded(index, 1, 2, 0.5) } else { running(index, "a", 1) }).collect()
        };
        let pause = |total, trials| look(9, total, trials).pause();
        assert_eq!(pause(4, vec![]), PAUSE);
        assert_eq!(pause(4, all(3, true)), PAUSE, "one has yet to start");
        assert_eq!(pause(4, all(4, true)), SHORT_PAUSE);
        assert_eq!(pause(501, all(501, false)), LONG_PAUSE);
        assert_eq!(pause(501, all(501, true)), LONG_PAUSE, "each look is a megabyte");
    }

    #[test]
    fn batch_is_asked_about_those_that_wait() {
        let Some(plan) = sweep(300, Stage::Running).plan else { unreachable!("it has a plan") };
        let again = trial(3, JobStatus::Runnable);
        let seen = [succeeded(0, 1, 2, 0.5), running(1, "a", 1), again];
        let ids = waiting(&plan, &seen);
        assert_eq!((ids.len(), &ids[..3]), (MOST_IDS, &["job:2".to_owned(), "job:3".into(), "job:4".into()][..]));
        let all: Vec<Trial> = (0..300).map(|index| running(index, "a", 1)).collect();
        assert!(waiting(&plan, &all).is_empty());
    }
}
