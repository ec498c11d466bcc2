//! Warns of a metric that never appears, because without it trials cannot be compared or ranked, and a search cannot
//! learn.

use jiff::Timestamp;

use super::{others, reports, seconds_trained};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Unit;
use spotsweep_protocol::words::{counted, duration};
use spotsweep_records::sweep::{Plan, Ranking};
use spotsweep_records::trial::{Standing, Trial};

/// After so many reports of a trial, a metric that is in none of them is missed.
pub(super) const REPORTS: u64 = 2;

/// Seconds of training after which a trial without any metric is mentioned. It is this long because a first epoch may
/// take as long.
const LONG_SECONDS: f64 = 1800.0;

/// Returns what is wrong with the sweep's metric, by the reports so far. The metric may still appear later.
pub(super) fn unseen(plan: &Plan, trials: &[Trial], now: Timestamp) -> Option<String> {
    let by = plan.metric.as_ref()?;
    let seen: Vec<&Metric> = trials.iter().filter_map(|trial| trial.metrics.get(&by.name)).collect();
    if !seen.is_empty() {
        return undecided(plan, by, trials, &seen);
    }
    // Trials that succeeded without the metric have a warning of their own.
    if trials.iter().any(|trial| trial.standing() == Standing::Succeeded) {
        return None;
    }
    let name = &by.name;
    if let Some(trial) = trials.iter().find(|trial| !trial.metrics.is_empty() && reports(trial) >= REPORTS) {
        let (index, reports) = (trial.index, counted(reports(trial), "report"));
        return Some(format!(
            "no trial has reported `{name}` yet, in {reports} of trial {index}: {}{}",
            without(plan),
            others(by, trials)
        ));
    }
    let trained = |trial: &Trial| (seconds_trained(trial, now), trial.index);
    let silent = trials.iter().filter(|trial| trial.standing() == Standing::Running && trial.metrics.is_empty());
    let (seconds, index) = silent.map(trained).max_by(|left, right| left.0.total_cmp(&right.0))?;
    (seconds >= LONG_SECONDS).then(|| {
        format!(
            "no trial has reported a metric yet, and trial {index} has trained for {}: {}; if it is not still to come, \
             print it as `{name}=…`",
            duration(seconds),
            without(plan)
        )
    })
}

/// Returns what the sweep lacks without the metric.
fn without(plan: &Plan) -> &'static str {
    match (plan.comparison().is_some(), plan.suggests) {
        (true, true) => "without it no trial is stopped early, and the search learns nothing",
        (true, false) => "without it no trial is stopped early",
        (false, true) => "without it the search learns nothing",
        (false, false) => "without it no trial has a rank",
    }
}

/// Returns the warning about a metric that was reported in a way by which no rung is ever decided.
fn undecided(plan: &Plan, by: &Ranking, trials: &[Trial], seen: &[&Metric]) -> Option<String> {
    let (rule, _) = plan.comparison()?;
    let has_reported = |trial: &Trial| trial.metrics.contains_key(&by.name) && reports(trial) >= REPORTS;
    if trials.iter().any(|trial| !trial.rungs.is_empty()) || !trials.iter().any(has_reported) {
        return None;
    }
    let name = &by.name;
    if seen.iter().all(|metric| !metric.source.is_counted()) {
        let place = match seen.iter().map(|metric| metric.source).max()? {
            Source::OfTraining => "in lines about the training data",
            Source::Found => "in files that were there before the training",
            Source::ProgressBar => "in progress bars, which repeat values,",
            Source::Smoothed | Source::Rows | Source::Text | Source::Recorded | Source::Stated => return None,
        };
        return Some(format!(
            "`{name}` was found only {place} and no rung counts these: {}; print it as `{name}=…`",
            without(plan)
        ));
    }
    let has_no_step = rule.unit == Unit::Step && seen.iter().all(|metric| metric.step.is_none());
    has_no_step.then(|| {
        format!(
            "`{name}` is reported without a step, and `rungs_by: step` counts steps: {}; print `step=…` or `epoch=…` \
             with it, or delete `rungs_by`",
            without(plan)
        )
    })
}
