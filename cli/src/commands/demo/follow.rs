//! Follows a sweep on the local stack until its results are published.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_s3::Client;
use serde_json::Value;
use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_report::diagnosis::why;
use tokio::time::{Instant, sleep};

use crate::progress::{Figures, Progress};
use spotsweep_local_stack::deploy::BUCKET;
use spotsweep_local_stack::reclaims::{Reclaims, Wish};
use spotsweep_local_stack::stack::Stack;
use spotsweep_protocol::failure::{Context, Failure};

/// Time between two reads of the records.
const POLL: Duration = Duration::from_millis(500);
/// Time between two looks at the stack if there are reclaims.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Watched {
    pub(super) sweep: SweepId,
    /// The content of `results/<sweep>/summary.json`.
    pub(super) summary: Value,
    /// Failed trials, and why they failed.
    pub(super) failures: Vec<(u32, String)>,
    /// The reclaims that happened to it, if any were asked for.
    pub(super) reclaims: Option<Reclaims>,
}

/// Shows progress until the summary exists, but at most for so many seconds. Meanwhile it carries the reclaims out.
pub(super) async fn watch(
    stack: &mut Stack,
    plan: &Value,
    timeout_seconds: u64,
    wish: Wish,
) -> Result<Watched, Failure> {
    let sweep = plan.get("sweep").and_then(Value::as_str).and_then(SweepId::parse);
    let sweep = sweep.ok_or_else(|| Failure::new(format!("the plan names no sweep: {plan}")))?;
    let reader = Reader::new(stack.config(), stack.table().to_owned());
    let record = reader.sweep(&sweep).await.context(|| format!("cannot read the sweep {sweep}"))?;
    let plan = record.and_then(|record| record.plan);
    let plan = plan.ok_or_else(|| Failure::new(format!("the sweep {sweep} has an answer but no plan in the table")))?;
    let s3 = spotsweep_aws::path_style_s3(stack.config());
    let mut progress = Progress::new(u64::from(plan.trials));
    let mut reclaims = (!wish.is_empty()).then(|| Reclaims::new(stack, wish, &plan));
    let deadline = Instant::now() + Duration::from_secs(timeout_seconds);
    loop {
        stack.check()?;
        let published = summary(&s3, &sweep).await?;
        let trials = reader.trials(&sweep).await.context(|| format!("cannot read the trials of {sweep}"))?;
        progress.show(&figures(&plan, &trials, &stack.snapshot()));
        if let Some(summary) = published {
            // This finds the outcome of the reclaims that ended with the sweep.
            if let Some(reclaims) = &mut reclaims {
                reclaims.tick(stack, &trials, plan.trials).iter().for_each(|line| progress.say(line));
            }
            return Ok(Watched { sweep, summary, failures: failures(&trials), reclaims });
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(format!("the sweep {sweep} had not finished after {timeout_seconds} s")));
        }
        match &mut reclaims {
            Some(reclaims) => disturb(reclaims, stack, (&plan, &trials), &progress).await,
            None => sleep(POLL).await,
        }
    }
}

/// Carries reclaims out until it is time to read the records again.
async fn disturb(reclaims: &mut Reclaims, stack: &Stack, (plan, trials): (&Plan, &[Trial]), progress: &Progress) {
    let next = Instant::now() + POLL;
    while Instant::now() < next {
        reclaims.tick(stack, trials, plan.trials).iter().for_each(|line| progress.say(line));
        sleep(TICK).await;
    }
}

fn figures(plan: &Plan, trials: &[Trial], snapshot: &Value) -> Figures {
    Figures { instances: instances(snapshot), ..Figures::of(Some(plan), trials) }
}

/// Number of instances by zone and state, of those that still cost something.
fn instances(snapshot: &Value) -> BTreeMap<String, BTreeMap<String, u64>> {
    let zones = snapshot.get("zones").and_then(Value::as_object).into_iter().flatten();
    let counts = |states: &Value| {
        let states = states.as_object().into_iter().flatten();
        let billed = states.filter(|(state, _)| matches!(state.as_str(), "pending" | "running"));
        billed.filter_map(|(state, count)| Some((state.clone(), count.as_u64().filter(|count| *count > 0)?))).collect()
    };
    zones
        .map(|(zone, states)| (zone.clone(), counts(states)))
        .filter(|(_, states): &(_, BTreeMap<_, _>)| !states.is_empty())
        .collect()
}

/// The summary, once the sweep has settled.
async fn summary(client: &Client, sweep: &SweepId) -> Result<Option<Value>, Failure> {
    let key = format!("{}summary.json", sweep.results_prefix());
    let got = match client.get_object().bucket(BUCKET).key(&key).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => return Ok(None),
        got => got.context(|| format!("cannot read {key}"))?,
    };
    let body = got.body.collect().await.context(|| format!("cannot read {key}"))?.into_bytes();
    serde_json::from_slice(&body).map(Some).context(|| format!("{key} is not JSON"))
}

/// Failures, also of cancelled trials. A trial that was stopped early is no failure. Its job may have failed all the
/// same, when it was stopped instead of moved, or after a reclaim in its last seconds.
fn failures(trials: &[Trial]) -> Vec<(u32, String)> {
    let failed = trials.iter().filter(|trial| matches!(trial.standing(), Standing::Failed | Standing::Cancelled));
    failed.map(|trial| (trial.index, why(trial))).collect()
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::stop::StopReason;
    use spotsweep_records::trial::{Comparison, EarlyStop, JobStatus, Reason};

    use super::*;
    use crate::live::samples::trial;

    /// The jobs have failed, because their instances were reclaimed or the jobs were terminated.
    #[test]
    fn trials_that_were_stopped_are_no_failures() {
        let failed = trial(0, JobStatus::Failed);
        let (mut early, mut by_target) = (trial(1, JobStatus::Failed), trial(2, JobStatus::Failed));
        early.stopped = Some(EarlyStop {
            rung: 6,
            by: Comparison { value: 0.961, cut: Some(0.9638), of: 8 },
            at_interruption: true,
        });
        by_target.reason = Some(Reason::Stopped(StopReason::Target { reached: "0.9".to_owned() }));
        let mut cancelled = trial(3, JobStatus::Failed);
        cancelled.reason = Some(Reason::from("spotsweep: cancelled by jo".to_owned()));
        let trials = [failed, early, by_target, cancelled, trial(4, JobStatus::Succeeded)];
        let failures: Vec<u32> = failures(&trials).into_iter().map(|(index, _)| index).collect();
        assert_eq!(failures, [0, 3]);
    }
}
