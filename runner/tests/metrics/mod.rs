//! Metrics that scripts write in different ways, as they reach the control plane.

use serde_json::{Value, json};

use crate::world::{Answer, World, generous, granted, kind, well};

/// The sweep file names a metric with spaces, and has its own pattern.
fn with_pattern(request: &str, nth: usize) -> Answer {
    let Answer::Json(mut grant) = granted() else { unreachable!() };
    if request != "claim" {
        return kind(request, nth);
    }
    grant["granted"]["metric"] = json!("Avg accuracy");
    grant["granted"]["metrics"] = json!([{"name": "gan loss", "regex": r"ganloss=(\S+?);"}]);
    Answer::Json(grant)
}

/// The last values and steps that the attempt reports at its end.
async fn found(world: &World, script: &str) -> Value {
    let outcome = world.run(&[], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let end = world.invocations("end").pop().unwrap();
    let metrics = end["metrics"].as_object().unwrap().iter();
    metrics
        .map(|(name, metric)| (name.clone(), json!([metric["last"], metric["step"]])))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_for_people_has_metrics() {
    let script = r#"
        printf 'Epoch 1/2:  50%%|#####     | 1/2 [00:00<00:00, 9.5it/s, loss=0.5]\r' >&2
        printf 'Epoch 2/2: 100%%|##########| 2/2 [00:00<00:00, 9.5it/s, loss=0.25]\n' >&2
        echo "Validation - Epoch: 2 Avg accuracy: 0.75 took 0.44s"
        echo "ganloss=0.125; and more"
        echo "{'eval_loss': '0.5', 'epoch': '2'}"
        echo "Total params: 610"
    "#;
    let world = World::start(with_pattern, well).await;
    let expected = json!({
        "Avg accuracy": [0.75, 2.0],
        "eval_loss": [0.5, 2.0],
        "gan loss": [0.125, 2.0],
        "ganloss": [0.125, 2.0],
        "loss": [0.25, 2.0],
    });
    assert_eq!(found(&world, script).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_libraries_have_metrics() {
    let script = r#"
        mkdir -p "$SPOTSWEEP_CHECKPOINTS/checkpoint-8" "$SPOTSWEEP_OUTPUT/logs"
        echo '{"log_history": [{"epoch": 1.0, "eval_f1": 0.5, "step": 8}]}' > "$SPOTSWEEP_CHECKPOINTS/checkpoint-8/trainer_state.json"
        printf 'epoch,val_acc\n0,0.5\n1,0.75\n' > "$SPOTSWEEP_OUTPUT/logs/metrics.csv"
        echo '{"acc": 0.9}' > "$SPOTSWEEP_OUTPUT/predictions.jsonl"
        echo '{"lr": 0.1, "step": 4}' > "$SPOTSWEEP_OUTPUT/train_log.jsonl"
        ln -s /proc/self/environ "$SPOTSWEEP_OUTPUT/progress.csv"
        mkfifo "$SPOTSWEEP_OUTPUT/results.csv"
    "#;
    let world = World::start(kind, well).await;
    let expected = json!({"eval_f1": [0.5, 8.0], "lr": [0.1, 4.0], "val_acc": [0.75, 1.0]});
    assert_eq!(found(&world, script).await, expected);
}

/// The files are lost with the container, but their metrics are not.
#[tokio::test(flavor = "multi_thread")]
async fn files_in_the_working_folder_have_metrics() {
    let world = World::start(kind, well).await;
    let here = world.path("code");
    std::fs::create_dir_all(here.join("results")).unwrap();
    std::fs::write(here.join("results/metrics.csv"), "epoch,of_the_image\n0,0.5\n").unwrap();
    let script = "mkdir -p lightning_logs/version_0 data; printf 'epoch,val_acc\n0,0.5\n1,0.75\n' | \
                  tee data/metrics.csv > lightning_logs/version_0/metrics.csv; sed -i s/val_acc/of_data/ data/metrics.csv";
    let mut runner = world.runner(env!("CARGO_BIN_EXE_spotsweep-runner"), &[], &[], &["sh", "-c", script]);
    let outcome = world.outcome(runner.current_dir(&here).spawn().unwrap()).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let end = world.invocations("end").pop().unwrap();
    assert_eq!(end["metrics"]["val_acc"]["last"], 0.75, "{end}");
    assert_eq!(end["metrics"].as_object().unwrap().len(), 1, "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_earlier_attempt_are_not_counted_again() {
    let world = World::start(generous, well).await;
    std::fs::create_dir_all(world.path("volume/checkpoints")).unwrap();
    world.attach(&world.path("volume"));
    std::fs::write(world.path("volume/checkpoints/metrics.csv"), "epoch,val_acc\n0,0.5\n1,0.75\n").unwrap();
    let script = r#"echo "2,0.25" >> "$SPOTSWEEP_CHECKPOINTS/metrics.csv""#;
    assert_eq!(found(&world, script).await, json!({"val_acc": [0.25, 2.0]}));
    let record = String::from_utf8(world.output("metrics.jsonl").unwrap()).unwrap();
    assert_eq!(record.lines().count(), 1, "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_for_people_counts_for_less_than_what_is_written_for_the_runner() {
    let script = r#"
        echo "val_acc=0.5"
        echo "Best val_acc: 0.99"
        echo "100%|##########| 2/2 [00:00<00:00, 9.5it/s, val_acc=0.7]" >&2
    "#;
    let world = World::start(kind, well).await;
    assert_eq!(found(&world, script).await, json!({"val_acc": [0.5, null]}));
}

/// Values that the job sets itself may be secret.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_what_is_set_for_libraries() {
    let world = World::start(kind, well).await;
    let job = [("MLFLOW_TRACKING_URI", "file:/x"), ("MLFLOW_RUN_CONTEXT", "{\"of\": \"the-job\"}")];
    let outcome = world.run(&job, &["true"]).await;
    let line = outcome.stderr.lines().find(|line| line.contains("set for libraries: ")).unwrap_or_default();
    let output = format!("WANDB_DIR={}", world.path("storage/7").display());
    for part in ["WANDB_MODE=offline", &output, "TENSORBOARD_LOGGING_DIR=", "MLFLOW_RUN_CONTEXT"] {
        assert!(line.contains(part), "no {part}: {}", outcome.stderr);
    }
    assert!(!line.contains("the-job"), "{line}");
}
