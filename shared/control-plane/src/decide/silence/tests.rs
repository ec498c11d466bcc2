#![allow(clippy::unwrap_used)]

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::command::Command;
use crate::decide::Decision;
use crate::decide::scene::{NOW, Scene};
use crate::event::{Ask, Event};
use crate::input::{Followup, Input};
use crate::outcome::Outcome;
use spotsweep_records::sweep::notification::Notification;
use spotsweep_records::trial::{AgentState, Host, InstanceStatus, JobStatus};

/// Returns a trial whose first attempt has claimed it and runs.
fn running() -> Scene {
    let mut scene = Scene::new();
    scene.claims();
    scene.trial().status = JobStatus::Running;
    scene
}

fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// Gives the answers of ECS and EC2, and returns the notification that follows.
fn checked(scene: &mut Scene, agent: AgentState, status: InstanceStatus) -> Option<Notification> {
    let host = Some(Host { instance: Some("i-1".to_owned()), agent, status });
    let trial = scene.trial().of();
    let notification = |command| if let Command::Notify(said) = command { Some(said) } else { None };
    let decision = scene.take(Outcome::InstanceChecked { trial, attempt: 1, host });
    decision.commands.into_iter().find_map(notification)
}

fn overdue(scene: &mut Scene) -> Decision {
    let trial = scene.trial().of();
    scene.take(Input::Followup(Followup::TrialOverdue(trial)))
}

#[test]
fn people_are_notified_of_what_ecs_and_ec2_say() {
    use AgentState::{Connected, Disconnected, Unknown};
    let cases = [
        (Connected, InstanceStatus::NotImpaired, "it is left as it is and billed"),
        (Connected, InstanceStatus::Impaired, "it is left as it is and billed"),
        (Disconnected, InstanceStatus::NotImpaired, "it is left as it is and billed"),
        (Disconnected, InstanceStatus::Impaired, "i-1 is ended, as nothing can run there"),
        (Unknown, InstanceStatus::Stopped, "i-1 is ended, as nothing can run there"),
        (Unknown, InstanceStatus::Gone, "AWS Batch has yet to report the end"),
    ];
    for (agent, status, follows) in cases {
        let mut scene = running();
        scene.now = after(1020);
        let notification = checked(&mut scene, agent, status).unwrap();
        let lines: Vec<&str> = notification.message.lines().collect();
        let expected = "sweeps/s.yaml: trial 0 does not report: AWS Batch shows attempt 1 as running, and its last \
            report was 17 min ago";
        assert_eq!((lines[0], lines[1]), (expected, format!("{agent}; {status}").as_str()));
        assert!(lines[2].starts_with(follows), "{lines:?}");
        assert_eq!((&notification.detail()["trial"], notification.kind.detail_type()), (&json!(0), "Trial Silent"));
        assert_eq!(scene.trial().silence, None, "not before people are notified");
        scene.take(Outcome::Notified(notification));
        assert!(scene.trial().notes()[0].starts_with("attempt 1: no report since 1970-01-01 00:00 UTC; ECS"));
        assert_eq!(checked(&mut scene, agent, status), None, "once for an attempt");
    }
}

#[test]
fn a_report_ends_a_silence() {
    let mut scene = running();
    scene.now = after(900);
    let notification = checked(&mut scene, AgentState::Disconnected, InstanceStatus::Impaired).unwrap();
    scene.take(Outcome::Notified(notification.clone()));
    assert!(scene.trial().silence.is_some());
    scene.reports(None, None);
    assert_eq!(scene.trial().silence, None);
    scene.take(Outcome::Notified(notification));
    assert_eq!(scene.trial().silence, None, "the report is newer");
    assert_eq!(overdue(&mut scene).commands.len(), 0);
    scene.now = after(1800);
    assert!(matches!(overdue(&mut scene).commands[..], [Command::CheckInstance { attempt: 1, .. }]));
}

#[test]
fn an_attempt_that_waits_or_has_ended_is_not_looked_at() {
    for status in [JobStatus::Runnable, JobStatus::Starting, JobStatus::Succeeded, JobStatus::Failed] {
        let mut scene = running();
        scene.trial().status = status;
        scene.now = after(7200);
        assert_eq!(overdue(&mut scene).commands.len(), 0, "{status:?}");
    }
    let mut scene = running();
    scene.trial().ended = 1;
    scene.now = after(7200);
    assert_eq!(overdue(&mut scene).commands.len(), 0, "another attempt, which has not claimed the trial");
}

/// A waiting runner claims every few seconds, which must not cost a write and an audit entry each.
#[test]
fn repeated_claims_are_noted_by_the_minute() {
    let mut scene = running();
    let due = Some(after(333));
    scene.view.trial.as_mut().unwrap().due = due;
    let claim = scene.request(Ask::Claim(Default::default()));
    scene.now = after(59);
    assert_eq!(scene.take(Event::TrialRequested(claim.clone())).change, None);
    scene.now = after(60);
    let change = scene.take(Event::TrialRequested(claim)).change.unwrap();
    assert_eq!((change.figures_only, change.due), (true, due));
    assert_eq!(scene.trial().reported_at, Some(after(60)));
}
