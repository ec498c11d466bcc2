//! Finds what is wrong with an interrupted training, and how to fix it.

use spotsweep_protocol::claim::Checkpoints;
use spotsweep_protocol::words::size;

use super::attempt::Attempt;
use super::bucket::Lack;
use super::starts::{Start, numbered};
use super::trial::Trial;

/// A training that runs on for so many seconds without its checkpoints has not just cleaned up at its end.
const LONG_WITHOUT: f64 = 2.0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) what: String,
    pub(super) fix: String,
}

/// Used if no line of the output looks like an error.
const IN_THE_LOG: &str = "its log says why";

fn problem(what: String, fix: &str) -> Option<Problem> {
    Some(Problem { what, fix: fix.to_owned() })
}

impl Trial {
    /// Whether attempt `place` was killed at the end of the notice, without a checkpoint since it began.
    fn lost_at_the_notice(&self, place: usize) -> bool {
        let attempt = &self.attempts[place];
        let has_saved = attempt.saves.last().map(|save| save.at) > attempt.stopped;
        let repeated = self.attempts.get(place + 1).and_then(|_| self.repeated(place + 1));
        // In the first seconds there is nothing to save.
        let had_something = attempt.said.steps.is_some() || !attempt.saves.is_empty();
        attempt.said.was_killed
            && had_something
            && self.has_saved()
            && !has_saved
            && repeated.is_none_or(|repeated| repeated > 1.0)
    }

