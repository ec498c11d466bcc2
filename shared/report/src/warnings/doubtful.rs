//! Warns if two readings of a trial's newest value disagree, because its rank may be by the wrong one.

use super::{LISTED_TRIALS, Trial};
use spotsweep_protocol::words::{counted, figure};
use spotsweep_records::sweep::Ranking;

pub(super) fn doubtful(by: &Ranking, trials: &[Trial]) -> Option<String> {
    let name = &by.name;
    let both = |trial: &Trial| {
        let metric = trial.metrics.get(name)?;
        Some(format!("trial {} ({}, and not {})", trial.index, figure(metric.last), figure(metric.other?)))
    };
    let all: Vec<String> = trials.iter().filter_map(both).collect();
    (!all.is_empty()).then(|| {
        let more = if all.len() > LISTED_TRIALS { ", …" } else { "" };
        let listed = all.iter().take(LISTED_TRIALS).cloned().collect::<Vec<_>>().join(", ");
        let trials = counted(all.len(), "trial");
        format!(
            "{trials} logged two values of {name} for one step, and one was taken: {listed}{more}; log only one under this \
             name, or find it by a pattern in `metrics`"
        )
    })
}
