//! Interruptions cost minutes, never progress: the demo with reclaims of every kind, compared with undisturbed
//! trainings of the same trials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;

use serde_json::Value;
use spotsweep_needs::{block_devices, met};
use spotsweep_tests::local::{Binaries, Demo};

/// Trials that are long enough to be interrupted in the middle, and not longer, because 24 of them run on two cores.
const TRIALS_24: &str = "\
program: train.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  hidden: {values: [16, 32]}
  lr: {values: [0.003, 0.01, 0.03]}
  alpha: {values: [0.0001, 0.001, 0.01, 0.1]}
  epochs: {value: 24}
  epoch_seconds: {value: 0.1}
";

/// Trials that are each interrupted once on average.
const TRIALS_12: &str = "\
program: train_exit_zero.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  hidden: {values: [16, 32]}
  lr: {values: [0.003, 0.01, 0.03]}
  alpha: {values: [0.0001, 0.01]}
  epochs: {value: 36}
  epoch_seconds: {value: 0.1}
";

const TRIALS_6: &str = "\
program: train.py
method: grid
metric: {name: val_accuracy, goal: maximize}
parameters:
  hidden: {values: [16, 32]}
  lr: {values: [0.003, 0.01, 0.03]}
  epochs: {value: 40}
  epoch_seconds: {value: 0.1}
";

/// A line that only a trial's complete history has.
const DETAIL: &str = "has mounted and verified vol-";

/// Asserts that all trials have succeeded, that every reclaim has cost what it may, that nothing is left, and that each
/// model is the one that undisturbed training gives.
fn assert_undone(demo: &Demo, trials: u64, planned: usize) {
    assert_eq!(demo.code(), Some(0), "{}", demo.messages());
    let summary = demo.summary();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&trials.into(), &0.into()));
    for what in ["volumes", "snapshots", "attachments"] {
        assert_eq!(summary["leftovers"][what], 0, "{what}: {}", demo.messages());
    }
    let reclaims = summary["reclaims"].as_array().unwrap();
    assert!(reclaims.len() >= planned, "{} of {planned}: {}", reclaims.len(), demo.messages());
    let reported = demo.messages().lines().filter(|line| line.contains("  reclaimed i-")).count();
    assert_eq!(reported, reclaims.len(), "a line for each loss: {}", demo.messages());
    assert_prices(reclaims);
    assert!(reclaims.iter().any(moved), "no trial has changed its zone: {reclaims:?}");
    let attempts: usize =
        demo.records("TRIAL#").iter().map(|row| row["record"]["attempts"].as_object().unwrap().len()).sum();
    assert!(attempts as u64 > trials, "the control plane has seen no second attempt");
    assert_same_results(demo, trials);
}

fn moved(reclaim: &Value) -> bool {
    let to = &reclaim["to_zone"];
    to.is_string() && *to != reclaim["from_zone"]
}

/// With a notice no epoch is trained twice, without one at most one.
fn assert_prices(reclaims: &[Value]) {
    let mut repeated: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for reclaim in reclaims {
        let (epochs, allowed) = repeated.entry(reclaim["trial"].as_u64().unwrap()).or_default();
        *epochs += reclaim["epochs_repeated"].as_u64().unwrap_or_else(|| panic!("undecided: {reclaim}"));
        *allowed += u64::from(reclaim["notice"] == false);
        assert!(reclaim["seconds_lost"].as_f64().unwrap() >= 0.0);
    }
    for (trial, (epochs, allowed)) in repeated {
        assert!(epochs <= allowed, "trial {trial} trained {epochs} epochs twice, {allowed} are allowed: {reclaims:?}");
    }
}

