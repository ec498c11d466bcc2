//! Interruptions as decisions: a trial that others have passed is moved or ended.

use std::fs;

use spotsweep_studies::replay::{Curves, ReplayError, decisions};

use super::{MODEL, closing, open, plan, window};

/// There is one rung at three quarters of the training. Trial 0 is the best there, and in the end.
const CURVES: &str = r#"{"epochs": 4, "rungs": [3], "tasks": {"t": [[0.9, 0.9], [0.3, 0.3], [0.2, 0.4], [0.1, 0.1]]}}"#;

fn curves(text: &str) -> Result<Curves, ReplayError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curves.json");
    fs::write(&path, text).unwrap();
    Curves::read(&path)
}

#[test]
fn a_trial_that_others_have_passed_is_ended_instead_of_moved() {
    // Zone a closes at 3000 s, when each trial has trained for about 2800 s of 3600. Then zone b opens.
    let windows = window(&[&closing(50, 150), &("0".repeat(50) + &open(150))]);
    let found = decisions(&plan(2, 4, MODEL), &curves(CURVES).unwrap(), &windows).unwrap();
    let (moved, ended) = (&found.moved, &found.ended);
    assert_eq!((moved.finished_trials, moved.ended_trials), (4, 0), "{found:?}");
    assert_eq!(ended.finished_trials + ended.ended_trials, 4, "{found:?}");
    assert!((2..=3).contains(&ended.ended_trials), "{found:?}");
    assert_eq!((&moved.best, &ended.best, found.same_best()), (&vec![0.9], &vec![0.9], 1));
    assert!(ended.usd < moved.usd && ended.instance_hours < moved.instance_hours, "{found:?}");
    for course in [moved, ended] {
        assert!(course.usd_until_best > 0.0 && course.usd_until_best <= course.usd, "{found:?}");
        assert!(course.hours_until_best <= course.makespan_hours, "{found:?}");
    }
}

#[test]
fn curves_that_do_not_fit_are_refused() {
    let asked = |result: Result<_, ReplayError>| match result {
        Err(ReplayError::Asked(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let short = r#"{"epochs": 4, "rungs": [3], "tasks": {"t": [[0.9]]}}"#;
    assert!(asked(curves(short).map(drop)).contains("each trial needs 2 values"));
    assert!(asked(curves("{}").map(drop)).contains("missing field"));
    let few = decisions(&plan(1, 5, MODEL), &curves(CURVES).unwrap(), &window(&[&open(10)]));
    assert!(asked(few.map(drop)).contains("too few trials"));
}
