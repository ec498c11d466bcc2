//! Runs `spotsweep watch` on the local stack. A small sweep, one of whose instances is reclaimed, is followed to its
//! end with JSON lines and with lines for people. Single frames are looked at in between.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::trial::{Attempt, JobStatus, Trial};
use spotsweep_tests::local::{Binaries, PATIENCE, Stack, call_json, eventually, s3};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::by_hand::at_terminal;

/// A sweep that is long enough to be interrupted, and not longer.
const SWEEP: &str = "\
program: train.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  hidden: {values: [16, 32]}
  lr: {values: [0.01, 0.03]}
  epochs: {value: 24}
  epoch_seconds: {value: 0.1}
";

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_sweep_is_followed_to_its_end() {
    let stack = Stack::start("watch").await;
    let file = stack.subfolder("files").join("watched.yaml");
    fs::write(&file, SWEEP).unwrap();
    let (code, sweep, notes) = run(&stack, &["submit", file.to_str().unwrap()]).await;
    assert_eq!(code, 0, "{notes}");
    let sweep = SweepId::parse(sweep.trim()).unwrap();
    let reader = Reader::new(&stack.config(), stack.table.clone());

    // One of the commands names no sweep, because there is only one.
    let follow = async |how: &'static str| match how {
        "--json" => run(&stack, &["watch", how]).await,
        _plain => run(&stack, &["watch", sweep.as_str(), how]).await,
    };
    let (machines, people, ()) = tokio::join!(follow("--json"), follow("--plain"), async {
        reclaim(&stack, &reader, &sweep).await;
        assert_stills(&stack, &sweep).await;
    });
    let trials = reader.trials(&sweep).await.unwrap();
    assert_machines(&machines, &trials);
    assert_people(&people, &trials);

    // A view that starts after the end shows everything at once.
    let (code, late, _) = run(&stack, &["watch", sweep.as_str(), "--json"]).await;
    let (first, late) = (lines(&machines.1), lines(&late));
    assert_eq!((code, late.last().unwrap()["what"].as_str()), (0, Some("settled")));
    for what in ["started", "interrupted", "resumed", "succeeded"] {
        assert_eq!(of_kind(&first, what).len(), of_kind(&late, what).len(), "{what}: {late:?}");
    }
    for beginning in ["watched", "latest"] {
        let (code, _, notes) = run(&stack, &["watch", beginning, "--once"]).await;
        assert!(code == 0 && notes.contains(sweep.as_str()), "{beginning}: {notes}");
    }
    let (code, _, notes) = run(&stack, &["watch"]).await;
    assert!(code == 1 && notes.contains("no sweep is open"), "{notes}");

    assert_rejected(&stack, &reader).await;
    stack.stop().await;
}

/// A demo's stack ends right after its sweep. A view without a sweep's name finds it, and ends with its summary.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_a_demo_ends_with_the_summary() {
    let binaries = tokio::task::spawn_blocking(Binaries::build).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("watched.yaml"), SWEEP).unwrap();
    let spotsweep = |arguments: &[&str]| {
        let mut command = Command::new(binaries.get("spotsweep"));
        command.args(arguments).current_dir(folder.path()).env("SPOTSWEEP_LOCAL", folder.path().join("local"));
        for name in ["SPOTSWEEP_TABLE", "SPOTSWEEP_BUCKET", "AWS_ENDPOINT_URL"] {
            command.env_remove(name);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    };
    let path = binaries.folder().to_str().unwrap();
    let mut demo = spotsweep(&["demo", "--sweep", "watched.yaml", "--binaries", path]).spawn().unwrap();
    let mut notes = BufReader::new(demo.stderr.take().unwrap()).lines();
    while !notes.next_line().await.unwrap().expect("the demo drops its file").contains("spotsweep watch") {}
    let rest = tokio::spawn(async move { while notes.next_line().await.is_ok_and(|line| line.is_some()) {} });
    let view = spotsweep(&["watch", "--plain"]).output().await.unwrap();
    let (out, notes) = (String::from_utf8_lossy(&view.stdout), String::from_utf8_lossy(&view.stderr));
    assert_eq!(view.status.code(), Some(0), "{out} {notes}");
    assert!(out.contains(": finished after ") && out.contains("4 trials: 4 succeeded"), "{out} {notes}");
    assert!(demo.wait_with_output().await.unwrap().status.success());
    rest.await.unwrap();
}

