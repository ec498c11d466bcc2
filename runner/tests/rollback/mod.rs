//! A training that fails on the checkpoint that it resumes from.

use std::path::Path;

use serde_json::{Value, json};

use crate::world::{Outcome, World, generous, well};

/// Starts from the checkpoint that `latest` names; fails on the ones that `$REFUSED` matches; ends after epoch 5.
const TRAINING: &str = r#"
    cd "$SPOTSWEEP_CHECKPOINTS"
    name=$(cat latest 2>/dev/null || echo epoch_0)
    epoch=${name#epoch_}
    echo "START after $epoch, $(readlink last)"
    [ "$epoch" -gt 0 ] && [ ! -e "$name" ] && exit 4
    case "$name" in $REFUSED) echo "lr=0.1 step=$epoch"; exit 1;; esac
    while [ "$epoch" -lt "$LAST" ]; do
        epoch=$((epoch + 1))
        head -c 100 /dev/zero > "epoch_$epoch"
        echo "epoch_$epoch" > latest
        ln -sfn "epoch_$epoch" last
        echo "step=$epoch score=$epoch"
        sleep 0.02
    done
    exit "$CODE"
"#;

async fn attempt(world: &World, attempt: &str, refused: &str, last: &str, code: &str) -> Outcome {
    let root = world.path(&format!("root-{attempt}"));
    let extra = [
        ("SPOTSWEEP_ROOT", root.to_str().unwrap()),
        ("AWS_BATCH_JOB_ATTEMPT", attempt),
        ("REFUSED", refused),
        ("LAST", last),
        ("CODE", code),
    ];
    world.run(&extra, &["sh", "-c", TRAINING]).await
}

/// A trial with three checkpoints, whose first attempt was interrupted.
async fn interrupted() -> World {
    let world = World::start(generous, well).await;
    std::fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
    let first = attempt(&world, "1", "none", "3", "9").await;
    assert_eq!(first.code, Some(9), "a trial that was not interrupted fails with its own code: {}", first.stderr);
    world
}

fn start(outcome: &Outcome) -> &str {
    outcome.stdout.lines().next().unwrap_or_default()
}

fn rollbacks(world: &World) -> Vec<Value> {
    world.invocations("release").iter().map(|release| release["rollback"].clone()).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_cannot_be_loaded_is_put_aside_once() {
    let world = interrupted().await;
    let second = attempt(&world, "2", "epoch_3", "5", "0").await;
    assert_eq!(second.code, Some(75), "{}", second.stderr);
    let message = "epoch_3 could not be loaded (exit code 1); went back to epoch_2";
    assert!(second.stderr.contains(message), "{}", second.stderr);
    assert_eq!(rollbacks(&world), [json!({"checkpoint": "epoch_3", "exit_code": 1, "to": "epoch_2"})]);
    assert_eq!(files(&world.path("volume/.spotsweep/torn/2-rollback")), ["epoch_3"], "it is kept");

    let third = attempt(&world, "3", "none", "5", "0").await;
    assert_eq!((start(&third), third.code), ("START after 2, epoch_2", Some(0)), "{}", third.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_fails_on_every_checkpoint_starts_from_its_beginning() {
    let world = interrupted().await;
    let mut codes = Vec::new();
    for number in ["2", "3", "4", "5"] {
        let outcome = attempt(&world, number, "epoch_[1-9]", "5", "0").await;
        codes.push((start(&outcome).to_owned(), outcome.code));
    }
    let expected = [("3, epoch_3", 75), ("2, epoch_2", 75), ("1, epoch_1", 75)]
        .map(|(after, code)| (format!("START after {after}"), Some(code)));
    assert_eq!(codes[..3], expected);
    assert_eq!(codes[3].1, Some(0), "nothing is left that it could fail on");
    assert_eq!(rollbacks(&world).len(), 3);
}

/// The training refuses every checkpoint, so the checkpoints are not the cause.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_does_not_help_is_taken_back_and_the_trial_fails() {
    let world = interrupted().await;
    let refuses = ["sh", "-c", "echo 'FileExistsError: run exists'; exit 3"];
    let mut codes = Vec::new();
    for attempt in ["2", "3"] {
        let root = world.path(&format!("root-{attempt}"));
        let extra = [("SPOTSWEEP_ROOT", root.to_str().unwrap()), ("AWS_BATCH_JOB_ATTEMPT", attempt)];
        codes.push(world.run(&extra, &refuses).await.code);
    }
    assert_eq!(codes, [Some(75), Some(3)]);
    let folder = world.path("volume/checkpoints");
    assert_eq!(files(&folder), ["epoch_1", "epoch_2", "epoch_3", "last", "latest"]);
    assert_eq!(std::fs::read_to_string(folder.join("latest")).unwrap(), "epoch_3\n");
    assert_eq!(std::fs::read_link(folder.join("last")).unwrap(), Path::new("epoch_3"));
}

/// The log continues from attempt to attempt, but the reason of a failure must be of the last attempt.
#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_failure_is_in_the_attempts_own_output() {
    let world = interrupted().await;
    let root = world.path("root-2");
    let extra = [("SPOTSWEEP_ROOT", root.to_str().unwrap()), ("AWS_BATCH_JOB_ATTEMPT", "2")];
    let second = world.run(&extra, &["sh", "-c", "echo 'ValueError: bad'; exit 1"]).await;
    assert_eq!(second.code, Some(75), "{}", second.stderr);
    let third = attempt(&world, "3", "none", "5", "6").await;
    assert_eq!(third.code, Some(6), "{}", third.stderr);
    assert_eq!(world.invocations("end").last().unwrap()["error"], "step=5 score=5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_progress_is_the_trainings_own() {
    let world = interrupted().await;
    let second = attempt(&world, "2", "none", "4", "6").await;
    assert_eq!(second.code, Some(6), "{}", second.stderr);
    assert_eq!(rollbacks(&world), [] as [Value; 0]);
}