fn assert_same_results(demo: &Demo, trials: u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let run = Command::new(Binaries::build().target().join("local/venv/bin/python"))
        .arg(root.join("tests/tests/stack/undisturbed.py"))
        .arg(root.join("examples/digits"))
        .args([demo.outputs(), demo.path("scratch")])
        // The environment is that of the jobs: a variable such as OPENBLAS_CORETYPE would change the last bits.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap();
    let undisturbed: Vec<Value> = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|_| panic!("no comparison, {}: {}", run.status, String::from_utf8_lossy(&run.stderr)));
    assert_eq!(undisturbed.len() as u64, trials);
    let records = demo.records("TRIAL#");
    for (trial, record) in undisturbed.iter().zip(&records) {
        assert_eq!(trial["index"], record["record"]["index"]);
        assert_eq!(trial["same_model"], true, "the model differs: {trial}");
        for name in ["val_accuracy", "val_loss"] {
            let value = record["record"]["metrics"][name]["last"].as_f64().unwrap();
            assert_eq!(trial["metrics"][name].as_str().unwrap().parse(), Ok(value), "{name} of {trial}");
        }
    }
}

/// The test takes a minute, for 24 trainings, two at a time, some of them twice.
#[test]
fn twelve_reclaims_change_nothing_but_the_time() {
    let _alone = crate::TRAINING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::run(folder.path(), "reclaims.yaml", TRIALS_24, &["--reclaims", "12", "--seed", "4"]);
    assert_undone(&demo, 24, 12);
    assert!(!demo.messages().contains(DETAIL), "only where it is asked for: {}", demo.messages());
    let summary = demo.summary();
    let kinds: BTreeSet<&str> =
        summary["reclaims"].as_array().unwrap().iter().map(|reclaim| reclaim["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, BTreeSet::from(["migration", "notice", "rebalance", "silent", "zone"]), "{}", demo.messages());

    // The history of an interrupted trial names its zones. It is made from the kept table alone.
    let reclaim = &summary["reclaims"][0];
    let (sweep, trial) = (summary["sweep"].as_str().unwrap(), reclaim["trial"].to_string());
    let brief = demo.command(&["explain", sweep, &trial, "--kept", "keep"]);
    assert!(brief.contains(reclaim["from_zone"].as_str().unwrap()) && brief.contains("succeeded after"), "{brief}");
    assert!((4..=8).contains(&brief.lines().count()) && !brief.contains(DETAIL), "{brief}");
    let history = demo.command(&["explain", "latest", &trial, "--kept", "keep", "--verbose"]);
    assert!(history.contains(DETAIL), "{history}");
}

/// The test takes a minute, for twelve trainings with reclaims, and all of them again undisturbed.
#[test]
fn an_exit_with_zero_is_no_end_and_instances_that_do_not_drain_cost_no_progress() {
    let _alone = crate::TRAINING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--reclaims", "12", "--seed", "1", "--no-draining", "--verbose"];
    let demo = Demo::run(folder.path(), "exit-zero.yaml", TRIALS_12, &arguments);
    assert_undone(&demo, 12, 12);
    assert!(demo.messages().contains(DETAIL), "{}", demo.messages());
}

/// The test takes half a minute, for six trainings on volumes that are formatted, copied and checked.
#[test]
fn real_file_systems_are_moved_and_nothing_stays_mounted() {
    if !met(block_devices()) {
        return;
    }
    let _alone = crate::TRAINING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--reclaims", "4", "--seed", "2", "--block-devices"];
    let before = loop_devices();
    let demo = Demo::run(folder.path(), "blocks.yaml", TRIALS_6, &arguments);
    assert_undone(&demo, 6, 4);
    let runs = Binaries::build().target().join("local/runs").canonicalize().unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(runs.to_str().unwrap()), "{mounts}");
    let left: Vec<String> = loop_devices().difference(&before).cloned().collect();
    assert!(!left.iter().any(|device| device.contains(runs.to_str().unwrap())), "{left:?}");
}

/// Devices and their files, from `losetup -a`.
fn loop_devices() -> BTreeSet<String> {
    let listed = Command::new("losetup").arg("-a").output().unwrap();
    String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
}