/// The end of the stack ends the view, which then shows the last state.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_ends_with_the_stack() {
    let stack = Stack::start("watch-gone").await;
    let file = stack.subfolder("files").join("sleep.yaml");
    fs::write(&file, "spotsweep: {workspace: off, command: [sh, -c, 'sleep 600']}\ntrials: [{a: 1}, {a: 2}]\n")
        .unwrap();
    let (code, sweep, notes) = run(&stack, &["submit", file.to_str().unwrap()]).await;
    assert_eq!(code, 0, "{notes}");
    let watch =
        |how: &str| stack.prepared(&["watch", how]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (people, machines) = (watch("--plain"), watch("--json"));
    let reader = Reader::new(&stack.config(), stack.table.clone());
    let id = SweepId::parse(sweep.trim()).unwrap();
    eventually("a trial runs", async || {
        let trials = reader.trials(&id).await.unwrap();
        trials.iter().any(|trial| trial.status == JobStatus::Running).then_some(())
    })
    .await;
    // By then both views have read the sweep. The one for people writes nothing that shows it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(at_terminal(&stack, &["cancel", "latest"], "[y/N]", "n").await, "1");
    assert_closed_terminal(&stack, &id).await;
    stack.stop().await;
    for (view, part) in [(people, "the local stack has ended"), (machines, "\"what\":\"gone\"")] {
        let ended = tokio::time::timeout(PATIENCE, view.wait_with_output()).await.expect("the view ends").unwrap();
        let (out, notes) = (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
        assert_eq!(ended.status.code(), Some(1), "{out} {notes}");
        let last = out.trim_end().lines().rev().take(2).collect::<Vec<_>>().concat();
        assert!(last.contains(part) && out.contains(sweep.trim()), "{out} {notes}");
    }
}

/// Exit code, standard output and standard error.
async fn run(stack: &Stack, arguments: &[&str]) -> (i32, String, String) {
    let run = stack.command(arguments).await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(lines: &'a [Value], what: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["what"] == what).collect()
}

/// Reclaims the instance of a trial that has trained for a while.
async fn reclaim(stack: &Stack, reader: &Reader, sweep: &SweepId) {
    let instance = eventually("a trial reports what it has learnt", async || {
        let trials = reader.trials(sweep).await.unwrap();
        let trains = |trial: &&Trial| trial.status == JobStatus::Running && !trial.metrics.is_empty();
        trials.iter().find(trains).and_then(|trial| trial.attempts[&1].instance.clone())
    })
    .await;
    let endpoint = format!("{}/_emulator/reclaim", stack.emulator);
    call_json(&endpoint, "reclaim", &json!({ "instance": instance, "notice_seconds": 2.0 })).await;
}

/// Asserts a frame and its values while trials run.
async fn assert_stills(stack: &Stack, sweep: &SweepId) {
    let (code, frame, notes) = run(stack, &["watch", sweep.as_str(), "--once"]).await;
    assert_eq!(code, 0, "{notes}");
    for part in [sweep.as_str(), "── trials ─", "── zones and instances ─", "trial 0 runs in "] {
        assert!(frame.contains(part), "{part}: {frame}");
    }
    let (code, open, notes) = run(stack, &["watch", sweep.as_str(), "--once", "--json"]).await;
    assert_eq!(code, 0, "{notes}");
    let open = lines(&open);
    assert_eq!((open.len(), &open[0]["sweep"], &open[0]["stage"]), (1, &json!(sweep.as_str()), &json!("running")));
    let states =
        ["waiting", "starting", "running", "succeeded", "failed"].map(|state| open[0][state].as_u64().unwrap());
    assert_eq!((states.iter().sum::<u64>(), &open[0]["trials"]), (4, &json!(4)));
}

fn assert_machines((code, text, notes): &(i32, String, String), trials: &[Trial]) {
    assert_eq!(*code, 0, "{notes}");
    let lines = lines(text);
    assert!(lines.iter().all(|line| line["at"].is_string() && line["what"].is_string()), "{text}");
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(4), &json!(0)));
    let attempts = || trials.iter().flat_map(|trial| trial.attempts.values());
    let interruptions = attempts().filter(|attempt| attempt.was_interrupted()).count();
    let interrupted = of_kind(&lines, "interrupted");
    assert!(interruptions > 0 && interrupted.len() == interruptions, "{interruptions}: {text}");
    let started = of_kind(&lines, "started").len() + of_kind(&lines, "resumed").len();
    assert_eq!(started, attempts().count(), "each attempt has begun once: {text}");
    let again = of_kind(&lines, "resumed");
    let again = again.iter().find(|line| line["trial"] == interrupted[0]["trial"]).unwrap();
    let attempt = |number: u32| -> &Attempt {
        let trial = trials.iter().find(|trial| interrupted[0]["trial"] == trial.index).unwrap();
        &trial.attempts[&number]
    };
    let lost = attempt(2).started_at.unwrap().duration_since(attempt(1).stopped_at.unwrap()).as_secs_f64();
    assert_eq!((&again["attempt"], again["seconds_lost"].as_f64()), (&json!(2), Some(lost)), "{again}");
    let succeeded = of_kind(&lines, "succeeded");
    assert_eq!(succeeded.len(), 4);
    let best = succeeded.iter().filter(|line| line["best"] == true).filter_map(|line| line["value"].as_f64());
    assert_eq!(best.reduce(f64::max), summary["best"]["value"].as_f64(), "the last best is the sweep's");
    let stages: Vec<&str> = of_kind(&lines, "stage").iter().map(|line| line["stage"].as_str().unwrap()).collect();
    assert_eq!(stages.last(), Some(&"settled"), "{stages:?}");
}

