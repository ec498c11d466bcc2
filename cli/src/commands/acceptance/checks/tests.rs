#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

const INSTANCE: &str = "i-1234567890abcdef0";

/// An event of `tests/events`, sent and received these seconds after the recording's start.
fn event(file: &str, at: i64, change: impl FnOnce(&mut Value)) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/events/{file}.json"));
    let mut event = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut event);
    let at = Timestamp::from_second(1_795_262_400 + at).unwrap();
    event["time"] = json!(at.to_string());
    Recorded { event, at, received: Timestamp::from_millisecond(at.as_millisecond() + 1_500).unwrap() }
}

fn container_instance(status: &str, at: i64) -> Recorded {
    event("reconcile", at, |event| {
        event["source"] = json!("aws.ecs");
        event["detail-type"] = json!("ECS Container Instance State Change");
        event["detail"] = json!({ "containerInstanceArn": "arn:one", "ec2InstanceId": INSTANCE, "status": status });
    })
}

/// A job whose first attempt was reclaimed at second 200, and whose second one started elsewhere.
fn job(change: impl FnOnce(&mut Value)) -> Recorded {
    event("batch-job-state-change", 300, |event| {
        let attempt = |host: &str, started: i64| {
            json!({ "container": { "containerInstanceArn": host }, "startedAt": 1_795_262_400_000_i64 + started * 1000,
                "stoppedAt": 1_795_262_600_000_i64, "statusReason": "Host EC2 (instance i-1234567890abcdef0) terminated." })
        };
        event["detail"]["attempts"] = json!([attempt("arn:one", 10), attempt("arn:two", 150)]);
        change(&mut event["detail"]["attempts"]);
    })
}

/// A recording in which AWS does what its documents promise.
fn kind_aws() -> Vec<Recorded> {
    vec![
        container_instance("ACTIVE", 0),
        event("ebs-volume-available", 5, |_| {}),
        event("ec2-rebalance-recommendation", 90, |_| {}),
        event("ec2-spot-interruption-warning", 100, |_| {}),
        container_instance("DRAINING", 103),
        job(|_| {}),
    ]
}

fn verdicts(recording: &[Recorded]) -> BTreeMap<&'static str, Verdict> {
    judge(recording).into_iter().map(|check| (check.name, check.verdict)).collect()
}

#[test]
fn all_hold_where_aws_is_as_documented() {
    let checks = judge(&kind_aws());
    assert!(checks.iter().all(|check| check.verdict == Verdict::Held && !check.recorded.is_empty()), "{checks:#?}");
}

#[test]
fn each_check_fails_on_its_own_contradiction_alone() {
    let late = Timestamp::from_second(1_795_262_400 + 100 + 120).unwrap();
    let contradictions: [(&str, usize, Recorded); 7] = [
        ("event-shapes", 1, event("ebs-volume-available", 5, |event| event["detail"]["result"] = json!([]))),
        ("rebalance", 2, event("ec2-rebalance-recommendation", 110, |_| {})),
        ("warning-delay", 3, Recorded { received: late, ..event("ec2-spot-interruption-warning", 100, |_| {}) }),
        ("draining", 4, container_instance("ACTIVE", 103)),
        ("placement", 5, job(|attempts| attempts[1]["container"]["containerInstanceArn"] = json!("arn:one"))),
        ("status-reason", 5, job(|attempts| attempts[0]["statusReason"] = json!("Task stopped"))),
        (
            "no-detach-event",
            1,
            event("ebs-volume-available", 5, |event| event["detail"]["event"] = json!("detachVolume")),
        ),
    ];
    for (name, place, recorded) in contradictions {
        let mut recording = kind_aws();
        recording[place] = recorded;
        for (check, verdict) in verdicts(&recording) {
            let expected = if check == name { Verdict::DidNotHold } else { Verdict::Held };
            assert_eq!(verdict, expected, "{name}: {check}");
        }
    }
}

/// An event's time is cut to the second. So an attempt may have started before the warning although its time is later.
#[test]
fn an_attempt_of_the_warnings_own_second_is_not_late() {
    let started = |millis: i64| {
        let mut recording = kind_aws();
        recording[5] = job(|attempts| attempts[0]["startedAt"] = json!(1_795_262_400_000_i64 + millis));
        verdicts(&recording)["placement"]
    };
    assert_eq!((started(100_900), started(101_100)), (Verdict::Held, Verdict::DidNotHold));
}

/// Only an attempt that lost its instance shows the reason for that.
#[test]
fn an_attempt_that_ended_before_its_instance_is_not_looked_at() {
    let failed_start = |stopped: i64| {
        job(|attempts| {
            attempts[0]["statusReason"] = json!("Task failed to start");
            attempts[0]["stoppedAt"] = json!(1_795_262_400_000_i64 + stopped * 1000);
        })
    };
    let mut recording = kind_aws();
    recording[5] = failed_start(50);
    assert_eq!(verdicts(&recording)["status-reason"], Verdict::NotSeen, "half a minute before the warning");
    recording[5] = failed_start(110);
    assert_eq!(verdicts(&recording)["status-reason"], Verdict::DidNotHold);
    // The instance is terminated without a notice.
    recording[3] = event("reconcile", 100, |event| {
        event["source"] = json!("aws.ec2");
        event["detail-type"] = json!("EC2 Instance State-change Notification");
        event["detail"] = json!({ "instance-id": INSTANCE, "state": "shutting-down" });
    });
    assert_eq!(verdicts(&recording)["status-reason"], Verdict::DidNotHold);
}

#[test]
fn what_was_not_recorded_is_not_said_to_hold() {
    let foreign = event("reconcile", 0, |event| event["source"] = json!("somebody.else"));
    assert!(verdicts(&[foreign]).values().all(|verdict| *verdict == Verdict::NotSeen));
    // The rule does not record aws.ecs. So draining cannot be judged, and no instance is known to have had an attempt.
    let without_ecs: Vec<Recorded> =
        kind_aws().into_iter().filter(|recorded| !recorded.kind().starts_with("ECS")).collect();
    for name in ["draining", "placement", "status-reason"] {
        assert_eq!(verdicts(&without_ecs)[name], Verdict::NotSeen, "{name}");
    }
    assert_eq!(verdicts(&without_ecs)["rebalance"], Verdict::Held);
}

#[test]
fn delays_are_counted_by_kind() {
    let delays = delays(&kind_aws());
    assert_eq!(delays.len(), 5);
    assert!(delays.iter().all(|delay| (delay.median, delay.longest) == (1.5, 1.5)), "{delays:?}");
    assert_eq!(delays.iter().map(|delay| delay.events).sum::<usize>(), 6);
}
