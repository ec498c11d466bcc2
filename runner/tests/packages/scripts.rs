//! The scripts of `examples/scripts`, which have no code for spotsweep, are trained, interrupted and continued.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use spotsweep_needs::opted_in;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{PLACES, names};
use crate::attempts::{End, trial};
use crate::world::{World, until};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/scripts");

/// A script. In its words, CHECKPOINTS and OUTPUT are replaced by the trial's folders.
#[derive(Debug, Clone, Copy)]
struct Script {
    words: &'static [&'static str],
    /// The path in the folder of checkpoints that exists when the training can be interrupted.
    saved: &'static str,
    metric: &'static str,
    /// The first step that a training from the beginning records.
    first: f64,
}

const fn script(words: &'static [&'static str], saved: &'static str, metric: &'static str, first: f64) -> Script {
    Script { words, saved, metric, first }
}

const ALL: [Script; 10] = [
    script(&["torch_tqdm.py", "--epochs=50", "--checkpoint=CHECKPOINTS/last.pt"], "last.pt", "val_acc", 1.0),
    script(&["pytorch_mnist.py", "--epochs=250", "--save-dir=CHECKPOINTS"], "mnist_cnn.pt", "Accuracy", 1.0),
    script(
        &["tensorboard_writer.py", "--epochs=250", "--save-dir=CHECKPOINTS", "--log-dir=OUTPUT/runs"],
        "epoch_003.pt",
        "Accuracy/val",
        0.0,
    ),
    script(&["wandb_sweep.py"], "model.pt", "val/accuracy", 0.0),
    script(&["lightning_fit.py", "--max_epochs=30", "--default_root_dir=CHECKPOINTS"], "last.ckpt", "val_acc", 47.0),
    script(
        &[
            "hf_trainer.py",
            "--output_dir=CHECKPOINTS",
            "--num_train_epochs=20",
            "--eval_strategy=epoch",
            "--save_strategy=epoch",
            "--use_cpu",
        ],
        "checkpoint-96/trainer_state.json",
        "eval_accuracy",
        1.0,
    ),
    script(
        &["keras_fit.py", "--epochs=40", "--backup_dir=CHECKPOINTS/backup"],
        "backup/training_metadata.json",
        "val_accuracy",
        1.0,
    ),
    script(&["ignite_trainer.py", "--epochs=100", "--output=CHECKPOINTS"], "checkpoint_3.pt", "accuracy", 1.0),
    script(
        &["sklearn_partial_fit.py", "--epochs=60", "--model=CHECKPOINTS/model.joblib"],
        "model.joblib",
        "accuracy",
        1.0,
    ),
    script(&["hydra_app.py", "epochs=60", "checkpoint=CHECKPOINTS/ckpt.pt"], "ckpt.pt", "val_accuracy", 0.0),
];

/// The recorded steps of a metric in time order, with seconds since 1970.
fn recorded(world: &World, metric: &str) -> Vec<(f64, f64)> {
    let record = world.output("metrics.jsonl").unwrap_or_default();
    let lines = record.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let of_metric = lines.filter(|line| !line["metrics"][metric].is_null());
    of_metric.filter_map(|line| Some((line["time"].as_f64()?, line["step"].as_f64()?))).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

/// Whether every epoch was recorded, starting with the first one.
fn is_whole(script: Script, steps: &[(f64, f64)]) -> bool {
    let mut steps: Vec<f64> = steps.iter().map(|(_, step)| *step).filter(|step| *step >= script.first).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let apart: Vec<f64> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.first() == Some(&script.first) && apart.windows(2).all(|pair| pair[0] == pair[1])
}

/// Prints a row: the script, how it was interrupted, the metric's newest value and step, the last step before and the
/// first step after. Returns a failure with the logs.
async fn run(python: &str, script: Script, end: End) -> Option<String> {
    let _place = PLACES.acquire().await.unwrap();
    let (world, start) = (trial().await, Instant::now());
    let folder = |name: &str| world.path(name).display().to_string();
    let (checkpoints, output) = (folder("volume/checkpoints"), folder("storage/7"));
    let words: Vec<String> =
        script.words.iter().map(|word| word.replace("CHECKPOINTS", &checkpoints).replace("OUTPUT", &output)).collect();
    let saves = format!("CHECKPOINTS={checkpoints}");
    // Some scripts write to their own folder.
    let code = folder("code");
    copy(Path::new(SCRIPTS), Path::new(&code));
    let own =
        ["env", "-C", &code, "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", "EPOCHS=60", &saves];
    let command: Vec<&str> = own.into_iter().chain([python]).chain(words.iter().map(String::as_str)).collect();
    let runner = world.spawn(&[], &command);
    until("a checkpoint", || world.path("volume/checkpoints").join(script.saved).exists()).await;
    sleep(Duration::from_secs(2)).await;
    let first = world.interrupt(runner, end).await;
    let there = names(&world.path("volume/checkpoints"));
    let again = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert_eq!(first.code, if matches!(end, End::Lost) { None } else { Some(75) }, "{script:?} is not interrupted");
    let mut last = world.next(3, &[], &command).await;
    let mut attempts = 2;
    while last.code == Some(75) && attempts < 4 {
        attempts += 1;
        last = world.next(attempts + 1, &[], &command).await;
    }
    let steps = recorded(&world, script.metric);
    let before = steps.iter().filter(|(time, _)| *time < again).map(|(_, step)| *step).fold(f64::NAN, f64::max);
    // Lightning's progress bar counts epochs, and its log file counts batches.
    let after = steps.iter().filter(|(time, step)| *time >= again && *step >= script.first).map(|(_, step)| *step);
    let after = after.min_by(f64::total_cmp);
    // Log files of libraries are read every five seconds, so the newest values are lost with an instance.
    let logs_to_files = matches!(script.words[0], "tensorboard_writer.py" | "wandb_sweep.py");
    // Lightning itself delays rows.
    let may_lack = script.words[0] == "lightning_fit.py" || logs_to_files && matches!(end, End::Lost);
    let is_whole = may_lack || is_whole(script, &steps);
    let ends = world.invocations("end");
    let figures = ends.last().map(|end| end["metrics"][script.metric].clone()).unwrap_or_default();
    let (name, seconds) = (script.words[0], start.elapsed().as_secs());
    let row = format!(
        "{name} | {end:?} | {} = {} at {} | {before} → {after:?} | {attempts} attempts, {:?} | {seconds} s",
        script.metric, figures["last"], figures["step"], last.code
    );
    eprintln!("{row}");
    // Later values of earlier steps may be in the record, but not in the figures at the trial's end.
    let newest = steps.iter().map(|(_, step)| *step).fold(f64::NAN, f64::max);
    let is_newest = figures["step"].as_f64() == Some(newest);
    let is_right = is_whole
        && is_newest
        && last.code == Some(0)
        && figures["last"].is_number()
        && after.is_some_and(|after| after > script.first);
    let logs = || format!("{row}\n{there:?}\n{}\n{}\n{}\n{}", first.stdout, first.stderr, last.stdout, last.stderr);
    (!is_right).then(logs)
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_as_people_bring_them_go_on_and_have_their_metrics() {
    let Some(python) = opted_in("SPOTSWEEP_PACKAGES_PYTHON") else { return };
    let mut trials = JoinSet::new();
    for (script, end) in ALL.into_iter().flat_map(|script| [(script, End::Notice(4)), (script, End::Lost)]) {
        let python = python.clone();
        trials.spawn(async move { run(&python, script, end).await });
    }
    let wrong: Vec<_> = trials.join_all().await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
