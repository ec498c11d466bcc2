//! Decides how each attempt began: after the steps of its checkpoint, or with the first step again.

use super::attempt::{Attempt, Said, Save};

/// A value goes on from another one if it is at most this share of the distance between the first and the last value
/// away from it.
const NEAR: f64 = 1.0 / 3.0;
/// A checkpoint that is so many times as large as the first one grows with the steps.
const GROWN: f64 = 1.1;

/// How an attempt began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// There was no checkpoint, and there had been none before.
    Fresh,
    /// It ended before it showed anything.
    Unseen,
    /// It found no checkpoint, although there had been one.
    Lost,
    /// It failed on its checkpoint, before any step.
    Failed,
    /// It went on after the steps of its checkpoint.
    GoesOn,
    /// It went on, but a part of its checkpoint was of an earlier version than the rest. So the steps may go on without
    /// the weights.
    Mixed,
    /// It began with the first step again.
    FromBeginning,
    /// No attempt before it had come further than the first step.
    FirstStep,
    /// It trained, and showed no first step, or none that can be compared with those before.
    NoStep,
    /// Its steps fit neither case.
    Unclear,
}

/// How each attempt began. `metric` is the one that the sweep file names.
pub(super) fn starts(attempts: &[Attempt], metric: Option<&str>) -> Vec<Start> {
    let mut starts: Vec<Start> = (0..attempts.len()).map(|place| start(attempts, place, metric)).collect();
    let begins_again = |place: usize| {
        let (first, origin) = (attempts[place].said.steps, steps_before(attempts, place));
        first.zip(origin).is_some_and(|((first, _), (origin, _))| first <= origin)
    };
    let counts_from_each_start = (0..starts.len()).any(|place| starts[place] == Start::GoesOn && begins_again(place));
    // Such a script shows its progress only by what it saves.
    for (place, (start, attempt)) in starts.iter_mut().zip(attempts).enumerate() {
        if counts_from_each_start && *start == Start::FromBeginning && attempt.saves.is_empty() {
            *start = Start::Unseen;
        }
        if *start == Start::GoesOn && is_mixed(&attempts[..place], attempt) {
            *start = Start::Mixed;
        }
    }
    starts
}

fn start(attempts: &[Attempt], place: usize, metric: Option<&str>) -> Start {
    let (before, attempt) = (&attempts[..place], &attempts[place]);
    let said = &attempt.said;
    if attempt.started.is_none() {
        return Start::Unseen;
    }
    if said.found.is_none() {
        return if had_checkpoint(attempts, place) { Start::Lost } else { Start::Fresh };
    }
    let Some((first, _)) = said.steps.filter(|_| !said.may_lack_first) else {
        let is_silent = attempt.saves.is_empty();
        return if is_silent && said.has_failed() && said.steps.is_none() {
            Start::Failed
        } else if is_silent {
            Start::Unseen
        } else {
            Start::NoStep
        };
    };
    let Some((origin, reached)) = steps_before(attempts, place) else { return Start::NoStep };
    if first > origin.midpoint(reached) {
        Start::GoesOn
    } else if reached <= origin {
        Start::FirstStep
    } else if first > origin {
        Start::Unclear
    } else if !checkpoint_goes_on(before, attempt) {
        Start::FromBeginning
    } else {
        // Some libraries count the steps since the start of the process, such as XGBoost.
        match metrics_go_on(before, attempt, metric) {
            Some(true) => Start::GoesOn,
            Some(false) => Start::FromBeginning,
            None => Start::Unclear,
        }
    }
}

/// Whether the runner has restored an earlier version of some files, but not of all that the last save before wrote.
fn is_mixed(before: &[Attempt], attempt: &Attempt) -> bool {
    let said = &attempt.said;
    let last = before.iter().rev().find_map(|attempt| attempt.saves.last());
    let differs = || last.is_some_and(|save| save.files.iter().any(|(file, _)| !is_back(said, file)));
    said.may_differ || (!said.back.is_empty() && differs())
}

/// Whether the runner has restored an earlier version of a file.
fn is_back(said: &Said, file: &str) -> bool {
    let is_in = |name: &String| file.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
    said.back.contains(file) || said.back.iter().any(is_in)
}

