//! Attempts that do not have their workspace yet: they wait, leave, or claim nothing.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::send;
use crate::world::{Answer, INTERRUPTION, Invoke, World, generous, granted_workspace, in_seconds, until, well};

fn waits_for_ever(request: &str, nth: usize) -> Answer {
    let reason = format!("snapshot snap-1 is pending, {}", nth / 3);
    match request {
        "claim" => Answer::Json(json!({"waiting": {"reason": reason, "retry_after_ms": 50}})),
        _ => Answer::Json(json!({"accepted": {}})),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_workspace_the_attempt_leaves_before_it_trains() {
    fn unavailable(_: &str, _: usize) -> Answer {
        Answer::Json(json!({"unavailable": {"reason": "the volume is in us-east-1b"}}))
    }
    fn unavailable_late(request: &str, _: usize) -> Answer {
        match request {
            "claim" => granted_workspace(false),
            "access" => generous(request, 0),
            _ => unavailable(request, 0),
        }
    }
    fn refused_late(request: &str, _: usize) -> Answer {
        match request {
            "claim" => granted_workspace(false),
            "access" => generous(request, 0),
            _ => Answer::Json(json!({"refused": {"reason": {"stop": "fenced", "attempt": 1}}})),
        }
    }
    // How trial-claim answers, whether the volume appears, exit code, the message in the log, and the requests.
    let cases: [(Invoke, bool, i32, &str, &[&str]); 5] = [
        (unavailable, true, 75, "us-east-1b", &["claim"]),
        (waits_for_ever, true, 75, "snap-1", &["release"]),
        (generous, false, 75, "vol-0abc is granted, but has not appeared", &["claim", "access", "release"]),
        (unavailable_late, true, 75, "us-east-1b", &["claim", "access", "mounted"]),
        (refused_late, true, 77, "a later one has the trial", &["claim", "access", "mounted"]),
    ];
    for (invoke, appears, code, message, requests) in cases {
        let world = World::start(invoke, well).await;
        if appears {
            world.attach_folder("volume");
        }
        let started = world.path("started");
        let limit = [("SPOTSWEEP_WORKSPACE_SECONDS", "0.7")];
        let outcome = world.run(&limit, &["touch", started.to_str().unwrap()]).await;
        assert_eq!(outcome.code, Some(code), "{message}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
        assert!(world.kinds().ends_with(&requests.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>()));
        assert!(!started.exists() && !world.path("dltraining").is_symlink(), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_the_grant_or_the_first_warning() {
    fn comes(request: &str, nth: usize) -> Answer {
        match (request, nth) {
            ("claim", 0..6) => waits_for_ever(request, nth),
            (request, nth) => generous(request, nth),
        }
    }
    let world = World::start(comes, well).await;
    world.attach_folder("volume");
    let outcome = world.run(&[], &["true"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(world.invocations("claim").len(), 7);
    assert_eq!(outcome.stderr.matches("waiting for the workspace").count(), 2, "{}", outcome.stderr);

    for by_signal in [true, false] {
        let world = World::start(waits_for_ever, well).await;
        let mut runner = world.spawn(&[], &["true"]);
        until("a claim", || !world.invocations("claim").is_empty()).await;
        if !by_signal {
            world.announce(INTERRUPTION, &in_seconds(120));
            until("the release", || !world.invocations("release").is_empty()).await;
            // A runner that does not wait would have ended by now.
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert!(runner.try_wait().unwrap().is_none(), "Batch would start the next attempt on the same instance");
        }
        send(&runner, Signal::TERM);
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
        assert_eq!(world.invocations("release").len(), 1, "{}", outcome.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_on_an_instance_under_notice_claims_nothing_and_waits_for_its_end() {
    let world = World::start(generous, well).await;
    world.attach_folder("volume");
    let started = world.path("started");
    world.announce(INTERRUPTION, &in_seconds(120));
    let mut runner = world.spawn(&[], &["touch", started.to_str().unwrap()]);
    until("the notice is reported", || !world.invocations("notice").is_empty()).await;
    // A runner that does not wait would have ended by now.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(runner.try_wait().unwrap().is_none(), "Batch would start the next attempt on the same instance");
    send(&runner, Signal::TERM);
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
    assert_eq!(world.kinds(), ["notice"], "no claim brings the volume here");
    assert!(!started.exists());
}
