//! When an instance is taken, and which. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use spotsweep_control_plane::trial::{JobStatus, Trial};

use super::sweep::METRIC;

/// Strikes of a run.
pub(super) const ALL: [Kind; 2] = [Kind::Interruption, Kind::Termination];
/// Of a trial's steps: before, there is little to lose.
const EARLIEST: f64 = 0.1;

/// How an instance is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// By FIS: with a recommendation and a warning.
    Interruption,
    /// By TerminateInstances: without a notice, which FIS cannot do.
    Termination,
}

impl Kind {
    /// Of a trial's steps: after, the trial may end before its instance does. A notice is a quarter of a training.
    fn latest(self) -> f64 {
        match self {
            Self::Interruption => 0.6,
            Self::Termination => 0.85,
        }
    }
}

/// An instance that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Strike {
    pub(super) kind: Kind,
    /// The one that was terminated; FIS chooses one itself.
    pub(super) instance: Option<String>,
    pub(super) at: Timestamp,
}

/// The instance to terminate, or one of those that FIS may choose; none where it is not time yet. `running` are the
/// deployment's running instances. Each must hold a trial in its training before FIS may choose.
pub(super) fn target(kind: Kind, running: &BTreeSet<String>, trials: &[Trial], steps: u32) -> Option<String> {
    let training = training(trials, steps);
    let is_ripe = |share: f64| (EARLIEST..=kind.latest()).contains(&share);
    let ripe = |instance: &&String| {
        training.get(instance.as_str()).is_some_and(|shares| shares.iter().all(|one| is_ripe(*one)))
    };
    match kind {
        Kind::Interruption if running.iter().all(|instance| ripe(&instance)) => running.first().cloned(),
        Kind::Interruption => None,
        Kind::Termination => running.iter().find(ripe).cloned(),
    }
}

/// How far the trials on an instance are, from 0 to 1.
fn training(trials: &[Trial], steps: u32) -> BTreeMap<&str, Vec<f64>> {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.status == JobStatus::Running) {
        let instance = trial.attempts.last_key_value().and_then(|(_, attempt)| attempt.instance.as_deref());
        let step = trial.metrics.get(METRIC).and_then(|metric| metric.step).unwrap_or(0.0);
        if let Some(instance) = instance {
            found.entry(instance).or_default().push(step / f64::from(steps));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use spotsweep_control_plane::trial::Attempt;
    use spotsweep_protocol::claim::Metric;
    use spotsweep_protocol::ids::{JobId, SweepId};

    use super::*;

    fn trial(index: u32, instance: &str, step: f64) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        trial.status = JobStatus::Running;
        trial.attempts.insert(1, Attempt { instance: Some(instance.to_owned()), ..Attempt::default() });
        trial.metrics.insert(METRIC.to_owned(), Metric { last: 1.0, step: Some(step), min: 1.0, max: 1.0 });
        trial
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_instances_of_trials_in_training_are_taken() {
        let trials = [trial(0, "i-1", 30.0), trial(1, "i-2", 5.0), trial(2, "i-3", 90.0)];
        assert_eq!(target(Kind::Interruption, &set(&["i-1"]), &trials, 100), Some("i-1".to_owned()));
        // Of another's, of a trial that has just begun, of one that is about to end.
        for other in ["i-9", "i-2", "i-3"] {
            let running = set(&["i-1", other]);
            assert_eq!(target(Kind::Interruption, &running, &trials, 100), None, "{other}: FIS might choose it");
            assert_eq!(target(Kind::Termination, &running, &trials, 100), Some("i-1".to_owned()), "{other}");
            assert_eq!(target(Kind::Termination, &set(&[other]), &trials, 100), None, "{other}");
        }
        assert_eq!(target(Kind::Interruption, &set(&[]), &trials, 100), None);
    }
}
