//! A container that is stopped without a notice: by a timeout of Batch, by ECS, or because its machine shuts down.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::attempts::trial;
use crate::send;
use crate::world::{World, read, until};

/// Saves a complete checkpoint, and another one when it is asked to stop.
const TRAINING: &str = r#"
    echo first > "$SPOTSWEEP_CHECKPOINTS/epoch-1"; touch -d "2020-01-01" "$SPOTSWEEP_CHECKPOINTS/epoch-1"
    echo half > "$SPOTSWEEP_OUTPUT/model"
    trap 'echo second > "$SPOTSWEEP_CHECKPOINTS/epoch-2"; echo whole > "$SPOTSWEEP_OUTPUT/model"; exit 0' TERM
    echo epoch=1 acc=0.5
    while :; do sleep 0.02; done
"#;
const DEAF: &str = r#"
    echo first > "$SPOTSWEEP_CHECKPOINTS/epoch-1"; touch -d "2020-01-01" "$SPOTSWEEP_CHECKPOINTS/epoch-1"
    trap 'echo asked >> "$SPOTSWEEP_OUTPUT/asked"' TERM
    echo acc=0.5
    while :; do sleep 0.02; done
"#;
/// Avoids regular seals.
const NO_SEAL: (&str, &str) = ("SPOTSWEEP_SEAL_SECONDS", "600");

async fn is_training(world: &World) {
    let has_metric = |report: &Value| report["metrics"]["acc"]["last"] == 0.5;
    until("a report", || world.invocations("report").iter().any(has_metric)).await;
}

fn seal(world: &World) -> Option<Value> {
    let text = fs::read(world.path("volume/.spotsweep/seal.json")).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_the_trial_with_what_there_is() {
    // The timeout, the exit code, and the request that reports the end.
    for (timeout, code, kind) in [("10", 124, "end"), ("3600", 75, "release")] {
        let world = trial().await;
        let extra = [("SPOTSWEEP_TIMEOUT_SECONDS", timeout), NO_SEAL];
        let runner = world.spawn(&extra, &["sh", "-c", TRAINING]);
        is_training(&world).await;
        send(&runner, Signal::TERM);
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        assert_eq!(world.invocations(kind).len(), 1, "{}", outcome.stderr);
        let seal = seal(&world).unwrap();
        assert_eq!((&seal["final"], seal["files"].as_object().unwrap().len()), (&json!(true), 2), "{seal}");
        if kind == "end" {
            let end = &world.invocations("end")[0];
            assert_eq!((&end["exit_code"], &end["error"]), (&json!(124), &json!("timed out after 10 s")), "{end}");
            assert_eq!(world.output("model").as_deref(), Some(&b"whole\n"[..]));
            assert_eq!(world.output("train.log").as_deref(), Some(&b"epoch=1 acc=0.5\n"[..]));
            assert!(world.output("metrics.jsonl").is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_complete_is_sealed_before_the_command_gets_its_grace() {
    let world = trial().await;
    let mut runner = world.spawn(&[NO_SEAL], &["sh", "-c", DEAF]);
    is_training(&world).await;
    assert!(seal(&world).is_none_or(|seal| seal["files"] == json!({})));
    send(&runner, Signal::TERM);
    until("the command is asked", || world.path("volume/.spotsweep/storage/asked").exists()).await;
    // The machine shuts down, and Docker's ten seconds are over.
    runner.kill().await.unwrap();
    let seal = seal(&world).unwrap();
    assert_eq!(seal["files"].as_object().unwrap().keys().collect::<Vec<_>>(), ["epoch-1"], "{seal}");
    assert_eq!(seal["final"], json!(false));
    let second = world.next(2, &[], &["sh", "-c", "ls \"$SPOTSWEEP_CHECKPOINTS\""]).await;
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), "epoch-1\n"), "{}", second.stderr);
    assert!(second.stderr.contains("ended without a last seal"), "{}", second.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grace_is_no_longer_than_what_ecs_leaves() {
    let world = trial().await;
    let extra = [NO_SEAL, ("SPOTSWEEP_GRACE_SECONDS", "60"), ("SPOTSWEEP_STOP_SECONDS", "4")];
    let runner = world.spawn(&extra, &["sh", "-c", DEAF]);
    is_training(&world).await;
    let asked = Instant::now();
    send(&runner, Signal::TERM);
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
    assert!(asked.elapsed() < Duration::from_secs(6), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("SPOTSWEEP_GRACE_SECONDS=60"), "{}", outcome.stderr);
    assert_eq!(seal(&world).unwrap()["final"], json!(true));
    assert_eq!(read(&world.path("volume/checkpoints/epoch-1")), "first\n");
}
