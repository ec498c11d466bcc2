//! Decisions about early stopping: they are final, made once for each rung, and never stop a leading trial.

use std::collections::BTreeMap;

use spotsweep_protocol::rungs::Curve;
use spotsweep_records::sweep::{EarlyStopping, Plan};
use spotsweep_records::trial::{Comparison, EarlyStop, Suggested, Trial};
use spotsweep_search::stop::Rule;

use super::{Seen, Watch};
use crate::harness::Harness;

/// The decisions about a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Decided {
    rungs: Curve,
    compared: BTreeMap<u64, Comparison>,
    stopped: Option<EarlyStop>,
    suggested: Option<Suggested>,
}

impl Decided {
    fn of(trial: &Trial) -> Self {
        Self {
            rungs: trial.rungs.clone(),
            compared: trial.compared.clone(),
            stopped: trial.stopped,
            suggested: trial.suggested.clone(),
        }
    }

    /// Whether `later` contains all of these decisions unchanged.
    fn stays_in(&self, later: &Self) -> bool {
        self.rungs.iter().all(|(step, rung)| later.rungs.get(step) == Some(rung))
            && self.compared.iter().all(|(rung, of)| later.compared.get(rung) == Some(of))
            && (self.stopped.is_none() || self.stopped == later.stopped)
            && (self.suggested.is_none() || self.suggested == later.suggested)
    }
}

impl Watch {
    /// Checks the new decisions after an invocation.
    pub(super) fn decisions(&mut self, harness: &Harness) {
        let (sweeps, trials) = harness.store.state();
        for trial in trials.iter().filter(|trial| !trial.rungs.is_empty() || trial.suggested.is_some()) {
            let (of, now) = (trial.of(), Decided::of(trial));
            let before = self.decided.get(&of).cloned().unwrap_or_default();
            if !before.stays_in(&now) {
                self.is_wrong(Seen::Undecided, format!("{of}: {before:?} became {now:?}"));
            }
            let plan = sweeps.iter().find(|sweep| sweep.id == trial.sweep).and_then(|sweep| sweep.plan.as_ref());
            if let (None, Some(stop), Some(plan)) = (before.stopped, now.stopped, plan)
                && let Err(why) = is_fair(plan, trial, &stop, &trials)
            {
                self.is_wrong(Seen::Unfair, format!("{of} {stop}, but {why}"));
            }
            if let (None, Some(given)) = (&before.suggested, &now.suggested) {
                let twin = trials.iter().find(|other| {
                    other.index != trial.index
                        && other.sweep == trial.sweep
                        && other.suggested.as_ref().is_some_and(|of| of.text() == given.text())
                });
                if let Some(twin) = twin {
                    self.is_wrong(
                        Seen::Doubled,
                        format!("{of} and trial {} were both given {}", twin.index, given.text()),
                    );
                }
            }
            self.decided.insert(of, now);
        }
    }
}

/// Checks a stop against the records: the trial was worse than the cut, and enough other trials were better. Other
/// trials may have advanced since the comparison, so at least as many as it counted must be at the rung.
fn is_fair(plan: &Plan, trial: &Trial, stop: &EarlyStop, trials: &[Trial]) -> Result<(), String> {
    let Some((EarlyStopping { rule, .. }, metric)) = plan.comparison() else {
        return Err("the sweep stops no trial early".to_owned());
    };
    let Comparison { value, cut: Some(cut), of } = stop.by else { return Err("it had no cut".to_owned()) };
    let is_worse = |value: f64, than: f64| if metric.maximize { value < than } else { value > than };
    let own = trial.rungs.get(&stop.rung).ok_or("it has not reached the rung")?;
    if ![own.value, own.best].contains(&value) || !is_worse(value, cut) {
        return Err(format!("it has {own:?} there"));
    }
    let at_rung: Vec<f64> = trials
        .iter()
        .filter(|other| other.sweep == trial.sweep && other.index != trial.index)
        .filter_map(|other| Some(other.rungs.get(&stop.rung)?.value))
        .collect();
    let better = at_rung.iter().filter(|other| is_worse(own.value, **other)).count();
    let least = match rule {
        Rule::Hyperband { eta, .. } | Rule::Interruption { eta, .. } => (of as f64 / eta) as usize + 1,
        Rule::Asha { .. } | Rule::Median { .. } => 1,
    };
    if at_rung.len() + 1 < of || better < least {
        return Err(format!("of {} others {better} are better", at_rung.len()));
    }
    Ok(())
}