/// Whether an attempt before the one at `place` has left a checkpoint: one that was found, or a file of a kind that was
/// found. Other files may be logs. After a rollback, there may be none.
fn had_checkpoint(attempts: &[Attempt], place: usize) -> bool {
    let before = &attempts[..place];
    if before.iter().any(|attempt| attempt.said.rollback.is_some()) {
        return false;
    }
    let found = || attempts.iter().filter_map(|attempt| attempt.said.found.as_deref());
    let is_checkpoint = |file: &str| found().any(|found| of_kind(file, found).is_some());
    let has_left = |save: &Save| save.files.iter().any(|(file, bytes)| *bytes > 0 && is_checkpoint(file));
    before.iter().any(|attempt| attempt.said.found.is_some() || attempt.saves.iter().any(has_left))
}

/// The first step that any attempt before the one at `place` has shown, and the step of the checkpoint that this one
/// found. If none was seen to save, it is their last step.
pub(super) fn steps_before(attempts: &[Attempt], place: usize) -> Option<(f64, f64)> {
    let steps = || attempts[..place].iter().filter_map(|attempt| attempt.said.steps);
    let origin = steps().map(|(first, _)| first).reduce(f64::min)?;
    let mut saves: Vec<&Save> = Vec::new();
    let mut was_undone = false;
    for (at, Attempt { said, saves: own, .. }) in attempts[..=place].iter().enumerate() {
        // The runner has put the version before back, so the last save counts no more.
        let undone = saves.pop_if(|save| save.files.iter().any(|(file, _)| is_back(said, file)));
        was_undone |= undone.is_some();
        saves.extend(own.iter().filter(|_| at < place));
    }
    let saved = saves.last().and_then(|save| save.step).or_else(|| was_undone.then_some(origin));
    let reached = saved.or_else(|| steps().map(|(_, last)| last).reduce(f64::max))?;
    Some((origin, reached))
}

/// The last number in a checkpoint's name, and the text before it.
pub(super) fn numbered(name: &str) -> Option<(&str, u64)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let start = name[..end].trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    Some((&name[..start], name[start..end].parse().ok()?))
}

/// The part of a file's path that names a checkpoint of the same kind as `found`: the same name, or one that differs in
/// its number.
fn of_kind<'a>(file: &'a str, found: &str) -> Option<&'a str> {
    let more = file.match_indices('/').nth(found.matches('/').count());
    let name = &file[..more.map_or(file.len(), |(end, _)| end)];
    let is_numbered_alike = || numbered(found).zip(numbered(name)).is_some_and(|((one, _), (other, _))| one == other);
    (name == found || is_numbered_alike()).then_some(name)
}

/// Whether the first checkpoint that an attempt wrote goes on from the one that it found: it has a larger number, or it
/// is one file that grows with the steps, and is larger.
fn checkpoint_goes_on(before: &[Attempt], attempt: &Attempt) -> bool {
    let Some(found) = attempt.said.found.as_deref() else { return false };
    let written = |attempt: &Attempt, is_last: bool| -> Option<(String, u64)> {
        let files = attempt.saves.iter().flat_map(|save| &save.files);
        let mut files = files.filter_map(|(file, bytes)| Some((of_kind(file, found)?.to_owned(), *bytes)));
        if is_last { files.next_back() } else { files.next() }
    };
    let Some((name, bytes)) = written(attempt, false) else { return false };
    if name != found {
        return numbered(&name).zip(numbered(found)).is_some_and(|((_, now), (_, then))| now > then);
    }
    let first = before.iter().find_map(|attempt| written(attempt, false));
    let newest = before.iter().rev().find_map(|attempt| written(attempt, true));
    let Some(((_, first), (_, newest))) = first.zip(newest) else { return false };
    newest as f64 >= first as f64 * GROWN && bytes >= newest
}

