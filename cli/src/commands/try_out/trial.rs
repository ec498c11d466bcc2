//! What was seen of an interrupted trial.

use spotsweep_sweep_file::expected::{billed_per_hour_with_checkpoints, billed_per_hour_without_checkpoints};

use super::attempt::Attempt;
use super::bucket::Bucket;
use super::followed::follow_one;
use super::library::Library;
use super::moments::{INTERRUPTIONS, Moment};
use super::starts::{Start, starts, steps_before};
use super::verdict::{Facts, OnSpot};
use super::watch::Outcome;

/// All attempts of the trial, and what is known of the script.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) attempts: Vec<Attempt>,
    /// How each attempt began.
    pub(super) starts: Vec<Start>,
    /// The metric that the sweep file names.
    pub(super) metric: Option<String>,
    /// All metrics that reached the control plane.
    pub(super) metrics: Vec<String>,
    /// Models and checkpoints that are lost with the containers.
    pub(super) lost: Vec<String>,
    /// What the bucket gets of the trial, if that is known.
    pub(super) bucket: Option<Bucket>,
    pub(super) library: Library,
}

impl Trial {
    /// Collects what was seen of a script that uses `library`. `metric` is the one that the sweep file names.
    pub(super) fn new(outcome: &Outcome, metric: Option<&str>, library: Library) -> Self {
        let mut attempts: Vec<Attempt> = outcome.attempts.values().cloned().collect();
        follow_one(&mut attempts, metric);
        Self {
            starts: starts(&attempts, metric),
            attempts,
            metric: metric.map(str::to_owned),
            metrics: outcome.metrics.keys().cloned().collect(),
            lost: outcome.lost.models().into_iter().map(str::to_owned).collect(),
            bucket: outcome.bucket.clone(),
            library,
        }
    }

