//! Decides whether what was seen proves that a training survives interruptions, or that it does not, or neither.

use super::moments::Moment;
use super::starts::Start;

/// What was seen of a trial.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// How each attempt began.
    pub(super) starts: &'a [Start],
    /// Whether a checkpoint was saved, as far as is known.
    pub(super) has_saved: bool,
    /// Whether an attempt failed by itself.
    pub(super) has_failed: bool,
    /// Whether any attempt showed a step.
    pub(super) has_steps: bool,
    /// Whether there is a problem of any kind.
    pub(super) has_problem: bool,
    /// The interruptions that were not made.
    pub(super) untried: Vec<Moment>,
}

/// What was proven.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) answer: Answer,
    /// What was not seen. It is empty if the training is proven to lose everything, because nothing more needs to be
    /// seen then.
    pub(super) gaps: Vec<Gap>,
    pub(super) on_spot: OnSpot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// All interruptions were made, the training was seen to go on from its checkpoint, and nothing speaks against it.
    Proven,
    /// No problem was seen, but not everything that would show one was seen either.
    NotProven,
    Problem,
}

/// What happens to a long training on Spot, as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnSpot {
    /// An interruption costs what was trained since the last checkpoint.
    GoesOn,
    /// An interruption costs the whole training.
    StartsOver,
    Unknown,
}

/// What was not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gap {
    /// No attempt was seen to train after it had found a checkpoint.
    NotResumed,
    /// There are no steps that can be compared from one attempt to the next.
    NoStep,
    /// No attempt came further than the first step.
    FirstStep,
    /// Steps and checkpoints disagree, or fit neither a training that goes on nor one that starts over.
    Unclear,
    /// Not all files of a checkpoint went back to one version.
    Mixed,
    /// These interruptions were not made.
    Untried(Vec<Moment>),
}

/// Decides.
pub(super) fn verdict(facts: &Facts<'_>) -> Verdict {
    let any = |start: Start| facts.starts.contains(&start);
    let goes_on = any(Start::GoesOn) || any(Start::Mixed);
    let fails_on_each = any(Start::Failed) && !goes_on;
    // Nothing is known of a script that fails before it saves.
    let never_saves = !facts.has_saved && !facts.has_failed && facts.has_problem;
    let on_spot = if any(Start::FromBeginning) || any(Start::Lost) || fails_on_each || never_saves {
        OnSpot::StartsOver
    } else if goes_on && !any(Start::Unclear) && !any(Start::Mixed) {
        OnSpot::GoesOn
    } else {
        OnSpot::Unknown
    };
    let gaps = if on_spot == OnSpot::StartsOver || facts.has_failed { Vec::new() } else { gaps(facts) };
    let answer = match (facts.has_problem, gaps.is_empty()) {
        (true, _) => Answer::Problem,
        (false, true) => Answer::Proven,
        (false, false) => Answer::NotProven,
    };
    Verdict { answer, gaps, on_spot }
}

fn gaps(facts: &Facts<'_>) -> Vec<Gap> {
    let any = |start: Start| facts.starts.contains(&start);
    let resumed = if any(Start::Unclear) {
        Some(Gap::Unclear)
    } else if any(Start::Mixed) {
        Some(Gap::Mixed)
    } else if any(Start::GoesOn) {
        None
    } else if any(Start::FirstStep) {
        Some(Gap::FirstStep)
    } else if any(Start::NoStep) || (any(Start::Unseen) && !facts.has_steps) {
        Some(Gap::NoStep)
    } else {
        Some(Gap::NotResumed)
    };
    let untried = (!facts.untried.is_empty()).then(|| Gap::Untried(facts.untried.clone()));
    resumed.into_iter().chain(untried).collect()
}

