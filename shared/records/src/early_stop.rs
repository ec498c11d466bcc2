//! How a trial notes the rungs that its attempts report, and how it is compared with other trials at them.

use crate::sweep::{EarlyStopping, Ranking};
use crate::trial::{Comparison, EarlyStop, Trial};
use spotsweep_protocol::rungs::{Curve, Reached};
use spotsweep_search::stop::Verdict;

impl Comparison {
    fn of(verdict: &Verdict, metric: &Ranking) -> Self {
        let cut = verdict.cut.map(|cut| metric.cost(cut));
        Self { value: metric.cost(verdict.value), cut, of: verdict.of }
    }
}

impl Trial {
    /// Notes the rungs that an attempt has reported, as far as the sweep compares trials at them. The first report of a
    /// rung counts.
    pub fn reach(&mut self, by: &EarlyStopping, reported: &[Reached]) {
        for reached in usable(by, reported) {
            self.rungs.entry(reached.step).or_insert(reached.rung);
        }
    }

    /// Whether the trial has to be compared with others when a report has these rungs.
    pub fn is_to_be_compared(&self, by: &EarlyStopping, reported: &[Reached]) -> bool {
        let mut rungs = usable(by, reported).map(|reached| reached.step).chain(self.undecided());
        self.stopped.is_none() && by.rule.judges_reports() && rungs.any(|rung| !self.compared.contains_key(&rung))
    }

    /// Compares the trial with the others at each undecided rung, by the costs at their rungs, until a comparison stops
    /// it. A lost report changes no decision, because the next report has its rung too. Returns the new comparisons
    /// with their rungs.
    pub fn compare(&mut self, (by, metric): (&EarlyStopping, &Ranking), others: &[Curve]) -> Vec<(u64, Comparison)> {
        if self.stopped.is_some() || !by.rule.judges_reports() {
            return Vec::new();
        }
        let undecided: Vec<u64> = self.undecided().collect();
        let mut decided = Vec::new();
        for rung in undecided {
            let until: Curve = self.rungs.range(..=rung).map(|(step, rung)| (*step, *rung)).collect();
            let Some(verdict) = by.rule.judge_without_outlier(&metric.costs(&until), others) else { continue };
            let comparison = Comparison::of(&verdict, metric);
            self.compared.insert(rung, comparison);
            decided.push((rung, comparison));
            if verdict.stops {
                self.stopped = Some(EarlyStop { rung, by: comparison, at_interruption: false });
                break;
            }
        }
        decided
    }

    /// Compares an interrupted trial at its newest rung. The result is noted only where it stops the trial.
    pub fn compare_interrupted(&mut self, (by, metric): (&EarlyStopping, &Ranking), others: &[Curve]) {
        let verdict = by.rule.judge_without_outlier(&metric.costs(&self.rungs), others);
        if let (None, Some(verdict)) = (&self.stopped, verdict.filter(|verdict| verdict.stops)) {
            let by = Comparison::of(&verdict, metric);
            self.stopped = Some(EarlyStop { rung: verdict.rung, by, at_interruption: true });
        }
    }

    /// Returns the rungs that the trial has reached and at which it was not compared.
    fn undecided(&self) -> impl Iterator<Item = u64> {
        self.rungs.keys().copied().filter(|rung| !self.compared.contains_key(rung))
    }
}

/// Returns those reported rungs at which the sweep compares trials and whose figures can be compared.
fn usable<'r>(by: &'r EarlyStopping, reported: &'r [Reached]) -> impl Iterator<Item = &'r Reached> {
    let is_rung = |reached: &&Reached| by.rule.rungs().binary_search(&reached.step).is_ok();
    reported.iter().filter(is_rung).filter(|reached| reached.rung.is_usable())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::rungs::{Rung, Unit};
    use spotsweep_search::stop::Rule;
    use spotsweep_sweep_file::Over;

    fn at(step: u64, value: f64) -> Reached {
        Reached { step, rung: Rung { value, best: value, mean: value } }
    }

    #[test]
    fn a_rung_is_decided_once_and_by_its_first_value() {
        let rule = Rule::Hyperband { bands: vec![3, 9], eta: 2.0, strict: true };
        let by = EarlyStopping { rule, unit: Unit::Reports, length: None };
        let metric = Ranking { name: "acc".into(), maximize: true, over: Over::Last };
        let curves = |values: &[f64]| -> Vec<Curve> {
            values.iter().map(|value| metric.costs(&Curve::from([(3, at(3, *value).rung)]))).collect()
        };
        let others = curves(&[0.5, 0.6, 0.7]);
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
        let report = [at(3, 0.65), at(4, 0.1), at(9, f64::NAN)];
        assert!(trial.is_to_be_compared(&by, &report));
        trial.reach(&by, &report);
        trial.reach(&by, &[at(3, 0.1)]);
        assert_eq!(trial.rungs.keys().collect::<Vec<_>>(), [&3], "neither another step nor what is no number");
        let decided = trial.compare((&by, &metric), &others);
        let comparison = Comparison { value: 0.65, cut: Some(0.6), of: 4 };
        assert_eq!(decided, [(3, comparison)]);
        assert!(trial.stopped.is_none() && !trial.is_to_be_compared(&by, &report));
        let better = curves(&[0.9; 9]);
        assert!(trial.compare((&by, &metric), &better).is_empty(), "decided already");
        trial.compare_interrupted((&by, &metric), &better);
        let stop = trial.stopped.unwrap();
        assert!(stop.at_interruption && stop.by.cut == Some(0.9), "{stop}");
        assert_eq!(trial.compared[&3], comparison, "what was decided at the report stays");
        assert!(trial.is_left_for_good());
    }

    #[test]
    fn a_lost_report_changes_no_decision() {
        let rule = Rule::Hyperband { bands: vec![3, 9], eta: 2.0, strict: true };
        let by = EarlyStopping { rule, unit: Unit::Reports, length: None };
        let metric = Ranking { name: "loss".into(), maximize: false, over: Over::Last };
        let others: Vec<Curve> =
            [0.1, 0.2, 0.3].map(|value| Curve::from([(3, at(3, value).rung), (9, at(9, value + 1.0).rung)])).to_vec();
        // The trial is bad at the first rung and best at the second one.
        let report = [at(3, 0.9), at(9, 0.01)];
        let mut stops = Vec::new();
        for first in [&report[..1], &report[..]] {
            let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
            for reported in [first, &report[..]] {
                trial.reach(&by, reported);
                trial.compare((&by, &metric), &others);
            }
            stops.push((trial.stopped, trial.compared));
        }
        assert_eq!(stops[0], stops[1]);
        assert_eq!(stops[0].0.unwrap().rung, 3);
    }
}
