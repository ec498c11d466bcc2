//! What an interrupted training shows: problems, with how to fix them, and what an hour costs.

use spotsweep_sweep_file::expected::{billed_per_hour_with_checkpoints, billed_per_hour_without_checkpoints};

use super::attempt::Attempt;
use super::library::Library;

/// What is left of EC2's notice to save in, after the runner's own part and some seconds until it is seen.
pub(super) const SAVE_SECONDS: f64 = 90.0;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) what: String,
    pub(super) fix: String,
}

/// Where the output has no line that looks like an error.
const IN_THE_LOG: &str = "its log says why";

/// The last number of a checkpoint's name, and what is before it.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let start = name[..end].trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    Some((&name[..start], name[start..end].parse().ok()?))
}

fn problem(what: String, fix: &str) -> Option<Problem> {
    Some(Problem { what, fix: fix.to_owned() })
}

/// All attempts of the trial, and what is known of the script.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) attempts: &'a [Attempt],
    /// The metric that the sweep file names.
    pub(super) metric: Option<&'a str>,
    /// All metrics that reached the control plane.
    pub(super) metrics: &'a [String],
    /// Models and checkpoints that are lost with the containers.
    pub(super) lost: &'a [&'a str],
    pub(super) library: Library,
}

impl Trial<'_> {
    fn has_saved(&self) -> bool {
        self.attempts.iter().any(|attempt| !attempt.saves.is_empty() || attempt.said.found.is_some())
    }

    /// The largest step before attempt `place`, if there was a checkpoint that it found.
    fn before(&self, place: usize) -> Option<f64> {
        let steps = self.attempts[..place].iter().filter_map(|attempt| attempt.said.steps).map(|(_, last)| last);
        steps.reduce(f64::max).filter(|_| self.attempts[place].said.found.is_some())
    }

    /// Steps that attempt `place` has trained again.
    pub(super) fn repeated(&self, place: usize) -> Option<f64> {
        let (first, _) = self.attempts[place].said.steps?;
        Some((self.before(place)? - first + 1.0).max(0.0))
    }

    /// Whether attempt `place` found a checkpoint and began with the first step all the same.
    fn forgets(&self, place: usize) -> bool {
        let first = self.attempts.first().and_then(|attempt| attempt.said.steps).map(|(first, _)| first);
        let Some((now, _)) = self.attempts[place].said.steps else { return false };
        self.before(place).is_some_and(|before| first.is_some_and(|first| now <= first && before > first))
    }

    fn resumes(&self) -> bool {
        !(1..self.attempts.len()).any(|place| self.forgets(place))
    }

    /// Whether attempts found checkpoints, and no step after the first one was ever seen. A training that goes on and one
    /// that starts over look the same then.
    fn is_undecided(&self) -> bool {
        let steps = || self.attempts.iter().filter_map(|attempt| attempt.said.steps);
        let first = steps().next().map(|(first, _)| first);
        let is_later = |attempt: &Attempt| attempt.said.found.is_some() && attempt.said.steps.is_some();
        self.attempts.iter().any(is_later) && steps().all(|(_, last)| first.is_some_and(|first| last <= first))
    }

    /// Whether attempt `place` was killed at the end of the notice, without a checkpoint since it began.
    fn lost_at_the_notice(&self, place: usize) -> bool {
        let attempt = &self.attempts[place];
        let has_saved = attempt.saves.last() > attempt.stopped.as_ref();
        let repeated = self.attempts.get(place + 1).and_then(|_| self.repeated(place + 1));
        // In the first seconds there is nothing to save.
        let had_something = attempt.said.steps.is_some() || !attempt.saves.is_empty();
        attempt.said.was_killed
            && had_something
            && self.has_saved()
            && !has_saved
            && repeated.is_none_or(|repeated| repeated > 1.0)
    }

    /// What is wrong, the worst first.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let found = [
            self.failed(),
            self.rolled_back(),
            self.unsaved(),
            self.went_back(),
            self.killed_at_the_notice(),
            self.lost_models(),
            self.without_metric(),
        ];
        found.into_iter().flatten().collect()
    }

    fn failed(&self) -> Option<Problem> {
        let has_failed = |attempt: &Attempt| attempt.said.code.is_some_and(|code| code != 0);
        let place = self.attempts.iter().position(has_failed)?;
        let said = &self.attempts[place].said;
        let (code, error) = (said.code.unwrap_or_default(), said.error.as_deref().unwrap_or(IN_THE_LOG));
        problem(
            format!("attempt {} failed with exit code {code}: {error}", place + 1),
            "make the script start from any complete checkpoint, and from none",
        )
    }

    fn rolled_back(&self) -> Option<Problem> {
        let said = self.attempts.iter().map(|attempt| &attempt.said).find(|said| said.rollback.is_some())?;
        let error = said.error.as_deref().unwrap_or(IN_THE_LOG);
        problem(
            format!("checkpoint {}: {error}", said.rollback.as_deref().unwrap_or_default()),
            "make the script load what it saves: a training that fails on its checkpoint loses the time since the one before",
        )
    }

    fn unsaved(&self) -> Option<Problem> {
        if !self.has_saved() {
            let what =
                "no checkpoint was saved below $SPOTSWEEP_CHECKPOINTS: each interruption costs the whole training";
            return problem(what.to_owned(), self.library.how_to_save());
        }
        if !self.resumes() {
            let what = "the training has checkpoints, and starts from its beginning all the same";
            return problem(what.to_owned(), self.library.how_to_resume());
        }
        let what = "no attempt came further than the first step: it is not known whether the training starts from its \
                    beginning each time";
        self.is_undecided()
            .then(|| problem(what.to_owned(), "try it with shorter epochs, or with a longer --notice"))?
    }

    /// Checkpoints whose numbers are smaller than those that were there before. A rollback is a problem of its own.
    fn went_back(&self) -> Option<Problem> {
        if self.attempts.iter().any(|attempt| attempt.said.rollback.is_some()) {
            return None;
        }
        let mut largest: Option<(&str, u64, &str)> = None;
        for (place, attempt) in self.attempts.iter().enumerate() {
            let Some(name) = attempt.said.found.as_deref() else { continue };
            let Some((start, number)) = numbered(name) else { continue };
            match largest {
                Some((same, before, newest)) if same == start && number < before => {
                    return problem(
                        format!("attempt {} found {name} as its newest checkpoint, after {newest}", place + 1),
                        "choose the checkpoint with the largest number: by name, `epoch_999` comes after `epoch_1000`",
                    );
                }
                Some(_) | None => largest = Some((start, number, name)),
            }
        }
        None
    }

    fn killed_at_the_notice(&self) -> Option<Problem> {
        let place = (0..self.attempts.len()).find(|place| self.lost_at_the_notice(*place))?;
        let seconds = self.attempts[place].seconds_to_stop().unwrap_or_default();
        problem(
            format!("the training had not saved {seconds:.0} s after the stop signal, and was killed"),
            self.library.how_to_save_at_the_signal(),
        )
    }

    fn lost_models(&self) -> Option<Problem> {
        let (first, others) = self.lost.split_first()?;
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        problem(
            format!("written outside of the workspace, and lost with the container: {first}{more}"),
            "write checkpoints below $SPOTSWEEP_CHECKPOINTS, and the model that you want below /storage/<index>, or \
             $SPOTSWEEP_OUTPUT (docs/training.md)",
        )
    }

    fn without_metric(&self) -> Option<Problem> {
        let Some(metric) = self.metric else {
            let fix = "print `name=value`, or write a pattern under `metrics` (docs/metrics.md)";
            return self.metrics.is_empty().then(|| problem("no metric was found".to_owned(), fix))?;
        };
        if self.metrics.iter().any(|found| found == metric) {
            return None;
        }
        let found = if self.metrics.is_empty() { "none".to_owned() } else { self.metrics.join(", ") };
        problem(
            format!("the metric {metric} was not found; found were: {found}"),
            "name one of these in the sweep file, print `name=value`, or write a pattern under `metrics` (docs/metrics.md)",
        )
    }

    /// Seconds of training that an interruption costs, on average.
    fn seconds_lost(&self) -> f64 {
        let lost = self.attempts.iter().filter_map(|attempt| {
            let ((_, at), started) = (attempt.interrupted?, attempt.started?);
            let saved = attempt.saves.iter().rev().find(|save| **save <= attempt.ended.unwrap_or(at));
            Some((at - saved.copied().unwrap_or(started)).max(0.0))
        });
        let lost: Vec<f64> = lost.collect();
        lost.iter().sum::<f64>() / lost.len().max(1) as f64
    }

    /// Hours that are billed for an hour of training that counts, for a training of `hours`.
    pub(super) fn billed_hours(&self, hours: f64) -> f64 {
        if self.has_saved() && self.resumes() {
            billed_per_hour_with_checkpoints(self.seconds_lost())
        } else {
            billed_per_hour_without_checkpoints(hours)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::Said;
    use super::super::moments::INTERRUPTIONS;
    use super::*;

    fn attempt(found: Option<&str>, steps: (f64, f64), saves: &[f64]) -> Attempt {
        let said = Said { found: found.map(str::to_owned), steps: Some(steps), ..Said::default() };
        Attempt {
            started: Some(0.0),
            interrupted: Some((INTERRUPTIONS[1], 30.0)),
            saves: saves.to_vec(),
            said,
            ..Attempt::default()
        }
    }

    fn problems(attempts: &[Attempt], metrics: &[&str]) -> Vec<String> {
        let metrics: Vec<String> = metrics.iter().map(|name| (*name).to_owned()).collect();
        let trial = Trial { attempts, metric: Some("acc"), metrics: &metrics, lost: &[], library: Library::None };
        trial.problems().into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_training_that_goes_on_has_no_problem() {
        let attempts = [attempt(None, (1.0, 5.0), &[10.0, 20.0]), attempt(Some("e5.pt"), (6.0, 9.0), &[10.0])];
        assert_eq!(problems(&attempts, &["acc"]), Vec::<String>::new());
        let trial = Trial { attempts: &attempts, metric: None, metrics: &[], lost: &[], library: Library::None };
        assert_eq!((trial.repeated(0), trial.repeated(1)), (None, Some(0.0)));
        // 10 and 20 s are lost, and 180 s until it trains again.
        let expected = 1.0 + 1.0314 * 195.0 / 3600.0;
        assert!((trial.billed_hours(10.0) - expected).abs() < 1e-9);
    }

    #[test]
    fn each_problem_is_named() {
        let forgetful = [attempt(None, (1.0, 5.0), &[10.0]), attempt(Some("e5.pt"), (1.0, 9.0), &[10.0])];
        assert!(problems(&forgetful, &["acc"])[0].contains("starts from its beginning"));
        let slow = [attempt(None, (1.0, 1.0), &[10.0]), attempt(Some("e1.pt"), (1.0, 1.0), &[10.0])];
        assert!(problems(&slow, &["acc"])[0].contains("is not known whether"));
        let unsaved = [attempt(None, (1.0, 5.0), &[]), attempt(None, (1.0, 5.0), &[])];
        assert!(problems(&unsaved, &["acc"])[0].contains("no checkpoint"));
        let trial = Trial { attempts: &unsaved, metric: None, metrics: &[], lost: &[], library: Library::None };
        assert!(trial.billed_hours(10.0) > 1000.0, "ten hours in one piece");
        let fine = [attempt(None, (1.0, 5.0), &[10.0])];
        assert!(problems(&fine, &["loss"])[0].contains("found were: loss"));
        let mut failed = fine.to_vec();
        failed[0].said.code = Some(1);
        failed[0].said.error = Some("KeyError: 'epoch'".to_owned());
        assert!(problems(&failed, &["acc"])[0].contains("KeyError"));
        let mut rolled_back = fine.to_vec();
        rolled_back[0].said.rollback = Some("e5.pt could not be loaded (exit code 1); went back to e4.pt".to_owned());
        assert!(problems(&rolled_back, &["acc"])[0].contains("went back to e4.pt"));
        let found = |names: [&str; 3]| {
            let steps = [1.0, 2.0, 3.0].into_iter().zip(names);
            steps.map(|(step, found)| attempt(Some(found), (step, step), &[10.0])).collect::<Vec<_>>()
        };
        let back = found(["e_999.pt", "e_1850.pt", "e_1000.pt"]);
        assert!(problems(&back, &["acc"])[0].contains("attempt 3 found e_1000.pt"));
        assert_eq!(problems(&found(["e_9.pt", "last.pt", "e_10.pt"]), &["acc"]), Vec::<String>::new());
        let mut slow = vec![attempt(Some("e1.pt"), (1.0, 5.0), &[10.0])];
        slow[0].stopped = Some(30.0);
        slow[0].said.was_killed = true;
        assert!(problems(&slow, &["acc"])[0].contains("killed"));
    }
}