    /// The problems, worst first.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let found = [
            self.refused(),
            self.failed(),
            self.rolled_back(),
            self.lost(),
            self.removed(),
            self.unsaved(),
            self.forgotten(),
            self.went_back(),
            self.killed_at_the_notice(),
            self.lost_models(),
            self.uncollected(),
            self.without_metric(),
        ];
        found.into_iter().flatten().collect()
    }

    /// The first attempt that failed on its checkpoint, if no attempt goes on from one.
    fn refusing(&self) -> Option<usize> {
        let place = self.starts.iter().position(|start| *start == Start::Failed)?;
        (!self.starts.contains(&Start::GoesOn)).then_some(place)
    }

    fn refused(&self) -> Option<Problem> {
        let said = &self.attempts[self.refusing()?].said;
        let (found, error) = (said.found.as_deref().unwrap_or_default(), said.error.as_deref().unwrap_or(IN_THE_LOG));
        problem(
            format!(
                "the training starts from its beginning each time, because it fails where a checkpoint is ({found}): {error}"
            ),
            "load what the script saves, and let it start where the folder exists: a failure costs the whole training",
        )
    }

    fn failed(&self) -> Option<Problem> {
        let has_failed = |attempt: &Attempt| attempt.said.code.is_some_and(|code| code != 0);
        let place = self.attempts.iter().position(has_failed).filter(|_| self.refusing().is_none())?;
        let said = &self.attempts[place].said;
        let (code, error) = (said.code.unwrap_or_default(), said.error.as_deref().unwrap_or(IN_THE_LOG));
        problem(
            format!("attempt {} failed with exit code {code}: {error}", place + 1),
            "make the script start from any complete checkpoint, and from none",
        )
    }

    fn rolled_back(&self) -> Option<Problem> {
        let said = self.attempts.iter().map(|attempt| &attempt.said).find(|said| said.rollback.is_some())?;
        if self.refusing().is_some() {
            return None;
        }
        let error = said.error.as_deref().unwrap_or(IN_THE_LOG);
        problem(
            format!("checkpoint {}: {error}", said.rollback.as_deref().unwrap_or_default()),
            "make the script load what it saves: a training that fails on its checkpoint loses the time since the one before",
        )
    }

    /// The problem that the training did not find a checkpoint. If the training has removed it, that is another
    /// problem.
    fn lost(&self) -> Option<Problem> {
        let is_lost = |place: &usize| self.starts[*place] == Start::Lost && !self.is_removed();
        let place = (0..self.attempts.len()).find(is_lost)?;
        let before = self.attempts[..place].iter().rev();
        let found = before.clone().find_map(|attempt| attempt.said.found.as_deref());
        let written = before.flat_map(|attempt| attempt.saves.last()).flat_map(|save| save.files.last());
        let name = found.or_else(|| written.map(|(name, _)| name.as_str()).next()).unwrap_or("one");
        problem(
            format!(
                "attempt {} found no checkpoint, though {name} had been there: all of the training is lost",
                place + 1
            ),
            "write each checkpoint under another name and rename it (`os.replace`), and keep the one before it",
        )
    }

    /// Whether the training has removed its checkpoints, and has run on for long or still computed values.
    fn is_removed(&self) -> bool {
        self.attempts.iter().any(|attempt| {
            let ran_on = attempt.gone.zip(attempt.ended).is_some_and(|(gone, ended)| ended - gone >= LONG_WITHOUT);
            ran_on || attempt.evaluates_without
        })
    }

    fn removed(&self) -> Option<Problem> {
        let what = "the training removes its checkpoints before its end: an interruption after that costs the whole \
                    training, for example in the last evaluation";
        self.is_removed().then(|| problem(what.to_owned(), self.library.how_to_keep()))?
    }

    fn unsaved(&self) -> Option<Problem> {
        let mut attempts = self.attempts.iter();
        let has_trained = attempts.clone().any(|attempt| attempt.started.is_some());
        if self.has_saved() || !has_trained || attempts.any(|attempt| attempt.said.has_failed()) {
            return None;
        }
        let what = "no checkpoint was saved below $SPOTSWEEP_CHECKPOINTS: each interruption costs the whole training";
        problem(what.to_owned(), self.library.how_to_save())
    }

    fn forgotten(&self) -> Option<Problem> {
        let what = "the training has checkpoints, and starts from its beginning all the same";
        self.starts.contains(&Start::FromBeginning).then(|| problem(what.to_owned(), self.library.how_to_resume()))?
    }

    /// The problem that checkpoints have smaller numbers than earlier ones. A rollback is another problem, and so is a
    /// training that starts from its beginning, which writes small numbers again.
    fn went_back(&self) -> Option<Problem> {
        let has_rollback = self.attempts.iter().any(|attempt| attempt.said.rollback.is_some());
        if has_rollback || self.starts.contains(&Start::FromBeginning) {
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

    /// The problem that the bucket lacks something. A model that is lost with the container is another problem.
    fn uncollected(&self) -> Option<Problem> {
        let (what, fix) = match self.bucket.as_ref()?.lack()? {
            Lack::NoModel(_) if !self.lost.is_empty() => return None,
            Lack::NoModel(which) => (
                "the bucket has no model: it got no file of $SPOTSWEEP_OUTPUT, and no checkpoint".to_owned(),
                match which {
                    Checkpoints::None => {
                        "save the model below $SPOTSWEEP_OUTPUT, or delete `checkpoints: none` in the sweep file"
                    }
                    Checkpoints::Newest | Checkpoints::All => {
                        "save the model below $SPOTSWEEP_OUTPUT, or checkpoints below $SPOTSWEEP_CHECKPOINTS \
                         (docs/training.md)"
                    }
                },
            ),
            Lack::TooLarge { name, bytes, most } => (
                format!(
                    "the newest checkpoint, {name}, has {}, and {} are collected at most: the bucket gets nothing of it",
                    size(bytes),
                    size(most)
                ),
                "save the model itself below $SPOTSWEEP_OUTPUT, or write `outputs: {checkpoints: all}` in the sweep file, \
                 which has no limit",
            ),
            Lack::LeftOut(why) => (
                format!("not collected: {why}"),
                "do what it says, or save the file under another name below $SPOTSWEEP_OUTPUT (docs/sweep-file.md)",
            ),
        };
        problem(what, fix)
    }

    fn without_metric(&self) -> Option<Problem> {
        let Some(metric) = self.metric.as_deref() else {
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
}

#[cfg(test)]
mod tests {
    use super::super::attempt::Save;
    use super::super::library::Library;
    use super::super::moments::INTERRUPTIONS;
    use super::super::saves::Written;
    use super::super::starts::tests::attempt as seen;
    use super::super::verdict::{Answer, OnSpot, verdict};
    use super::super::watch::Outcome;
    use super::*;

    /// An attempt that was interrupted between two checkpoints, and saved at these times.
    fn attempt(found: &str, steps: (f64, f64), saves: &[f64]) -> Attempt {
        let save = |at: &f64| Save { at: *at, step: Some(steps.1), files: vec![("e.pt".to_owned(), 5)] };
        Attempt {
            interrupted: Some((INTERRUPTIONS[1], 30.0)),
            has_written: !saves.is_empty(),
            saves: saves.iter().map(save).collect(),
            ..seen(found, Some(steps), &[])
        }
    }

    fn trial(attempts: &[Attempt], metrics: &[&str], metric: Option<&str>) -> Trial {
        let outcome = Outcome {
            attempts: (1..).zip(attempts.iter().cloned()).collect(),
            metrics: metrics.iter().map(|name| ((*name).to_owned(), 0.5)).collect(),
            ..Outcome::default()
        };
        Trial::new(&outcome, metric, Library::None)
    }

    fn problems(attempts: &[Attempt], metrics: &[&str]) -> Vec<String> {
        trial(attempts, metrics, Some("acc")).problems().into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_training_that_goes_on_has_no_problem() {
        let attempts = [attempt("", (1.0, 5.0), &[10.0, 20.0]), attempt("e.pt", (6.0, 9.0), &[10.0])];
        assert_eq!(problems(&attempts, &["acc"]), Vec::<String>::new());
        let trial = trial(&attempts, &["acc"], None);
        assert_eq!((trial.repeated(0), trial.repeated(1)), (None, Some(0.0)));
        let verdict = verdict(&trial.facts());
        assert_eq!(verdict.answer, Answer::NotProven, "one of five interruptions");
        // The interruptions lose 10 and 20 s, and it takes 223 s until the trial trains again.
        let expected = 1.0 + 1.0372 * 238.0 / 3600.0;
        assert!((trial.billed_hours(verdict.on_spot, 10.0).unwrap_or_default() - expected).abs() < 1e-9);
        assert_eq!(trial.billed_hours(OnSpot::Unknown, 10.0), None);
        assert!(trial.billed_hours(OnSpot::StartsOver, 10.0) > Some(1000.0), "ten hours in one piece");
    }

    #[test]
    fn each_problem_is_named() {
        let first = attempt("", (1.0, 5.0), &[10.0]);
        let named = |others: &[Attempt], words: &str| {
            let attempts: Vec<Attempt> = [&first].into_iter().chain(others).cloned().collect();
            let found = problems(&attempts, &["acc"]);
            assert!(found.first().is_some_and(|what| what.contains(words)), "{words}: {found:?}");
            assert_eq!(found.len(), 1, "{found:?}");
        };
        named(&[attempt("e.pt", (1.0, 9.0), &[10.0])], "starts from its beginning");
        let again = |found| attempt(found, (1.0, 9.0), &[10.0]);
        named(&[again("e_960.pt"), again("e_20.pt")], "starts from its beginning");
        named(&[attempt("", (1.0, 5.0), &[])], "no checkpoint");
        named(
            &[attempt("", (1.0, 5.0), &[]), attempt("e.pt", (6.0, 9.0), &[])],
            "attempt 2 found no checkpoint, though e.pt",
        );
        let mut failed = attempt("e.pt", (6.0, 9.0), &[10.0]);
        failed.said.code = Some(1);
        failed.said.error = Some("KeyError: 'epoch'".to_owned());
        named(&[failed.clone()], "attempt 2 failed with exit code 1: KeyError");
        failed.steps.clear();
        failed.saves.clear();
        named(&[failed], "from its beginning each time, because it fails where a checkpoint is (e.pt): KeyError");
        let mut rolled_back = attempt("e.pt", (6.0, 9.0), &[10.0]);
        rolled_back.said.rollback = Some("e5.pt could not be loaded (exit code 1); went back to e4.pt".to_owned());
        named(&[rolled_back], "went back to e4.pt");
        let mut killed = attempt("e.pt", (6.0, 9.0), &[10.0]);
        killed.stopped = Some(30.0);
        killed.said.was_killed = true;
        named(&[killed], "killed");
        assert!(problems(std::slice::from_ref(&first), &["loss"])[0].contains("found were: loss"));
        let found = |names: [&str; 3]| {
            let steps = [1.0, 2.0, 3.0].into_iter().zip(names);
            steps.map(|(step, found)| attempt(found, (step, step), &[10.0])).collect::<Vec<_>>()
        };
        let back = found(["e_999.pt", "e_1850.pt", "e_1000.pt"]);
        assert!(problems(&back, &["acc"])[0].contains("attempt 3 found e_1000.pt"));
        assert_eq!(problems(&found(["e_9.pt", "last.pt", "e_10.pt"]), &["acc"]), Vec::<String>::new());
    }

    #[test]
    fn a_training_that_removes_its_checkpoints_early_is_named() {
        // For how many seconds it runs on without them, and whether it still evaluates.
        let removing = |seconds: f64, evaluates: bool| {
            let mut attempt = attempt("", (1.0, 5.0), &[10.0]);
            attempt.interrupted = None;
            attempt.saves(Written { at: 20.0, files: Vec::new() });
            attempt.sees_checkpoints(false, 30.0);
            (attempt.ended, attempt.evaluates_without) = (Some(30.0 + seconds), evaluates);
            problems(&[attempt], &["acc"]).first().is_some_and(|what| what.contains("removes its checkpoints"))
        };
        assert_eq!((removing(0.3, false), removing(0.3, true), removing(9.0, false)), (false, true, true));
        let mut first = attempt("", (1.0, 5.0), &[10.0]);
        first.evaluates_without = true;
        let second = attempt("", (1.0, 5.0), &[10.0]);
        let keras = Trial {
            library: Library::Keras,
            ..trial(&[first, second, attempt("e.pt", (1.0, 1.0), &[])], &["acc"], None)
        };
        let fixes: Vec<String> = keras.problems().into_iter().map(|problem| problem.fix).collect();
        assert!(fixes[0].contains("delete_checkpoint=False"), "{fixes:?}");
    }
}