/// The sentence for a training that is proven to go on after `interruptions`. It says in how many attempts that was seen,
/// because the others may have ended before they showed a step.
pub(super) fn proof(starts: &[Start], interruptions: &str) -> String {
    let found = starts.iter().filter(|start| !matches!(start, Start::Fresh | Start::Lost)).count();
    let seen = starts.iter().filter(|start| **start == Start::GoesOn).count();
    let others = if seen < found { "; the others showed no step that proves it" } else { "" };
    let attempts = if found == 1 { "attempt" } else { "attempts" };
    format!(
        "the training goes on from its checkpoint, after {interruptions}: seen in {seen} of the {found} {attempts} that \
         found one{others}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How attempts began, what else differs from a sound training, and what follows.
    type Case = (&'static [Start], &'static str, Answer, Vec<Gap>, OnSpot);

    /// Facts of attempts that began in these ways. `but` names what differs from a sound training with all
    /// interruptions.
    fn facts<'a>(starts: &'a [Start], but: &str) -> Facts<'a> {
        let untried = if but.contains("untried") { vec![Moment::WhileSaving] } else { Vec::new() };
        Facts {
            starts,
            has_saved: !but.contains("unsaved"),
            has_failed: but.contains("failure"),
            has_steps: !but.contains("stepless"),
            has_problem: but.contains("problem"),
            untried,
        }
    }

    #[test]
    fn only_what_was_seen_is_proven() {
        use Answer::{NotProven, Problem, Proven};
        use Gap::{NotResumed, Untried};
        use Start::{Failed, FirstStep, Fresh, FromBeginning, GoesOn, Lost, Mixed, NoStep, Unclear, Unseen};
        let untried = || Untried(vec![Moment::WhileSaving]);
        let cases: [Case; 21] = [
            (&[Fresh, GoesOn, Unseen, GoesOn], "", Proven, vec![], OnSpot::GoesOn),
            (&[Fresh, FirstStep, NoStep, GoesOn], "", Proven, vec![], OnSpot::GoesOn),
            (&[Fresh, GoesOn], "problem", Problem, vec![], OnSpot::GoesOn),
            (&[Fresh, GoesOn], "untried", NotProven, vec![untried()], OnSpot::GoesOn),
            // The training ends at once.
            (&[Fresh], "untried", NotProven, vec![NotResumed, untried()], OnSpot::Unknown),
            (&[Fresh], "untried problem", Problem, vec![NotResumed, untried()], OnSpot::Unknown),
            (&[], "unsaved stepless", NotProven, vec![NotResumed], OnSpot::Unknown),
            (&[Fresh, Unseen], "", NotProven, vec![NotResumed], OnSpot::Unknown),
            (&[Fresh, NoStep], "stepless", NotProven, vec![Gap::NoStep], OnSpot::Unknown),
            (&[Fresh, Unseen], "stepless", NotProven, vec![Gap::NoStep], OnSpot::Unknown),
            // Lightning shows the epoch in one attempt, and the batch in another one.
            (&[Fresh, NoStep, Unseen, Unseen, NoStep], "", NotProven, vec![Gap::NoStep], OnSpot::Unknown),
            (&[Fresh, FirstStep], "", NotProven, vec![Gap::FirstStep], OnSpot::Unknown),
            (&[Fresh, GoesOn, Unclear], "", NotProven, vec![Gap::Unclear], OnSpot::Unknown),
            (&[Fresh, GoesOn, Mixed], "", NotProven, vec![Gap::Mixed], OnSpot::Unknown),
            (&[Fresh, FromBeginning], "problem untried", Problem, vec![], OnSpot::StartsOver),
            (&[Fresh, GoesOn, FromBeginning], "problem", Problem, vec![], OnSpot::StartsOver),
            (&[Fresh, GoesOn, Lost], "problem", Problem, vec![], OnSpot::StartsOver),
            // It fails on each checkpoint, on one, or before it saves any.
            (&[Fresh, Failed, Fresh, Failed], "problem failure", Problem, vec![], OnSpot::StartsOver),
            (&[Fresh, Failed, GoesOn], "problem failure", Problem, vec![], OnSpot::GoesOn),
            (&[Fresh], "unsaved problem failure", Problem, vec![], OnSpot::Unknown),
            (&[Fresh, Fresh], "unsaved problem", Problem, vec![], OnSpot::StartsOver),
        ];
        for (starts, but, answer, gaps, on_spot) in cases {
            assert_eq!(verdict(&facts(starts, but)), Verdict { answer, gaps, on_spot }, "{starts:?} {but}");
        }
    }

    #[test]
    fn the_proof_says_in_how_many_attempts_it_was_seen() {
        use Start::{Fresh, GoesOn, Unseen};
        let all = "the training goes on from its checkpoint, after 5 interruptions: seen in 2 of the 2 attempts that found one";
        assert_eq!(proof(&[Fresh, GoesOn, GoesOn], "5 interruptions"), all);
        let some = proof(&[Fresh, Fresh, Unseen, Unseen, GoesOn, Unseen], "5 interruptions");
        assert!(some.ends_with("seen in 1 of the 4 attempts that found one; the others showed no step that proves it"));
    }
}
