//! Trainings that are stalled, or only seem to be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, Outcome, World, generous, granted, kind, well};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stalls/hang.py");
const GRACE: (&str, &str) = ("SPOTSWEEP_GRACE_SECONDS", "5");
/// The time of a stall until it ends an attempt. It counts from the command's start: Python starts within a second only
/// on idle cores.
const END_SECONDS: u32 = 3;
const END: (Option<u32>, Option<u32>) = (Some(END_SECONDS), Some(END_SECONDS));
/// A stall is reported after a second.
const WARN: (Option<u32>, Option<u32>) = (Some(1), None);

fn with_rule(answer: Answer, (warn, end): (Option<u32>, Option<u32>), is_last: bool) -> Answer {
    let Answer::Json(mut reply) = answer else { return answer };
    if reply["granted"].is_object() {
        reply["granted"]["stalls"] = json!({"warn_seconds": warn, "end_seconds": end, "is_last": is_last});
    }
    Answer::Json(reply)
}

fn ending(request: &str, nth: usize) -> Answer {
    with_rule(generous(request, nth), END, false)
}

fn ending_last(request: &str, nth: usize) -> Answer {
    with_rule(generous(request, nth), END, true)
}

fn warning(request: &str, _nth: usize) -> Answer {
    if request == "claim" { with_rule(granted(), WARN, false) } else { kind(request, 0) }
}

async fn trial(invoke: crate::world::Invoke) -> World {
    let world = World::start(invoke, well).await;
    fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
    world
}

async fn attempt(world: &World, extra: &[(&str, &str)], way: &str) -> Outcome {
    world.run(&[&[GRACE], extra].concat(), &["python3", SCRIPT, way]).await
}

/// The stalled seconds in those requests of a kind that have them.
fn stalls(world: &World, kind: &str) -> Vec<u64> {
    world.invocations(kind).iter().filter_map(|request| request["stalled_seconds"].as_u64()).collect()
}