fn assert_people((code, text, notes): &(i32, String, String), trials: &[Trial]) {
    assert_eq!(*code, 0, "{notes}");
    let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    let attempts = trials.iter().flat_map(|trial| trial.attempts.values());
    assert_eq!(count(" is interrupted in us-east-1"), attempts.filter(|attempt| attempt.was_interrupted()).count());
    assert_eq!((count(" succeeded after "), count(": finished after ")), (4, 1), "{text}");
    // A view that looks at once may find the container before its zone is known.
    assert!(text.contains("s  trial 0 runs") && text.contains(" lost\n"), "{text}");
}

/// A view whose terminal is closed ends in order, without an abort: by SIGHUP, or by the end of its input.
async fn assert_closed_terminal(stack: &Stack, sweep: &SweepId) {
    let code = at_terminal(stack, &["watch", sweep.as_str()], sweep.as_str(), "").await;
    assert!(["0", "1"].contains(&code.as_str()), "{code}");
}

/// A file with a mistake ends the view with exit code 1 and its problems. A view of a sweep that does not exist does
/// not start.
async fn assert_rejected(stack: &Stack, reader: &Reader) {
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key("sweeps/torn.yaml");
    put.body(b"- lr: [".to_vec().into()).send().await.unwrap();
    let torn = eventually("the file has a record", async || {
        let sweeps = reader.sweeps().await.unwrap();
        sweeps.into_iter().map(|sweep| sweep.id).find(|id| id.as_str().starts_with("torn-"))
    })
    .await;
    let (code, output, notes) = run(stack, &["watch", torn.as_str(), "--json"]).await;
    let output = lines(&output);
    let last = output.last().unwrap();
    assert_eq!((code, &last["what"]), (1, &json!("rejected")), "{notes}");
    assert!(last["rejection"]["problems"][0]["line"].is_number(), "{last}");
    let (code, output, _) = run(stack, &["watch", torn.as_str(), "--plain"]).await;
    assert!(code == 1 && output.contains(": rejected, 1 problem"), "{output}");
    for (sweep, expected) in [("Nothing", 2), ("nothing", 1), ("nothing-0123456789ab", 1)] {
        let (code, _, notes) = run(stack, &["watch", sweep]).await;
        assert!(code == expected && notes.contains(&format!("no sweep named `{sweep}`")), "{sweep}: {code} {notes}");
    }
}
