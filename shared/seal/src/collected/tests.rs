//! Checkpoint folders, and the files that are collected from them.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::*;
use crate::disk::MountedDisk;

const ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const TORN: &[u8] = b"PK\x03\x04\0 and nothing that ends it";
const TEXT: &[u8] = b"step=3";

/// Files in the order of their times, and what is collected of the newest checkpoint.
type Case = (&'static [(&'static str, &'static [u8])], &'static [&'static str]);

/// A folder with the files, each a second newer than the one before.
fn with(written: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = spotsweep_needs::scratch();
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for ((name, content), second) in written.iter().zip(1..) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = begin + Duration::from_secs(second);
        File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    folder
}

fn owned(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn the_newest_complete_checkpoint_is_collected_with_all_its_files() {
    let cases: [Case; 20] = [
        (&[], &[]),
        // CatBoost without snapshots, and a study of Optuna.
        (&[("learn_error.tsv", TEXT), ("catboost_training.json", TEXT), ("learn/events.out.tfevents", &[0xff])], &[]),
        (&[("journal.log", TEXT)], &["journal.log"]),
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", ZIP), ("state.json", TEXT)], &["epoch-2.pt", "state.json"]),
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", ZIP), ("latest", b"epoch-2.pt")], &["epoch-2.pt", "latest"]),
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", ZIP), ("best", b"epoch-1.pt")], &["epoch-2.pt"]),
        (&[("epoch-1.pt", ZIP), ("log.csv", b"loss\n0.1\n"), ("samples/a.json", TEXT)], &["epoch-1.pt", "log.csv"]),
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", TORN)], &["epoch-1.pt"]),
        (
            &[("a-1/model.pt", ZIP), ("a-2/model.pt", ZIP), ("a-2/state.json", TEXT)],
            &["a-2/model.pt", "a-2/state.json"],
        ),
        (
            &[("a-1/model.pt", ZIP), ("a-1/o.pt", ZIP), ("a-2/model.pt", ZIP), ("a-2/o.pt", TORN)],
            &["a-1/model.pt", "a-1/o.pt"],
        ),
        (&[("state.json", TEXT)], &["state.json"]),
        // Files that are overwritten.
        (
            &[("model.pt", ZIP), ("optimizer.pt", ZIP), ("state.json", TEXT)],
            &["model.pt", "optimizer.pt", "state.json"],
        ),
        (&[("last.pt", ZIP), ("best.pt", ZIP)], &["best.pt", "last.pt"]),
        (&[("last/model.pt", ZIP), ("best/model.pt", ZIP)], &["best/model.pt", "last/model.pt"]),
        // Files of Accelerate, with two processes.
        (
            &[
                ("last/random_states_1.pkl", ZIP),
                ("last/model.safetensors", ZIP),
                ("last/optimizer.bin", ZIP),
                ("last/random_states_0.pkl", ZIP),
            ],
            &["last/model.safetensors", "last/optimizer.bin", "last/random_states_0.pkl", "last/random_states_1.pkl"],
        ),
        // One checkpoint in parts.
        (&[("step_4_rank_0.pt", ZIP), ("step_4_rank_1.pt", ZIP)], &["step_4_rank_0.pt", "step_4_rank_1.pt"]),
        (&[("rank_0/epoch_5.pt", ZIP), ("rank_1/epoch_5.pt", ZIP)], &["rank_0/epoch_5.pt", "rank_1/epoch_5.pt"]),
        // A series, and files that are written after it.
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", ZIP), ("best.pt", ZIP)], &["best.pt", "epoch-2.pt"]),
        (
            &[
                ("checkpoint-1/model.pt", ZIP),
                ("checkpoint-2/model.pt", ZIP),
                ("model-1-of-2.pt", ZIP),
                ("model-2-of-2.pt", ZIP),
            ],
            &["checkpoint-2/model.pt", "model-1-of-2.pt", "model-2-of-2.pt"],
        ),
        (&[("epoch=1-step=9.ckpt", ZIP), ("epoch=2-step=18.ckpt", ZIP)], &["epoch=2-step=18.ckpt"]),
    ];
    for (written, expected) in cases {
        let folder = with(written);
        let disk = MountedDisk::below(folder.path());
        let of = |which| collected(&disk, folder.path(), which).unwrap();
        let newest = owned(expected);
        let collected = |files, newest| Collected { files, newest, links: BTreeMap::new() };
        assert_eq!(of(Checkpoints::Newest), collected(newest.clone(), newest.clone()), "{written:?}");
        let complete = written.iter().filter(|(_, content)| *content != TORN);
        let complete = complete.map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(of(Checkpoints::All), collected(complete, newest), "{written:?}");
        assert_eq!(of(Checkpoints::None), Collected::default());
    }
}

#[test]
fn no_training_goes_on_from_half_a_checkpoint() {
    let cases: [Case; 6] = [
        (&[("last.pt", TORN), ("best.pt", ZIP)], &["best.pt"]),
        (&[("model.pt", ZIP), ("optimizer.pt", TORN)], &["model.pt"]),
        (&[("epoch-1.pt", ZIP), ("epoch-2.pt", TORN), ("best.pt", ZIP)], &["best.pt"]),
        (&[("step_4_rank_0.pt", ZIP), ("step_4_rank_1.pt", TORN)], &["step_4_rank_0.pt"]),
        (&[("v-0/a-1.pt", TORN), ("v-0/a-2.pt", ZIP)], &["v-0/a-2.pt"]),
        (&[("model.pt", TORN), ("state.json", TEXT)], &["state.json"]),
    ];
    for (written, expected) in cases {
        let folder = with(written);
        let found = collected(&MountedDisk::below(folder.path()), folder.path(), Checkpoints::Newest).unwrap();
        let expected = Collected { files: owned(expected), ..Collected::default() };
        assert_eq!(found, expected, "{written:?}");
    }
}

#[test]
fn links_to_the_newest_checkpoint_are_noted() {
    for (below, folder) in [
        ("", with(&[("epoch=2.ckpt", ZIP), ("epoch=3.ckpt", ZIP)])),
        ("run/", with(&[("run/epoch=2.ckpt", ZIP), ("run/epoch=3.ckpt", ZIP)])),
    ] {
        symlink("epoch=3.ckpt", folder.path().join(format!("{below}last.ckpt"))).unwrap();
        symlink("epoch=2.ckpt", folder.path().join(format!("{below}best.ckpt"))).unwrap();
        let found = collected(&MountedDisk::below(folder.path()), folder.path(), Checkpoints::Newest).unwrap();
        assert_eq!(found.links, BTreeMap::from([(format!("{below}last.ckpt"), "epoch=3.ckpt".to_owned())]));
    }
    let folder = with(&[("last/model.pt", ZIP)]);
    symlink("last", folder.path().join("newest")).unwrap();
    let found = collected(&MountedDisk::below(folder.path()), folder.path(), Checkpoints::Newest).unwrap();
    assert_eq!(found.links, BTreeMap::from([("newest".to_owned(), "last".to_owned())]));
}

/// Lightning writes `last.ckpt` after the checkpoint of the epoch, and its settings at the start.
#[test]
fn the_newest_checkpoint_has_the_name_that_the_next_attempt_has_for_it() {
    for (written, expected) in [
        (&[("log/hparams.yaml", TEXT), ("epoch=4.ckpt", ZIP), ("last-v1.ckpt", ZIP)][..], Some("last-v1.ckpt")),
        (&[("model.pt", ZIP), ("log.csv", TEXT), ("state.json", TEXT)], Some("model.pt")),
        (&[("checkpoint-5/model.pt", ZIP), ("checkpoint-5/state.json", TEXT)], Some("checkpoint-5")),
        (&[("state.json", TEXT)], None),
    ] {
        let folder = with(written);
        let disk = MountedDisk::below(folder.path());
        let files = collected(&disk, folder.path(), Checkpoints::Newest).unwrap().files;
        assert_eq!(newest_name(&disk, folder.path(), &files).unwrap().as_deref(), expected, "{written:?}");
    }
}
