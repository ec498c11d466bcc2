//! Stops a sweep whose first trials all fail at once, because each further trial would start an instance and fail too.

use jiff::Timestamp;

use spotsweep_protocol::stop::StopReason;
use spotsweep_records::sweep::instances;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};

/// The number of failures at once that stop a sweep. After as many, an agent of W&B ends by default
/// (`WANDB_AGENT_MAX_INITIAL_FAILURES`, <https://docs.wandb.ai/guides/track/environment-variables>).
const FIRST: usize = 5;

/// Most characters of a failure that are quoted.
const MOST_QUOTED: usize = 300;

/// Returns how a trial has ended, if it failed soon after its start without any metric.
fn failure_at_once(trial: &Trial) -> Option<String> {
    let end = trial.end.as_ref().filter(|_| trial.status == JobStatus::Failed && trial.metrics.is_empty())?;
    instances::failure_at_once(end.exit_code, end.seconds, end.error.as_deref())
}

fn has_failed_at_once(trial: &Trial) -> bool {
    failure_at_once(trial).is_some()
}

/// Whether this change of a trial may be the one that stops the sweep.
pub(super) fn may_be_due(sweep: &Sweep, plan: &Plan, held: Option<&Trial>, trial: &Trial) -> bool {
    let is_new = has_failed_at_once(trial) && !held.is_some_and(has_failed_at_once);
    is_new && !plan.starts_all && plan.trials as usize > FIRST && !sweep.instances.has_trained()
}

/// Returns why the sweep has to be stopped, by all trials that have begun; `None` if it continues. All trials that
/// began before the fifth failure must have failed in the same way. A trial that still runs may show that only some
/// parameters cause the failure.
pub(super) fn reason(plan: &Plan, trials: &[Trial]) -> Option<StopReason> {
    let has_trained = |trial: &Trial| !trial.metrics.is_empty() || trial.status == JobStatus::Succeeded;
    if plan.starts_all || plan.trials as usize <= FIRST || trials.iter().any(has_trained) {
        return None;
    }
    let mut failed: Vec<(Timestamp, &Trial)> = trials
        .iter()
        .filter(|trial| has_failed_at_once(trial))
        .filter_map(|trial| Some((trial.attempts.values().filter_map(|attempt| attempt.stopped_at).max()?, trial)))
        .collect();
    failed.sort_by_key(|(at, trial)| (*at, trial.index));
    let (fifth, _) = failed.get(FIRST - 1)?;
    let has_begun = |trial: &Trial| {
        let starts = trial.attempts.values().map(|attempt| attempt.started_at);
        // An attempt can claim its trial before Batch reports its start.
        starts.min().is_some_and(|start| start.is_none_or(|at| at <= *fifth))
    };
    if trials.iter().any(|trial| has_begun(trial) && !has_failed_at_once(trial)) {
        return None;
    }
    let (_, first) = failed.first()?;
    let failure = failure_at_once(first)?;
    let cause = format!("the first {FIRST} trials failed at once; trial {}: {failure}", first.index);
    Some(StopReason::FailingFast { cause: cause.chars().take(MOST_QUOTED).collect() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use spotsweep_protocol::claim::Outputs;
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;
    use spotsweep_records::trial::{Attempt, End};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn plan(settings: &serde_json::Value) -> Plan {
        let mut plan = json!({ "trials": 12, "queue": "q", "definition": "d:1", "attempts": 1, "parts": [] });
        plan.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        serde_json::from_value(plan).unwrap()
    }

    /// Returns a trial that began at this second, with the second of its failure and the length of its training.
    fn trial(index: u32, began: i64, failed: Option<(i64, f64)>) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
        let mut attempt = Attempt { started_at: Some(at(began)), ..Attempt::default() };
        trial.status = JobStatus::Running;
        if let Some((ended, seconds)) = failed {
            attempt.stopped_at = Some(at(ended));
            trial.status = JobStatus::Failed;
            let error = Some("ModuleNotFoundError: No module named 'trane'".to_owned());
            trial.end = Some(End { attempt: 1, exit_code: 1, outputs: Outputs::default(), seconds, error });
        }
        trial.attempts.insert(1, attempt);
        trial
    }

    fn failing(count: u32) -> Vec<Trial> {
        (0..count).map(|index| trial(index, 0, Some((10 + i64::from(index), 3.0)))).collect()
    }

    #[test]
    fn a_sweep_is_stopped_where_all_that_began_has_failed_at_once() {
        let usual = plan(&json!({}));
        let with = |count: u32, more: Trial| [failing(count), vec![more]].concat();
        let trained = |mut trial: Trial| {
            trial.metrics.insert("loss".to_owned(), Metric::of(0.5, None, Source::Stated));
            trial
        };
        let cases: [(&str, Vec<Trial>, bool); 9] = [
            ("five", failing(5), true),
            ("four", failing(4), false),
            ("one began after the fifth failure", with(5, trial(5, 20, None)), true),
            ("one that began before runs", with(5, trial(5, 0, None)), false),
            ("one has claimed, and Batch has not yet said when it started", with(5, trial(5, 14, None)), false),
            ("one began before, and has failed too", with(5, trial(5, 0, Some((99, 90.0)))), true),
            ("one has failed after a long training", with(5, trial(5, 0, Some((999, 900.0)))), false),
            ("one trains, whenever it began", with(5, trained(trial(5, 20, None))), false),
            ("one has failed with a metric", with(5, trained(trial(5, 0, Some((20, 3.0))))), false),
        ];
        for (what, trials, is_stopped) in cases {
            assert_eq!(reason(&usual, &trials).is_some(), is_stopped, "{what}");
        }
        let unknown = Trial { attempts: [(1, Attempt::default())].into(), ..trial(5, 0, None) };
        assert_eq!(reason(&usual, &with(5, unknown)), None, "its start is not known yet");
        let stopped = reason(&usual, &failing(8)).unwrap().to_string();
        assert!(stopped.contains("trial 0: exit code 1, ModuleNotFoundError"), "{stopped}");
        assert_eq!(reason(&plan(&json!({ "starts_all": true })), &failing(8)), None);
        assert_eq!(reason(&plan(&json!({ "trials": 5 })), &failing(5)), None, "none is left to start");
    }
}
