//! The recorded output of the libraries themselves (`record.py`), and the values found in it.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "reads what is recorded")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use spotsweep_training_metrics::{Definitions, Figures, Lines, LogFile, Read, Shared};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Returns the figures of a trial after the run `name`, whose sweep file names `metric`.
fn figures(name: &str, metric: &str, with_files: bool) -> Figures {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name);
    let mut figures = Figures::new(Some(metric.to_owned()));
    let mut take = |mut logged: spotsweep_training_metrics::Logged| {
        assert_eq!(figures.take(&mut logged), None);
    };
    for stream in ["out.txt", "err.txt"] {
        let text = String::from_utf8_lossy(&fs::read(folder.join(stream)).unwrap()).into_owned();
        let mut lines = Lines::new(Some(metric.to_owned()), Definitions::default());
        text.split(['\n', '\r']).filter(|line| !line.is_empty()).flat_map(|line| lines.read(line)).for_each(&mut take);
    }
    let mut shared = Shared::new(0.0, Some(metric.to_owned()));
    for path in files(&folder).iter().filter(|_| with_files) {
        let Some(mut file) = LogFile::named(path) else { continue };
        loop {
            let found = file.read(File::open(path).unwrap(), Read::Last, &mut shared).unwrap();
            found.logged.into_iter().for_each(&mut take);
            if !found.has_more {
                break;
            }
        }
    }
    figures
}

/// The run, the metric, its newest value and step, and its bounds.
type Case = (&'static str, &'static str, f64, Option<f64>, f64, f64);

fn check(cases: &[Case], with_files: bool) {
    for (run, metric, last, step, min, max) in cases {
        let found = figures(run, metric, with_files).metrics();
        let found = found.get(*metric).map(|found| (found.last, found.step, found.min, found.max));
        assert_eq!(found, Some((*last, *step, *min, *max)), "{run}: {metric}");
    }
}

#[test]
fn the_output_of_libraries_has_their_metrics() {
    let cases: [Case; 15] = [
        ("torch_tqdm", "val_acc", 0.9883, Some(3.0), 0.9553, 0.9883),
        ("torch_tqdm", "loss", 0.0631, Some(3.0), 0.0413, 0.701),
        ("lightning_rich", "val_acc", 0.952, Some(2.0), 0.952, 0.952),
        ("lightning_tqdm", "val_acc", 0.952, Some(2.0), 0.817, 0.952),
        ("hf_trainer", "eval_accuracy", 0.5391, Some(3.0), 0.4766, 0.5391),
        ("keras_fit", "val_accuracy", 0.8366, Some(3.0), 0.5927, 0.8366),
        ("sklearn_partial_fit", "test accuracy", 0.5257, Some(3.0), 0.4988, 0.5257),
        ("sklearn_partial_fit", "accuracy", 0.5257, Some(3.0), 0.4988, 0.5257),
        ("ignite_trainer", "Avg accuracy", 0.96, Some(3.0), 0.87, 0.96),
        ("hydra_app", "val_accuracy", 0.9907, Some(2.0), 0.9858, 0.9917),
        ("hydra_app", "loss", 0.0168, Some(2.0), 0.0168, 0.0395),
        ("pytorch_mnist", "Accuracy", 0.203125, Some(3.0), 0.16015625, 0.203125),
        ("pytorch_mnist", "Average loss", 2.1857, Some(3.0), 2.1857, 2.2524),
        ("fastai_tabular", "accuracy", 0.958333, Some(2.0), 0.808333, 0.958333),
        ("fastai_tabular", "valid_loss", 0.287268, Some(2.0), 0.287268, 0.60373),
    ];
    check(&cases, false);
}

#[test]
fn the_files_of_libraries_have_their_metrics() {
    let cases: [Case; 5] = [
        ("tensorboard_writer", "Accuracy/val", 0.984375, Some(2.0), 0.95703125, 0.984375),
        ("tensorboard_writer", "Loss/train", 0.032931145280599594, Some(71.0), 0.032931145280599594, 0.671323299407959),
        ("wandb_sweep", "val/accuracy", 0.9957275390625, Some(9.0), 0.98931884765625, 0.9957275390625),
        // The output has the values of a checkpoint's own log rounded, and the rounded ones count.
        ("hf_trainer", "eval_accuracy", 0.5391, Some(3.0), 0.4766, 0.5391),
        ("lightning_rich", "val_acc", 0.952, Some(2.0), 0.952, 0.952),
    ];
    check(&cases, true);
}
