//! Warns of rungs beyond the end of the training, because no trial is ever compared at them.

use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Unit;
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Standing, Trial};

/// Fewest finished trials for the warning, because one trial may have ended its training early by itself.
const LEAST: usize = 2;

/// Returns the warning if trials have finished without reaching a rung of the rule.
pub(super) fn unreached(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let (rule, by) = plan.comparison()?;
    let has_place = |metric: &Metric| rule.unit == Unit::Reports || metric.step.is_some();
    let is_counted = |metric: &&Metric| metric.source.is_counted() && has_place(metric);
    let counts = |trial: &Trial| trial.metrics.get(&by.name).filter(is_counted).is_some();
    let finished = trials.iter().filter(|trial| trial.standing() == Standing::Succeeded && counts(trial));
    let finished: Vec<&Trial> = finished.collect();
    if finished.len() < LEAST {
        return None;
    }
    let (what, key) = match rule.unit {
        Unit::Reports => (format!("so many values of {}", by.name), "write smaller numbers in `early_terminate`"),
        Unit::Step => ("such a step".to_owned(), "write smaller numbers in `early_terminate`, or delete `rungs_by`"),
    };
    let those = counted(finished.len(), "trial");
    let (first, last) = (rule.rule.rungs().first()?, rule.rule.rungs().last()?);
    let reached = trials.iter().filter_map(|trial| trial.rungs.keys().next_back()).max();
    let Some(reached) = reached else {
        return Some(format!(
            "none of the {those} that have finished reached the first rung, {first}: none reported {what}, and no \
             trial is stopped early; {key}"
        ));
    };
    let length = rule.length.filter(|_| reached < last)?;
    Some(format!(
        "none of the {those} that have finished reached the rung at {last}, of `max_iter: {length}`: the last one that \
         any trial reached is {reached}; set `max_iter` to the length of a full training"
    ))
}
