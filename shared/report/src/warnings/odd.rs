//! Warns of a value that lies apart from those of all other trials, because it does not decide about them.

use spotsweep_protocol::words::figure;
use spotsweep_ranking::value_so_far;
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::Trial;
use spotsweep_search::stop::lies_apart;

/// Returns the warning if the sweep compares its trials or has a target.
pub(super) fn odd(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let by = plan.metric.as_ref().filter(|_| plan.target.is_some() || plan.early_stopping.is_some())?;
    let values: Vec<(u32, f64)> =
        trials.iter().filter_map(|trial| Some((trial.index, value_so_far(by, trial)?))).collect();
    let (index, value) = values.iter().copied().min_by(|one, other| by.cost(one.1).total_cmp(&by.cost(other.1)))?;
    let others = values.iter().filter(|(other, _)| *other != index).map(|(_, value)| *value);
    let rest: Vec<f64> = others.chain(plan.target).map(|value| by.cost(value)).collect();
    lies_apart(by.cost(value), &rest).then(|| {
        let (name, value) = (&by.name, figure(value));
        format!("{name} = {value} of trial {index} lies apart from all others: it stops no trial and reaches no target")
    })
}
