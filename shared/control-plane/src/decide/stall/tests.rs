#![allow(clippy::unwrap_used)]

use serde_json::json;
use spotsweep_protocol::claim::Outputs;
use spotsweep_protocol::stall::StallRule;
use spotsweep_sweep_file::Stalled;

use crate::decide::scene::Scene;
use crate::decide::stall::rule;
use crate::event::Ending;
use crate::outcome::Outcome;
use spotsweep_records::trial::JobStatus;
use spotsweep_report::diagnosis::why;

#[test]
fn people_are_notified_before_the_record_has_the_stall_and_once() {
    let mut scene = Scene::new();
    scene.claims();
    let notification = scene.reports(Some(1800), None).unwrap();
    let lines: Vec<&str> = notification.message.lines().collect();
    let expected = "sweeps/s.yaml: trial 0 is stalled: no output, metric, checkpoint or GPU activity for 30 min";
    assert_eq!(lines[0], expected);
    assert!(lines[1].starts_with("attempt 1 is ended after 30 min without a sign"), "{lines:?}");
    assert_eq!((&notification.detail()["trial"], notification.kind.detail_type()), (&json!(0), "Trial Stalled"));
    assert_eq!(scene.trial().stall, None, "not before people are notified");
    scene.take(Outcome::Notified(notification.clone()));
    let note = "attempt 1: no output, metric, checkpoint or GPU activity since 1969-12-31 23:30:00 UTC";
    assert_eq!(scene.trial().notes(), [note]);
    assert_eq!(scene.reports(Some(1900), None), None, "once for a stall");

    assert_eq!(scene.reports(None, None), None);
    assert_eq!(scene.trial().stall, None, "the training goes on");
    scene.take(Outcome::Notified(notification));
    assert_eq!(scene.trial().stall, None, "the report is not the newest one");
    assert!(scene.reports(Some(1800), None).is_some(), "another stall");
}

#[test]
fn the_third_stall_fails_the_trial() {
    let mut scene = Scene::new();
    for is_last in [false, false] {
        assert_eq!(scene.claims().is_last, is_last);
        let notification = scene.reports(Some(1800), None).unwrap();
        scene.take(Outcome::Notified(notification));
        assert_eq!(scene.reports(Some(1800), Some(Ending::Released { rollback: None })), None);
        scene.ends(75);
        assert!(scene.trial().notes().is_empty() && scene.trial().attempts.values().all(|one| one.was_interrupted()));
    }
    assert!(scene.claims().is_last);
    let notification = scene.reports(Some(1800), None).unwrap();
    assert!(notification.message.contains("the trial fails after 30 min without a sign"), "{}", notification.message);
    let (outputs, error) = (Outputs::default(), None);
    scene.reports(Some(1800), Some(Ending::Finished { exit_code: 124, outputs, error, seconds: 1.0 }));
    scene.ends(124);
    scene.trial().status = JobStatus::Failed;
    assert_eq!(why(scene.trial()), "stalled: no output, metric, checkpoint or GPU activity for 30 min");
}

#[test]
fn a_limit_is_warned_of_after_an_hour_at_most() {
    let of = |seconds| {
        let rule = rule(Some(Stalled::After { seconds }));
        (rule.warn_seconds, rule.end_seconds)
    };
    assert_eq!([of(1800), of(7200)], [(Some(1800), Some(1800)), (Some(3600), Some(7200))]);
    assert_eq!([rule(None), rule(Some(Stalled::Off))], [StallRule::default(), StallRule::OFF]);
}

#[test]
fn a_trial_without_a_limit_is_only_warned_of() {
    let mut scene = Scene::new();
    scene.view.sweep.as_mut().unwrap().record.plan.as_mut().unwrap().stalls = StallRule::default();
    assert_eq!(scene.claims(), StallRule::default());
    let notification = scene.reports(Some(3600), None).unwrap();
    assert!(notification.message.contains("it goes on running"), "{}", notification.message);
}