/// A request of this kind has the stalled seconds. If the answer to a report is late, the next one repeats them.
fn assert_stalled(world: &World, kind: &str) {
    let seconds = stalls(world, kind);
    assert!((1..=2).contains(&seconds.len()), "{kind}: {seconds:?}");
    assert!(seconds.iter().all(|seconds| *seconds >= END_SECONDS.into()), "{kind}: {seconds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_hangs_is_ended_and_goes_on_from_its_checkpoint() {
    let world = trial(ending).await;
    let first = attempt(&world, &[], "dumps").await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    let reason = "interrupted: stalled: no output, metric, checkpoint or GPU activity for 3 s";
    assert!(first.stderr.contains(reason), "{}", first.stderr);
    assert!(first.stderr.contains("in waits_for_a_peer"), "the stacks are in the log: {}", first.stderr);
    assert!(first.stdout.contains("asked to stop"), "it may save: {}", first.stdout);
    assert_stalled(&world, "report");
    assert_stalled(&world, "release");
    let seal = &world.invocations("release")[0]["seal"];
    assert_eq!(seal["newest"], "epoch-1");

    let second = attempt(&world, &[("AWS_BATCH_JOB_ATTEMPT", "3")], "dumps").await;
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), "goes on\n"), "{}", second.stderr);
    assert_eq!(stalls(&world, "end"), [0; 0]);
    let log = String::from_utf8(world.output("train.log").unwrap()).unwrap();
    assert!(log.contains("in waits_for_a_peer") && log.contains("goes on"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_stall_fails_the_trial() {
    let world = trial(ending_last).await;
    let outcome = attempt(&world, &[], "dumps").await;
    assert_eq!(outcome.code, Some(124), "{}", outcome.stderr);
    assert_stalled(&world, "report");
    assert_stalled(&world, "end");
    let end = &world.invocations("end")[0];
    let error = "stalled: no output, metric, checkpoint or GPU activity for 3 s";
    assert_eq!((&end["exit_code"], &end["error"]), (&json!(124), &json!(error)));
    assert_eq!(world.invocations("release"), [] as [Value; 0]);
    assert!(world.output("train.log").is_some(), "what it leaves is collected");
}

/// The signal would end a process without a handler at once, before it could print that it was asked to stop. A process
/// that ends by its own handler has not trained to its end.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_process_that_handles_the_dump_signal_gets_it() {
    for (way, says) in [("has none", "asked to stop"), ("exits", "")] {
        let world = trial(ending).await;
        let outcome = attempt(&world, &[], way).await;
        assert_eq!(outcome.code, Some(75), "{way} {}", outcome.stderr);
        assert!(outcome.stdout.contains(says), "{way} {}", outcome.stdout);
        assert_eq!(outcome.stderr.contains("for its stacks"), way == "exits", "{way} {}", outcome.stderr);
        assert_eq!(world.invocations("end"), [] as [Value; 0], "{way}");
    }
    let world = trial(ending).await;
    let outcome = attempt(&world, &[("SPOTSWEEP_STOP_SIGNAL", "USR1")], "dumps").await;
    assert!(!outcome.stderr.contains("for its stacks"), "it asks for an end here: {}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_only_saves_is_not_stalled() {
    let saves = r#"for epoch in 1 2 3 4 5 6 7 8 9; do echo $epoch > FOLDER/epoch; sleep 0.6; done"#;
    for folder in ["$SPOTSWEEP_CHECKPOINTS", "$SPOTSWEEP_OUTPUT"] {
        let world = trial(ending).await;
        let outcome = world.run(&[], &["sh", "-c", &saves.replace("FOLDER", folder)]).await;
        assert_eq!(outcome.code, Some(0), "{folder} {}", outcome.stderr);
        assert_eq!(stalls(&world, "report"), [0; 0], "{folder}");
    }
    let world = trial(ending).await;
    let writes = saves.replace("> FOLDER/epoch", r#">> "$SPOTSWEEP_METRICS""#);
    let outcome = world.run(&[], &["sh", "-c", &writes]).await;
    assert_eq!((outcome.code, stalls(&world, "report")), (Some(0), vec![]), "{}", outcome.stderr);
}

/// Scripts for Slurm save and exit on SIGUSR1, so a warning must not send it.
#[tokio::test(flavor = "multi_thread")]
async fn a_warning_changes_nothing_for_the_training() {
    let world = World::start(warning, well).await;
    let script = "trap 'exit 9' USR1; sleep 3 & wait $!; echo acc=1; sleep 0.5";
    let outcome = world.run(&[], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("the training goes on"), "{}", outcome.stderr);
    let reports: Vec<bool> =
        world.invocations("report").iter().map(|report| report["stalled_seconds"].is_u64()).collect();
    assert_eq!(reports.first(), Some(&true), "{reports:?}");
    assert_eq!(reports.last(), Some(&false), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_that_works_or_is_not_known_keeps_an_attempt() {
    // The output of nvidia-smi, the exit code, and whether there is a warning.
    for (says, code, is_warned) in
        [("GPU-a, 40", 0, false), ("GPU-a, [N/A]", 0, true), ("GPU-b, 0", 0, true), ("GPU-a, 0\nGPU-b, 100", 75, true)]
    {
        let world = trial(ending).await;
        let program = world.path("nvidia-smi");
        fs::write(&program, format!("#!/bin/sh\nprintf '{says}\\n'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", world.path("").display(), std::env::var("PATH").unwrap());
        let grace = ("SPOTSWEEP_GRACE_SECONDS", "1");
        let extra = [("PATH", path.as_str()), ("NVIDIA_VISIBLE_DEVICES", "GPU-a"), grace];
        let outcome = world.run(&extra, &["sh", "-c", "sleep 8"]).await;
        assert_eq!(outcome.code, Some(code), "{says} {}", outcome.stderr);
        assert_eq!(stalls(&world, "report").len(), usize::from(is_warned), "{says} {}", outcome.stderr);
    }
}

/// S3 refuses two requests of a phase, and the SDK waits between its tries.
fn busy(method: &Method, key: &str) -> StatusCode {
    static READS: AtomicU32 = AtomicU32::new(0);
    static LOGS: AtomicU32 = AtomicU32::new(0);
    let tries = match key {
        key if *method == Method::GET && key.ends_with("trials.jsonl") => &READS,
        key if *method == Method::PUT && key.ends_with("train.log") => &LOGS,
        _another => return StatusCode::OK,
    };
    let is_busy = tries.fetch_add(1, Ordering::Relaxed) < 2;
    if is_busy { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

/// Otherwise the control plane would take the attempt for one that has disappeared.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_reports_while_nothing_changes_and_while_it_waits_for_s3() {
    let world = World::start(kind, busy).await;
    let quiet = [("SPOTSWEEP_REPORT_WITHIN_SECONDS", "0.02"), ("SPOTSWEEP_UPLOAD_SECONDS", "60")];
    let outcome = world.run(&quiet, &["sh", "-c", "echo score=0.5; sleep 1"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let reports = world.invocations("report");
    let has_score = |report: &Value| report["metrics"]["score"].is_object();
    let first = reports.iter().position(has_score).unwrap();
    let last = reports.iter().rposition(has_score).unwrap();
    assert!(first > 0, "none while the parameters are read: {reports:#?}");
    assert!(last - first > 10, "none while the training is quiet: {reports:#?}");
    assert!(reports.len() > last + 1, "none while the log is uploaded: {reports:#?}");
}