    /// The facts from which the verdict follows.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            starts: &self.starts,
            has_saved: self.has_saved(),
            has_failed: self.attempts.iter().any(|attempt| attempt.said.has_failed()),
            has_steps: self.attempts.iter().any(|attempt| attempt.said.steps.is_some()),
            has_problem: !self.problems().is_empty(),
            untried: self.untried(),
        }
    }

    /// Whether an attempt has started after the one at `place`.
    fn is_followed(&self, place: usize) -> bool {
        self.attempts[place + 1..].iter().any(|attempt| attempt.started.is_some())
    }

    /// The interruptions that were not made. One counts as made if another attempt came after it, because a training
    /// may end before the end of its notice.
    fn untried(&self) -> Vec<Moment> {
        let places = 0..self.attempts.len();
        let tried =
            places.filter(|place| self.attempts[*place].interrupted.is_some() && self.is_followed(*place)).count();
        INTERRUPTIONS.iter().skip(tried).map(|interruption| interruption.moment).collect()
    }

    /// Whether a checkpoint was saved. If the next attempt finds no checkpoint, the written files may be logs.
    pub(super) fn has_saved(&self) -> bool {
        let first = self.attempts.iter().position(|attempt| attempt.has_written);
        let was_found = |attempt: &Attempt| attempt.said.found.is_some() || attempt.gone.is_some();
        self.attempts.iter().any(was_found)
            || self.starts.contains(&Start::Lost)
            || first.is_some_and(|first| !self.is_followed(first))
    }

    /// Steps that attempt `place` has trained again. They are unknown for a script that counts them from each start.
    pub(super) fn repeated(&self, place: usize) -> Option<f64> {
        let said = &self.attempts[place].said;
        let (first, _) = said.steps.filter(|_| !said.may_lack_first)?;
        let (origin, _) = steps_before(&self.attempts, place)?;
        let steps = self.attempts[..place].iter().filter_map(|attempt| attempt.said.steps);
        let largest = steps.map(|(_, last)| last).reduce(f64::max)?;
        let is_known = match self.starts[place] {
            Start::GoesOn => first > origin,
            Start::Lost | Start::FromBeginning | Start::FirstStep | Start::Unclear | Start::Mixed => true,
            Start::Fresh | Start::Unseen | Start::Failed | Start::NoStep => false,
        };
        is_known.then(|| (largest - first + 1.0).max(0.0))
    }

    /// Seconds of training that an interruption costs on average.
    fn seconds_lost(&self) -> f64 {
        let lost = self.attempts.iter().filter_map(|attempt| {
            let ((_, at), started) = (attempt.interrupted?, attempt.started?);
            let saved = attempt.saves.iter().rev().find(|save| save.at <= attempt.ended.unwrap_or(at));
            Some((at - saved.map_or(started, |save| save.at)).max(0.0))
        });
        let lost: Vec<f64> = lost.collect();
        lost.iter().sum::<f64>() / lost.len().max(1) as f64
    }

    /// Billed hours for an hour of training that counts, in a training of `hours` that behaves as it was seen to.
    pub(super) fn billed_hours(&self, on_spot: OnSpot, hours: f64) -> Option<f64> {
        match on_spot {
            OnSpot::GoesOn => Some(billed_per_hour_with_checkpoints(self.seconds_lost())),
            OnSpot::StartsOver => Some(billed_per_hour_without_checkpoints(hours)),
            OnSpot::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::{Said, Save};
    use super::super::steps::{Counter, Series};
    use super::super::verdict::{Answer, Gap, verdict};
    use super::*;

    /// What an attempt found, the step of its save, and its steps by counter.
    type Seen<'a> = (&'a str, Option<f64>, &'a [(&'a Counter, &'a [f64])]);

    /// A trial with all interruptions. Each attempt is stopped at the time 100, and saves before it.
    fn trial(attempts: &[Seen<'_>]) -> Trial {
        let attempt = |(place, (found, saved, counters)): (usize, &Seen<'_>)| {
            let steps = counters.iter().map(|(counter, steps)| {
                let mut series = Series::default();
                // What is saved with a step is saved when the step is shown. Without it, all is shown after the stop.
                steps.iter().for_each(|step| series.add(if saved.is_some() { *step } else { 100.0 }, *step));
                ((*counter).clone(), series)
            });
            let save = saved.map(|at| Save { at, files: vec![("m.pt".to_owned(), 9)], ..Save::default() });
            Attempt {
                started: Some(-1.0),
                stopped: Some(100.0),
                interrupted: INTERRUPTIONS.get(place).map(|interruption| (*interruption, 99.0)),
                has_written: true,
                saves: save.into_iter().collect(),
                steps: steps.collect(),
                said: Said { found: (!found.is_empty()).then(|| (*found).to_owned()), ..Said::default() },
                ..Attempt::default()
            }
        };
        let attempts = attempts.iter().enumerate().map(attempt);
        let metrics = [("acc".to_owned(), 0.5)].into();
        let outcome = Outcome { attempts: (1..).zip(attempts).collect(), metrics, ..Outcome::default() };
        Trial::new(&outcome, None, Library::None)
    }

    /// Attempts of scripts of `examples/scripts`, and of the same scripts without the line that loads the checkpoint.
    #[test]
    fn what_scripts_have_shown_decides() {
        let (bar, batch) = (&Counter::Printed("loss".to_owned()), &Counter::Recorded("loss".to_owned()));
        let epoch = &Counter::Recorded("acc".to_owned());
        let unseen = ("m.pt", None, &[][..]);
        let lightning_from_beginning = trial(&[
            ("", None, &[]),
            ("", None, &[(bar, &[1.0])]),
            unseen,
            unseen,
            ("m.pt", Some(95.0), &[(batch, &[49.0, 99.0])]),
            unseen,
        ]);
        let tensorboard = trial(&[
            ("", Some(28.0), &[(epoch, &[0.0, 28.0]), (batch, &[0.0, 700.0])]),
            ("m.pt", Some(38.0), &[(batch, &[725.0, 953.0])]),
            unseen,
            unseen,
            ("m.pt", Some(40.0), &[(epoch, &[39.0, 40.0]), (batch, &[975.0, 980.0])]),
            ("m.pt", Some(41.0), &[(batch, &[984.0, 997.0])]),
        ]);
        let tensorboard_from_beginning = trial(&[
            ("", Some(1.0), &[(epoch, &[0.0, 1.0]), (batch, &[0.0, 30.0])]),
            ("m.pt", Some(50.0), &[(batch, &[0.0, 6632.0])]),
            unseen,
            ("m.pt", Some(1.0), &[(epoch, &[0.0, 1.0])]),
            ("m.pt", Some(3.0), &[(epoch, &[0.0, 3.0])]),
            unseen,
        ]);
        let shown = |trial: &Trial| (verdict(&trial.facts()).answer, verdict(&trial.facts()).gaps, trial.repeated(5));
        assert_eq!(shown(&lightning_from_beginning), (Answer::NotProven, vec![Gap::NoStep], None));
        assert_eq!(shown(&tensorboard), (Answer::Proven, vec![], Some(0.0)));
        assert_eq!(shown(&tensorboard_from_beginning).0, Answer::Problem);
        assert!(!tensorboard_from_beginning.starts.contains(&Start::GoesOn), "{:?}", tensorboard_from_beginning.starts);
    }
}
