//! Runs `spotsweep demo` and `spotsweep local down` as a person does, with the deployed control plane, real functions
//! and real trainings.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use spotsweep_tests::local::{Demo, Stack, eventually, get_json};
use tempfile::TempDir;

const GRID: &str = "\
program: train.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  hidden: {values: [16, 32]}
  lr: {values: [0.01, 0.03]}
  epochs: {value: 2}
";

const LIST: &str = "\
- {lr: 0.01, hidden: 16, alpha: 0.0001, batch_size: 64, epochs: 2, seed: 7}
- {lr: 0.03, hidden: 32, alpha: 0.0001, batch_size: 64, epochs: 2, seed: 7}
";

/// As many trials as an array job can have. They never end by themselves.
const ARRAY: &str = r#"
spotsweep: {workspace: off, command: [sh, -c, 'sleep 600']}
method: grid
parameters: {n: {min: 1, max: 10000}}
"#;
/// Largest memory of the host when two such arrays are cancelled, with 40 000 events to deliver.
const PEAK_RSS_BYTES: u64 = 512 << 20;
/// Time in which the stack must stop. It usually takes a second.
const DOWN: Duration = Duration::from_secs(8);

/// Runs the demo with a file in a folder of its own.
fn run(file: &str, text: &str, arguments: &[&str]) -> (TempDir, Demo) {
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::run(folder.path(), file, text, arguments);
    (folder, demo)
}

fn assert_model(folder: &Path, model: &str) {
    let size = fs::metadata(folder.join(model)).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).len();
    assert!(size > 1_000, "{} has {size} bytes", folder.join(model).display());
}

#[test]
fn a_grid_is_trained_tracked_and_collected() {
    let (_folder, run) = run("grid.yaml", GRID, &[]);
    assert_eq!(run.code(), Some(0), "{}", run.messages());
    let summary = run.summary();
    assert_eq!((&summary["trials"], &summary["succeeded"], &summary["failed"]), (&4.into(), &4.into(), &0.into()));
    assert!(summary["wall_seconds"].as_f64().unwrap() > 0.0);
    let sweep = summary["sweep"].as_str().unwrap();

    // The best value is the largest last one that any trial has printed.
    let outputs = run.outputs();
    let mut values = Vec::new();
    for index in 0..4 {
        let trial = outputs.join(format!("trials/{index}"));
        assert_model(&trial, "model/model.npz");
        let log = fs::read_to_string(trial.join("train.log")).unwrap();
        let last = log.lines().rfind(|line| line.contains("val_accuracy=")).unwrap();
        let value = last.split("val_accuracy=").nth(1).unwrap().split_whitespace().next().unwrap();
        values.push(value.parse::<f64>().unwrap());
    }
    let best = usize::try_from(summary["best"]["index"].as_u64().unwrap()).unwrap();
    assert_eq!(values[best], values.iter().copied().fold(0.0, f64::max));
    assert_eq!(summary["best"]["value"].as_f64(), Some(values[best]));
    let expected = [(16, 0.01), (16, 0.03), (32, 0.01), (32, 0.03)][best];
    assert_eq!(summary["best"]["parameters"]["hidden"], expected.0);
    assert_eq!(summary["best"]["parameters"]["lr"], expected.1);

    let trials = run.records("TRIAL#");
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let record = &trial["record"];
        assert_eq!(
            (&record["status"], &record["attempts"]["1"]["exit_code"]),
            (&"SUCCEEDED".into(), &0.into()),
            "{trial}"
        );
        assert!(record["attempts"]["1"]["zone"].as_str().unwrap().starts_with("us-east-1"), "the runner asked IMDS");
        assert!(record["end"]["outputs"]["files"].as_u64().unwrap() >= 3, "{trial}");
    }
    assert_eq!(run.records("META")[0]["record"]["stage"]["name"], "settled");
    for kept in ["sweeps/grid.yaml", "sweeps/grid.yaml.plan.json", &format!("results/{sweep}/leaderboard.csv")] {
        assert!(run.path(&format!("keep/bucket/{kept}")).is_file(), "{kept}");
    }
}

#[test]
fn the_seeds_way_runs_with_its_own_script() {
    let (_folder, run) = run("hyperparam_list.yml", LIST, &["--job-definition", "train-seed"]);
    assert_eq!(run.code(), Some(0), "{}", run.messages());
    let summary = run.summary();
    assert_eq!(summary["succeeded"], 2);
    assert_eq!(summary["ranking"]["stated"], false, "a plain list names no metric; the usual one is taken");
    for index in 0..2 {
        let trial = run.outputs().join(format!("trials/{index}"));
        assert!(fs::read_dir(trial.join("model")).unwrap().count() > 0);
    }
}

#[test]
fn a_failed_trial_fails_the_demo_and_says_which() {
    let list = "- {lr: 0.01, hidden: 16, epochs: 1}\n- {lr: 0.01, hidden: -5, epochs: 1}\n";
    let (_folder, run) = run("half.yaml", list, &[]);
    assert_eq!(run.code(), Some(1), "{}", run.messages());
    let summary = run.summary();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&1.into(), &1.into()));
    assert_eq!(summary["best"]["index"], 0);
}

#[test]
fn a_bad_file_is_refused_with_its_problems() {
    let (_folder, run) = run("bad.yaml", "method: gird\nparameters: {lr: {values: [1]}, lr: {values: [2]}}\n", &[]);
    assert_eq!(run.code(), Some(1), "{}", run.messages());
    let messages = run.messages();
    assert!(messages.contains("bad.yaml:1:") && messages.contains("bad.yaml:2:"), "{messages}");
}

fn said(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn local_down_ends_a_stack_of_large_arrays_at_once() {
    let stack = Stack::start("down").await;
    let mut sweeps = Vec::new();
    for name in ["first", "second"] {
        let file = stack.subfolder("files").join(format!("{name}.yaml"));
        fs::write(&file, ARRAY).unwrap();
        let submitted = stack.command(&["submit", file.to_str().unwrap()]).await;
        assert!(submitted.status.success(), "{}", said(&submitted));
        sweeps.push(String::from_utf8(submitted.stdout).unwrap().trim().to_owned());
    }
    let counted = async |status: &str, least: u64| {
        eventually(status, async || {
            let state = get_json(&format!("{}/_emulator/state", stack.emulator)).await;
            state["jobs"][status].as_u64().is_some_and(|count| count >= least).then_some(())
        })
        .await;
    };
    counted("RUNNING", 1).await;
    // The running trials may end in order, and do so at once.
    for sweep in &sweeps {
        let cancelled = stack.command(&["cancel", sweep]).await;
        assert!(cancelled.status.success(), "{}", said(&cancelled));
    }
    counted("FAILED", 20_000).await;
    let peak = stack.usage().peak_rss_bytes;
    assert!(peak < PEAK_RSS_BYTES, "the host has had {} MiB", peak >> 20);
    let taken = stack.down().await;
    assert!(taken < DOWN, "{taken:?}");
}