/// Whether the metrics of an attempt go on from the last ones before it, or begin with the first ones again. `None` if
/// they disagree, or show nothing. If the sweep file names a metric, only that one counts.
fn metrics_go_on(before: &[Attempt], attempt: &Attempt, metric: Option<&str>) -> Option<bool> {
    let chosen = metric.filter(|name| attempt.said.metrics.contains_key(*name));
    let is_counted = |name: &str| chosen.is_none_or(|chosen| chosen == name);
    let mut verdicts = Vec::new();
    for (name, (now, _)) in attempt.said.metrics.iter().filter(|(name, _)| is_counted(name)) {
        let values: Vec<_> = before.iter().filter_map(|attempt| attempt.said.metrics.get(name)).collect();
        let (Some((first, _)), Some((_, newest))) = (values.first(), values.last()) else { continue };
        let between = (newest - first).abs();
        if between > 0.0 && between.is_finite() {
            let is_near = |value: f64| (now - value).abs() <= between * NEAR;
            verdicts.push((is_near(*newest), is_near(*first)));
        }
    }
    let all = |verdict: (bool, bool)| !verdicts.is_empty() && verdicts.iter().all(|found| *found == verdict);
    if all((true, false)) { Some(true) } else { all((false, true)).then_some(false) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::steps::{Counter, Series};
    use super::*;

    /// An attempt with what it found, its steps, and its saves: the step, the file and its bytes.
    pub(in super::super) fn attempt(found: &str, steps: Option<(f64, f64)>, saves: &[(f64, &str, u64)]) -> Attempt {
        let found = Some(found).filter(|found| !found.is_empty()).map(str::to_owned);
        let save = |(at, (step, file, bytes)): (f64, &(f64, &str, u64))| Save {
            at,
            step: steps.and(Some(*step)),
            files: vec![((*file).to_owned(), *bytes)],
        };
        Attempt {
            started: Some(0.0),
            saves: [10.0, 20.0, 30.0].into_iter().zip(saves).map(save).collect(),
            said: Said { found, steps, ..Said::default() },
            steps: steps.map(|(first, last)| (Counter::Lines, series(&[first, last]))).into_iter().collect(),
            ..Attempt::default()
        }
    }

    fn series(steps: &[f64]) -> Series {
        let mut series = Series::default();
        steps.iter().for_each(|step| series.add(0.0, *step));
        series
    }

    fn with_metrics(mut attempt: Attempt, metrics: &[(&str, f64, f64)]) -> Attempt {
        attempt.said.metrics =
            metrics.iter().map(|(name, first, last)| ((*name).to_owned(), (*first, *last))).collect();
        attempt
    }

    fn some(first: f64, last: f64) -> Option<(f64, f64)> {
        Some((first, last))
    }

    /// The first attempt, of 20 steps.
    fn fresh(saves: &[(f64, &str, u64)]) -> Attempt {
        attempt("", some(1.0, 20.0), saves)
    }

    const ONE: [(f64, &str, u64); 2] = [(10.0, "m.pt", 500), (19.0, "m.pt", 500)];

    #[test]
    fn an_attempt_goes_on_or_starts_over() {
        use Start::{FirstStep, Fresh, FromBeginning, GoesOn, NoStep, Unclear, Unseen};
        let short = || attempt("", some(1.0, 1.0), &[(1.0, "m.pt", 5)]);
        let silent = || attempt("", None, &ONE);
        let at_the_end = |saves: &[(f64, &str, u64)]| {
            let mut attempt = attempt("m.pt", some(25.0, 25.0), saves);
            attempt.said.may_lack_first = true;
            attempt
        };
        let not_started = Attempt { started: None, ..attempt("m.pt", None, &[]) };
        for (what, before, after, expected) in [
            ("nothing was saved", fresh(&[]), attempt("", some(1.0, 2.0), &[]), Fresh),
            ("only logs were", fresh(&[(9.0, "log.csv", 9)]), attempt("", some(1.0, 2.0), &[]), Fresh),
            ("goes on", fresh(&ONE), attempt("m.pt", some(20.0, 22.0), &[]), GoesOn),
            ("repeats some", fresh(&ONE), attempt("m.pt", some(15.0, 22.0), &[]), GoesOn),
            ("repeats many", fresh(&ONE[..1]), attempt("m.pt", some(11.0, 22.0), &[]), GoesOn),
            ("the second step", short(), attempt("m.pt", some(2.0, 2.0), &[]), GoesOn),
            ("starts over", fresh(&ONE), attempt("m.pt", some(1.0, 30.0), &[]), FromBeginning),
            ("neither", fresh(&ONE), attempt("m.pt", some(4.0, 30.0), &[]), Unclear),
            ("never further", short(), attempt("m.pt", some(1.0, 1.0), &[]), FirstStep),
            ("no step before", silent(), attempt("m.pt", some(7.0, 9.0), &[]), NoStep),
            ("no step at all", silent(), attempt("m.pt", None, &ONE), NoStep),
            ("nothing yet", fresh(&ONE), attempt("m.pt", None, &[]), Unseen),
            ("not started", fresh(&ONE), not_started, Unseen),
            ("printed at the end only", fresh(&ONE), at_the_end(&ONE), NoStep),
            ("and nothing was saved", fresh(&ONE), at_the_end(&[]), Unseen),
        ] {
            assert_eq!(starts(&[before, after], None)[1], expected, "{what}");
        }
    }

    #[test]
    fn a_checkpoint_is_lost_or_fails() {
        use Start::{Failed, Fresh, GoesOn, Lost};
        let with = |change: &dyn Fn(&mut Said)| {
            let mut attempt = attempt("m.pt", None, &[]);
            change(&mut attempt.said);
            attempt
        };
        let failed = with(&|said| said.code = Some(1));
        let rolled_back = || with(&|said| said.rollback = Some("m.pt could not be loaded".to_owned()));
        let none = || attempt("", some(1.0, 9.0), &[]);
        let on = |first| attempt("m.pt", some(first, 22.0), &[]);
        for (what, attempts, expected) in [
            ("fails", vec![failed], vec![Failed]),
            ("nothing is left after a rollback", vec![rolled_back(), none()], vec![Failed, Fresh]),
            ("loses it", vec![on(20.0), none()], vec![GoesOn, Lost]),
            ("loses it at once", vec![none(), on(12.0)], vec![Lost, GoesOn]),
        ] {
            let all: Vec<Attempt> = [fresh(&ONE)].into_iter().chain(attempts).collect();
            assert_eq!(starts(&all, None)[1..], expected, "{what}");
        }
    }

    /// The steps begin with the first one again, and the checkpoints may go on.
    #[test]
    fn steps_may_count_from_each_start() {
        use Start::{FromBeginning, GoesOn, Unclear};
        let grows = [(5.0, "m.txt", 500), (19.0, "m.txt", 900)];
        let numbers = [(9.0, "model_9.ubj", 500), (19.0, "model_19.ubj", 500)];
        let loss = |first: f64, last: f64| vec![("loss", first, last), ("acc", 1.0 - first, 1.0 - last)];
        let (begins, goes_on, still, none) = (loss(0.6, 0.1), loss(0.11, 0.1), loss(0.1, 0.1), Vec::new());
        for (what, before, metrics, (found, written, bytes), after, expected) in [
            ("XGBoost", fresh(&numbers), &begins, ("model_19.ubj", "model_29.ubj", 5), &goes_on, GoesOn),
            ("in one file", fresh(&grows), &begins, ("m.txt", "m.txt", 950), &goes_on, GoesOn),
            ("counts its files", fresh(&numbers), &begins, ("model_19.ubj", "model_20.ubj", 5), &begins, FromBeginning),
            ("no metric", fresh(&numbers), &none, ("model_19.ubj", "model_29.ubj", 5), &none, Unclear),
            ("says nothing", fresh(&numbers), &still, ("model_19.ubj", "model_29.ubj", 5), &still, Unclear),
            ("smaller numbers", fresh(&numbers), &begins, ("model_19.ubj", "model_9.ubj", 5), &goes_on, FromBeginning),
            ("a smaller file", fresh(&grows), &begins, ("m.txt", "m.txt", 500), &begins, FromBeginning),
            ("weights alone", fresh(&ONE), &begins, ("m.pt", "m.pt", 500), &goes_on, FromBeginning),
        ] {
            let again = attempt(found, some(1.0, 9.0), &[(9.0, written, bytes)]);
            let attempts = [with_metrics(before, metrics), with_metrics(again, after)];
            assert_eq!(starts(&attempts, None)[1], expected, "{what}");
        }
    }

    #[test]
    fn only_saves_show_where_a_script_is_that_counts_from_each_start() {
        let numbers = [(9.0, "model_9.ubj", 500), (19.0, "model_19.ubj", 500)];
        let again = |saves: &[_]| attempt("model_19.ubj", some(1.0, 9.0), saves);
        let attempts = [
            with_metrics(fresh(&numbers), &[("loss", 0.6, 0.1)]),
            with_metrics(again(&[(9.0, "model_29.ubj", 500)]), &[("loss", 0.1, 0.1)]),
            again(&[]),
        ];
        assert_eq!(starts(&attempts, None), [Start::Fresh, Start::GoesOn, Start::Unseen]);
        assert_eq!(
            starts(&[fresh(&numbers), again(&[])], None)[1],
            Start::FromBeginning,
            "nothing shows that it counts so"
        );
    }

    /// An instance is lost in the middle of a save.
    #[test]
    fn steps_do_not_show_what_weights_have_seen_where_only_a_part_went_back() {
        let (weights, counter) = ("b/w.h5", "b/epoch.json");
        for (files, back, may_differ, expected) in [
            (&[weights][..], &[weights][..], false, Start::GoesOn),
            (&[weights, counter], &[weights, counter], false, Start::GoesOn),
            (&[weights, counter], &["b"], false, Start::GoesOn),
            (&[weights, counter], &[weights], false, Start::Mixed),
            (&[weights, counter], &[weights, counter], true, Start::Mixed),
            (&[weights, counter], &[], false, Start::GoesOn),
        ] {
            let mut before = fresh(&ONE);
            before.saves[1].files = files.iter().map(|file| ((*file).to_owned(), 9)).collect();
            let mut after = attempt(weights, some(20.0, 22.0), &[]);
            after.said.back = back.iter().map(|file| (*file).to_owned()).collect();
            after.said.may_differ = may_differ;
            assert_eq!(starts(&[before, after], None)[1], expected, "{files:?} {back:?} {may_differ}");
        }
    }

    /// Keras's backup. The attempt that had saved the third epoch was lost in that save.
    #[test]
    fn a_save_that_is_put_back_was_not_reached() {
        let keras =
            |found: &str, first: f64, last: f64, saved: f64| attempt(found, some(first, last), &[(saved, "b/w.h5", 9)]);
        let mut attempts =
            vec![keras("", 1.0, 2.0, 2.0), keras("b/w.h5", 2.0, 3.0, 3.0), keras("b/w.h5", 2.0, 4.0, 4.0)];
        assert_eq!(starts(&attempts, None)[2], Start::Unclear);
        attempts[2].said.back = ["b/w.h5".to_owned()].into();
        attempts.push(keras("b/w.h5", 4.0, 5.0, 5.0));
        assert_eq!(starts(&attempts, None)[1..], [Start::GoesOn; 3]);
        // The next attempt may not have saved before it is lost.
        attempts[2].saves.clear();
        attempts[3] = attempt("b/w.h5", some(2.0, 3.0), &[]);
        assert_eq!(starts(&attempts, None)[3], Start::GoesOn);
        attempts[3] = attempt("b/w.h5", some(1.0, 3.0), &[]);
        assert_eq!(starts(&attempts, None)[3], Start::FromBeginning);
    }

    #[test]
    fn metrics_that_disagree_decide_nothing() {
        let before = with_metrics(Attempt::default(), &[("loss", 0.6, 0.1), ("speed", 10.0, 20.0)]);
        let after = with_metrics(Attempt::default(), &[("loss", 0.12, 0.1), ("speed", 10.0, 20.0)]);
        let decide = |metric| metrics_go_on(std::slice::from_ref(&before), &after, metric);
        assert_eq!((decide(None), decide(Some("loss")), decide(Some("acc"))), (None, Some(true), None));
    }

    #[test]
    fn checkpoints_of_a_kind_differ_in_their_number() {
        for (file, found, expected) in [
            ("m.pt", "m.pt", Some("m.pt")),
            ("checkpoint-96/model-00001-of-00002.safetensors", "checkpoint-48", Some("checkpoint-96")),
            ("run/e_9.pt", "run/e_10.pt", Some("run/e_9.pt")),
            ("log.csv", "m.pt", None),
            ("last.pt", "e_9.pt", None),
            ("e_9.pt", "run/e_9.pt", None),
        ] {
            assert_eq!(of_kind(file, found), expected, "{file} {found}");
        }
    }
}
