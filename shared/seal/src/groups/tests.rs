//! Layouts of libraries, with the file names from their sources.

#![allow(clippy::unwrap_used)]

use super::*;

const SECOND: i64 = 1_000_000_000;

fn groups_of(files: &[(String, i64)]) -> Groups {
    let stamp = |at: i64| Stamp { bytes: 1000, modified_ns: at, inode: 1 };
    Groups::of(files.iter().map(|(path, at)| (path.as_str(), stamp(*at))))
}

/// The paths of each checkpoint, and its name.
fn found(groups: &Groups) -> BTreeMap<BTreeSet<String>, String> {
    groups.all.iter().map(|group| (group.members.clone(), group.name.clone())).collect()
}

/// The name of a checkpoint and its files, with `{}` for the part that differs between checkpoints; files next to them.
type Layout = (&'static str, &'static [&'static str], &'static [&'static str]);

const LAYOUTS: [Layout; 16] = [
    // NeMo's AutoModel.
    (
        "epoch_0_step_{}",
        &[
            "epoch_0_step_{}/model/model-00001-of-00002.safetensors",
            "epoch_0_step_{}/model/model-00002-of-00002.safetensors",
            "epoch_0_step_{}/optim/.metadata",
            "epoch_0_step_{}/config.yaml",
        ],
        &[],
    ),
    // Lightning with DeepSpeed, and its usual names.
    (
        "epoch=0-step={}.ckpt",
        &[
            "epoch=0-step={}.ckpt/checkpoint/mp_rank_00_model_states.pt",
            "epoch=0-step={}.ckpt/checkpoint/zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "epoch=0-step={}.ckpt/checkpoint/zero_pp_rank_1_mp_rank_00_optim_states.pt",
            "epoch=0-step={}.ckpt/latest",
        ],
        &["hparams.yaml"],
    ),
    (
        "version_0/checkpoints/epoch=0-step={}.ckpt",
        &["version_0/checkpoints/epoch=0-step={}.ckpt"],
        &["version_0/hparams.yaml"],
    ),
    // DeepSpeed.
    (
        "global_step{}",
        &[
            "global_step{}/mp_rank_00_model_states.pt",
            "global_step{}/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "global_step{}/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
        ],
        &["latest", "zero_to_fp32.py"],
    ),
    // PyTorch's distributed checkpoints.
    (
        "run/state-{}",
        &[
            "run/state-{}/__0_0.distcp",
            "run/state-{}/__1_0.distcp",
            "run/state-{}/__1_1.distcp",
            "run/state-{}/.metadata",
        ],
        &[],
    ),
    // Megatron-LM.
    (
        "iter_00000{}",
        &[
            "iter_00000{}/mp_rank_00/model_optim_rng.pt",
            "iter_00000{}/mp_rank_01/model_optim_rng.pt",
            "iter_00000{}/mp_rank_00/distrib_optim.pt",
            "iter_00000{}/mp_rank_01/distrib_optim.pt",
        ],
        &["latest_checkpointed_iteration.txt"],
    ),
    // Orbax.
    (
        "{}",
        &[
            "{}/default/_METADATA",
            "{}/default/manifest.ocdbt",
            "{}/default/ocdbt.process_0/d/2af4",
            "{}/default/ocdbt.process_1/d/99",
            "{}/_CHECKPOINT_METADATA",
        ],
        &[],
    ),
    // T5X.
    (
        "checkpoint_{}",
        &[
            "checkpoint_{}/target.encoder.layers_0.mlp.wi.kernel/0.0",
            "checkpoint_{}/target.encoder.layers_1.mlp.wi.kernel/0.0",
            "checkpoint_{}/checkpoint",
        ],
        &[],
    ),
    // metaseq, with and without the epoch.
    (
        "checkpoint_{}-model_part-0-shard*.pt",
        &[
            "checkpoint_{}-model_part-0-shard0.pt",
            "checkpoint_{}-model_part-0-shard1.pt",
            "checkpoint_{}-model_part-0-shard2.pt",
        ],
        &["checkpoint_last-model_part-0-shard0.pt"],
    ),
    (
        "checkpoint_1_{}-model_part-*-shard*.pt",
        &[
            "checkpoint_1_{}-model_part-0-shard0.pt",
            "checkpoint_1_{}-model_part-1-shard1.pt",
            "checkpoint_1_{}-model_part-0-shard2.pt",
        ],
        &[],
    ),
    // A folder for each rank.
    ("rank*/epoch_{}.pt", &["rank0/epoch_{}.pt", "rank1/epoch_{}.pt", "rank2/epoch_{}.pt"], &["rank0/log.txt"]),
    (
        "rank*/epoch_{}",
        &["rank0/epoch_{}/model.pt", "rank0/epoch_{}/optim.pt", "rank1/epoch_{}/model.pt", "rank1/epoch_{}/optim.pt"],
        &[],
    ),
    // Hugging Face.
    (
        "checkpoint-{}",
        &[
            "checkpoint-{}/config.json",
            "checkpoint-{}/model-00001-of-00002.safetensors",
            "checkpoint-{}/model-00002-of-00002.safetensors",
            "checkpoint-{}/optimizer.pt",
            "checkpoint-{}/rng_state_0.pth",
            "checkpoint-{}/trainer_state.json",
        ],
        &[],
    ),
    // A date.
    (
        "2026-01-01_10-00-{}",
        &["2026-01-01_10-00-{}/model.pt", "2026-01-01_10-00-{}/optim.pt", "2026-01-01_10-00-{}/rng.pt"],
        &[],
    ),
    // TensorFlow; several files with one number.
    ("ckpt-{}.*", &["ckpt-{}.data-00000-of-00002", "ckpt-{}.data-00001-of-00002", "ckpt-{}.index"], &["checkpoint"]),
    ("fold1/*-{}.pt", &["fold1/model-{}.pt", "fold1/optim-{}.pt"], &[]),
];

/// The number of a checkpoint need not grow, and the newest checkpoint may be incomplete or slow.
#[test]
fn layouts_of_libraries_are_divided_into_their_checkpoints() {
    for (name, paths, beside) in LAYOUTS {
        for (left, pause) in (1..=paths.len()).flat_map(|left| [(left, SECOND / 50), (left, 7 * SECOND)]) {
            let mut at = 1_000 * SECOND;
            let (mut files, mut expected) = (Vec::new(), BTreeMap::new());
            for (checkpoint, number) in ["98", "10", "11", "12"].into_iter().enumerate() {
                let members: BTreeSet<String> = paths.iter().map(|path| path.replace("{}", number)).collect();
                let left = if checkpoint == 3 { left } else { paths.len() };
                let written: Vec<_> = paths.iter().take(left).map(|path| path.replace("{}", number)).collect();
                for path in &written {
                    at += if checkpoint == 3 { pause } else { SECOND / 50 };
                    files.push((path.clone(), at));
                }
                at += 10 * SECOND;
                let found: BTreeSet<String> = written.into_iter().collect();
                let is_whole = found == members;
                expected.insert(found, is_whole.then(|| name.replace("{}", number)));
            }
            for path in beside {
                files.push(((*path).to_owned(), at));
                expected.insert(BTreeSet::from([(*path).to_owned()]), Some((*path).to_owned()));
            }
            let found = found(&groups_of(&files));
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}, {left} left");
            for (members, name) in expected {
                assert!(name.is_none_or(|name| found[&members] == name), "{members:?}: {}", found[&members]);
            }
        }
    }
}

/// Files and the seconds at which they were written. Each is a checkpoint of its own.
#[test]
fn series_of_files_are_divided_into_their_files() {
    let cases: [&[(&str, i64)]; 14] = [
        // The folds of a cross-validation, and runs.
        &[("1/epoch-1.pt", 10), ("1/epoch-2.pt", 20), ("1/epoch-3.pt", 30), ("2/epoch-1.pt", 45), ("2/epoch-2.pt", 55)],
        &[("fold_1/best.pt", 10), ("fold_1/last.pt", 20), ("fold_2/best.pt", 30), ("fold_2/last.pt", 40)],
        &[("run_1/a.pt", 100), ("run_1/b.pt", 107), ("run_2/a.pt", 200), ("run_2/b.pt", 207), ("run_3/a.pt", 300)],
        // Lightning's folder of each attempt.
        &[
            ("version_0/checkpoints/epoch=0.ckpt", 1),
            ("version_0/checkpoints/epoch=1.ckpt", 2),
            ("version_1/checkpoints/epoch=2.ckpt", 60),
            ("version_1/checkpoints/epoch=3.ckpt", 61),
        ],
        &[
            ("version_0/epoch=1.ckpt", 20),
            ("version_0/epoch=2.ckpt", 40),
            ("version_1/epoch=2.ckpt", 300),
            ("version_1/epoch=3.ckpt", 320),
        ],
        // The folder of the trial.
        &[("7/epoch-1.pt", 1), ("7/epoch-2.pt", 2), ("7/epoch-3.pt", 60)],
        &[("epoch=0-batch=100", 10), ("epoch=0-batch=200", 20), ("epoch=1-batch=100", 30), ("epoch=1-batch=200", 40)],
        // With a validation between two checkpoints.
        &[
            ("epoch=0-step=1.ckpt", 1),
            ("epoch=0-step=2.ckpt", 2),
            ("epoch=1-step=3.ckpt", 60),
            ("epoch=1-step=4.ckpt", 61),
        ],
        &[("epoch=0-batch=100", 10), ("epoch=0-batch=200", 20), ("epoch=1-batch=100", 130), ("epoch=1-batch=200", 140)],
        &[("epoch=1-acc=91", 10), ("epoch=2-acc=93", 20), ("epoch=3-acc=93", 21), ("epoch=4-acc=95", 60)],
        &[("epoch=1-val_loss=0.31.ckpt", 10), ("epoch=2-val_loss=0.29.ckpt", 20), ("epoch=3-val_loss=0.31.ckpt", 30)],
        &[("model-0.31.pt", 10), ("model-0.29.pt", 20), ("best/model.pt", 30), ("last/model.pt", 40)],
        // Only some files have the number of another one.
        &[("epoch-1.pt", 10), ("epoch-2.pt", 20), ("best-2.pt", 20), ("epoch-3.pt", 30), ("best-3.pt", 30)],
        // Ranks that overwrite their files, one after the other.
        &[("rank_0/model.pt", 100), ("rank_0/optim.pt", 101), ("rank_1/model.pt", 102), ("rank_1/optim.pt", 103)],
    ];
    for case in cases {
        let files: Vec<_> = case.iter().map(|(path, second)| ((*path).to_owned(), second * SECOND)).collect();
        let found = found(&groups_of(&files));
        let names: BTreeSet<&str> = found.values().map(String::as_str).collect();
        assert_eq!(names, case.iter().map(|(path, _)| *path).collect(), "{found:?}");
    }
}

/// A tokenizer is often copied with its time.
#[test]
fn a_file_that_is_copied_with_its_time_shows_nothing() {
    let files = ["a-1/x", "a-1/y", "a-1/copied", "a-2/x", "a-2/y", "a-2/copied"].map(str::to_owned);
    let files: Vec<_> =
        files.into_iter().zip([100, 101, 7, 200, 201, 7]).map(|(path, at)| (path, at * SECOND)).collect();
    assert_eq!(found(&groups_of(&files)).into_values().collect::<Vec<_>>(), ["a-1", "a-2"]);
}

/// One save is slow after a lost instance.
/// The next save follows a save after a signal 150 s later. Its second part is not written out.
#[test]
fn a_save_after_a_signal_may_follow_another_one_at_once() {
    let at = |step: u32, part: u32, ms: i64| (format!("step-{step:06}-run-1/part-{part}.txt"), ms * 1_000_000);
    let saved = |step, ms| [at(step, 0, ms), at(step, 1, ms + 2000)];
    let files = [saved(20, 0), saved(21, 6550), saved(30, 156_550)].concat();
    let groups = groups_of(&files);
    let expected = files.chunks(2).map(|files| files.iter().map(|(path, _)| path.clone()).collect());
    assert_eq!(found(&groups).into_keys().collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn a_checkpoint_with_several_slow_saves_among_fast_ones_is_one() {
    let mut files = Vec::new();
    for step in 0..6 {
        let pause = if step == 2 { 30 } else { 1 };
        files.extend((0..3).map(|part| (format!("ckpt_{step}_rank_{part}.pt"), (100 * step + pause * part) * SECOND)));
    }
    assert_eq!(found(&groups_of(&files)).len(), 6);
}
