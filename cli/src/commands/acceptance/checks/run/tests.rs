#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use serde_json::json;
use spotsweep_protocol::ids::{JobId, SweepId};

use super::super::Verdict;
use super::*;
use spotsweep_records::trial::JobStatus;

const BEGIN: i64 = 1_795_262_400;

fn instance(state: &str, at: i64) -> Recorded {
    let event = json!({ "detail-type": "EC2 Instance State-change Notification", "detail": { "instance-id": "i-1", "state": state } });
    let at = Timestamp::from_second(BEGIN + at).unwrap();
    Recorded { event, at, received: Timestamp::from_second(at.as_second() + 1).unwrap() }
}

/// An instance that ran for half an hour.
fn recording() -> Vec<Recorded> {
    vec![instance("pending", 0), instance("terminated", 1_800)]
}

fn with_state(kind: Kind, state: State) -> Injection {
    let mut injection = Injection::new(kind);
    injection.state = state;
    injection
}

fn injection_on(kind: Kind, instance: &str) -> Injection {
    let state = State::Happened { instance: instance.to_owned(), at: Timestamp::from_second(BEGIN).unwrap() };
    with_state(kind, state)
}

/// A good run, in which trial 1 was stopped and trial 2 was killed.
fn good() -> Facts {
    let pace = Pace::LOCAL;
    let trial = |index| {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        trial.status = JobStatus::Succeeded;
        trial
    };
    let stories = [
        (0, "began 0\nfinished 60\n"),
        (1, "began 0\nstopped 7\nbegan 7\nfinished 60\n"),
        (2, "began 0\nbegan 9\nfinished 60\n"),
        (3, "began 0\nfinished 60\n"),
    ];
    Facts {
        pace,
        estimate: Estimate::at(0.5, 2.0, pace),
        trials: (0..4).map(trial).collect(),
        injections: injection::ALL.map(|kind| injection_on(kind, "i-1")).into(),
        stories: stories.map(|(index, story)| (index, story.to_owned())).into(),
        models: (0..4).map(|index| (index, sweep::model(index, pace).unwrap() + "\n")).collect(),
        access: Some(vec![Ok("reads its own".to_owned())]),
        spent: Some(Spent { usd: 0.2, storage_usd: 0.01, control_plane_usd: 0.01, ..Spent::default() }),
        leftovers: Vec::new(),
        gpus: false,
    }
}

#[test]
fn all_hold_where_all_is_well() {
    let checks = judge(&good(), &recording());
    assert!(checks.iter().all(|check| check.verdict == Verdict::Held && !check.recorded.is_empty()), "{checks:#?}");
}

#[test]
fn each_check_fails_on_its_own_contradiction_alone() {
    let spent = |usd: f64, unpriced_seconds: f64| Some(Spent { usd, unpriced_seconds, ..Spent::default() });
    let good = good();
    let story = |text: &str| [(1, text.to_owned())].into();
    let state = State::Failed { reason: "FIS has interrupted no instance".to_owned() };
    let refused = with_state(Kind::Interruption, state);
    let contradictions = [
        ("success", Facts { models: BTreeMap::new(), ..good.clone() }),
        ("success", Facts { trials: good.trials[..3].to_vec(), ..good.clone() }),
        ("success", Facts { models: (0..4).map(|index| (index, "1".to_owned())).collect(), ..good.clone() }),
        ("resume", Facts { stories: story("began 0\nstopped 7\nbegan 6\n"), ..good.clone() }),
        ("resume", Facts { stories: story("began 0\nstopped 7\nbegan 17\n"), ..good.clone() }),
        ("resume", Facts { stories: story("began 0\nbegan 0\n"), ..good.clone() }),
        (
            "session-tags",
            Facts { access: Some(vec![Ok("own".to_owned()), Err("another\'s".to_owned())]), ..good.clone() },
        ),
        ("costs", Facts { spent: spent(0.2, 1.0), ..good.clone() }),
        ("costs", Facts { spent: spent(0.3, 0.0), ..good.clone() }),
        ("costs", Facts { spent: spent(0.0, 0.0), ..good.clone() }),
        ("interruption", Facts { injections: vec![refused, injection_on(Kind::Termination, "i-1")], ..good.clone() }),
        ("nothing-left", Facts { leftovers: vec!["vol-1".to_owned()], ..good.clone() }),
    ];
    for (name, facts) in contradictions {
        for check in judge(&facts, &recording()) {
            let expected = if check.name == name { Verdict::DidNotHold } else { Verdict::Held };
            assert_eq!(check.verdict, expected, "{name}: {check:?}");
        }
    }
    let late = Recorded { received: Timestamp::from_second(BEGIN + 2_101).unwrap(), ..instance("terminated", 1_800) };
    let checks = judge(&good, &[instance("pending", 0), late]);
    assert_eq!(checks.iter().find(|check| check.name == "event-delay").unwrap().verdict, Verdict::DidNotHold);
}

#[test]
fn what_was_not_seen_is_not_said_to_hold() {
    let undisturbed = [(0, "began 0\nfinished 60\n".to_owned())].into();
    let injections = injection::ALL.map(Injection::new).into();
    let facts = Facts { stories: undisturbed, access: None, spent: None, injections, ..good() };
    for check in judge(&facts, &[]) {
        let is_seen = ["success", "nothing-left"].contains(&check.name);
        assert_eq!(check.verdict, if is_seen { Verdict::Held } else { Verdict::NotSeen }, "{}", check.name);
    }
}
