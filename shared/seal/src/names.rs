//! Reads checkpoints, pointers and logs from the names of files.

use std::ops::Range;

/// Endings of names under which programs write files that they later rename.
pub(crate) const UNFINISHED: [&str; 5] = [".part", ".partial", ".tmp", ".temp", "~"];
/// The start of the name under which Hugging Face's trainer writes a checkpoint folder.
const UNFINISHED_START: &str = "tmp-";
/// Names of folders that are one checkpoint if a number follows, as Hugging Face, DeepSpeed, Megatron, Accelerate,
/// Lightning and Ray name them.
const CHECKPOINT_FOLDERS: [&str; 8] =
    ["checkpoint", "ckpt", "step", "global_step", "epoch", "iter", "iteration", "model_step"];
/// Endings of the names of logs. Other programs write models and states under them.
const LOGS: [&str; 5] = [".csv", ".jsonl", ".log", ".tsv", ".txt"];

/// Endings of the names of settings, such as Lightning's `hparams.yaml`: they are written at the start, and no training
/// starts from them.
const SETTINGS: [&str; 3] = [".yaml", ".yml", ".toml"];

/// Names of the logs that CatBoost writes below its `train_dir`, besides event files.
const CATBOOST_LOGS: [&str; 4] = ["catboost_training.json", "learn_error.tsv", "test_error.tsv", "time_left.tsv"];

/// Names of pointer files: DeepSpeed's, MMEngine's, Megatron's and TensorFlow's.
const POINTERS: [&str; 4] = ["latest", "last_checkpoint", "latest_checkpointed_iteration.txt", "checkpoint"];

/// Whether a file or a folder of its path is unfinished.
pub(crate) fn has_unfinished_part(path: &str) -> bool {
    path.split('/').any(is_unfinished)
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a file has a name under which programs write files that they later rename.
pub(crate) fn is_unfinished(path: &str) -> bool {
    let name = file_name(path);
    name.starts_with(UNFINISHED_START) || UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// The checkpoint that a file belongs to by its name: the outermost folder that is named like a checkpoint, or else the
/// file itself.
pub(crate) fn checkpoint(path: &str) -> &str {
    let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    folders.find(|folder| is_checkpoint_folder(file_name(folder))).unwrap_or(path)
}

/// Whether a name consists of pairs of a word and a number, such as `epoch=4-step=40.ckpt`.
fn is_checkpoint_folder(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let (pairs, ending) = name.split_at(digit_runs(&name).last().map_or(0, |run| run.end));
    let mut words = pairs.split(|c: char| c.is_ascii_digit()).filter(|word| !word.is_empty()).peekable();
    let is_word = |word: &str| CHECKPOINT_FOLDERS.contains(&word.trim_matches(['-', '_', '=', '.']));
    let is_ending = ending.is_empty() || ending.starts_with('.');
    is_ending && words.peek().is_some_and(|first| pairs.starts_with(first)) && words.all(is_word)
}

/// The places of the numbers in a name: digits in a row.
pub(crate) fn digit_runs(name: &str) -> impl Iterator<Item = Range<usize>> {
    let (bytes, mut at) = (name.as_bytes(), 0);
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(u8::is_ascii_digit)?;
        at = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        Some(start..at)
    })
}

/// The same for its integers: the parts of a decimal number such as 0.25 are not integers.
fn integer_runs(name: &str) -> impl Iterator<Item = Range<usize>> {
    let starts = |text: &str| text.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let ends = |text: &str| text.strip_suffix('.').is_some_and(|rest| rest.ends_with(|c: char| c.is_ascii_digit()));
    digit_runs(name).filter(move |run| !starts(&name[run.end..]) && !ends(&name[..run.start]))
}

/// The integers of a name.
pub(crate) fn integers(name: &str) -> impl Iterator<Item = &str> {
    integer_runs(name).map(|run| &name[run])
}

/// A file's name up to its first dot. A dot before a number and a score does not count, as in Keras's
/// `weights.03-0.31.weights.h5`.
pub(crate) fn stem(path: &str) -> &str {
    let name = file_name(path).trim_start_matches('.');
    let is_end = |at: &usize| {
        let is_digit = |c: char| c.is_ascii_digit();
        let after = &name[at + 1..];
        let is_number = after.starts_with(is_digit) && !name[..*at].ends_with(is_digit);
        !is_number || !after.trim_start_matches(is_digit).starts_with(['-', '_'])
    };
    name.match_indices('.').map(|(at, _)| at).find(is_end).map_or(name, |at| &name[..at])
}

/// The last integer in the stem of a file's name, such as 5 in `ckpt-5.data-00000-of-00001`.
pub(crate) fn number(path: &str) -> Option<&str> {
    let (name, stem) = (file_name(path).trim_start_matches('.'), stem(path));
    integer_runs(name).filter(|run| run.end <= stem.len()).last().map(|run| &name[run])
}

/// Whether a file belongs to one checkpoint of several, so that the next one does not overwrite it.
pub(crate) fn is_numbered(path: &str) -> bool {
    checkpoint(path) != path || digit_runs(stem(path)).next().is_some()
}

/// Whether a file is named like a pointer file.
pub(crate) fn is_pointer_name(path: &str) -> bool {
    POINTERS.contains(&file_name(path))
}

/// Whether a link or a file is named like those that name the checkpoint from which a script starts.
pub(crate) fn is_latest_name(path: &str) -> bool {
    is_pointer_name(path) || ["last", "latest"].contains(&stem(path))
}

/// Whether only the log of a library has such a name: the event files that TensorBoard looks for, CatBoost's logs, and
/// the runs of W&B. They are written all the time, and no training starts from them.
pub(crate) fn is_library_log(path: &str) -> bool {
    let name = file_name(path);
    // CatBoost's event files have no time and host after the mark.
    let after_mark = name.split_once(".tfevents").map(|(_, rest)| rest);
    let is_event_file = after_mark.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let is_run = name.starts_with("run-") && name.ends_with(".wandb");
    is_event_file || is_run || CATBOOST_LOGS.contains(&name)
}

/// Whether a file has a name under which settings are written.
pub(crate) fn is_settings_name(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    SETTINGS.iter().any(|end| name.ends_with(end))
}

/// Whether a file has a name under which logs are written. Its changes show whether it is one.
pub(crate) fn is_log_name(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    is_library_log(path) || (LOGS.iter().any(|end| name.ends_with(end)) && !is_pointer_name(path))
}

/// Whether an empty file that was being written is cut off and not a mark: marks have no ending.
pub(crate) fn has_lost_all(path: &str, bytes: u64) -> bool {
    bytes == 0 && file_name(path).trim_start_matches('.').contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_no_part_of_a_decimal_number() {
        let cases = [
            ("ckpt-5.data-00000-of-00001", Some("5")),
            ("epoch=3-val_loss=0.31.ckpt", Some("3")),
            ("a_4/model-0.31.pt", None),
            ("epoch_2_rank_7.pt", Some("7")),
            (".state_3", Some("3")),
            ("model.5.pt", None),
            ("weights.03-0.31.weights.h5", Some("03")),
            ("model.12_acc.keras", Some("12")),
            ("epoch=3-val_loss=0.31-v1.ckpt", Some("3")),
            ("ckpt.data-00000-of-00001", None),
        ];
        for (path, expected) in cases {
            assert_eq!(number(path), expected, "{path}");
        }
    }

    #[test]
    fn a_name_with_a_number_is_one_of_several() {
        for (path, expected) in [
            ("epoch_3.pt", true),
            ("weights.03-0.31.weights.h5", true),
            ("checkpoint.model.keras", false),
            ("latest.weights.h5", false),
            ("model-v2.1.pt", true),
        ] {
            assert_eq!(is_numbered(path), expected, "{path}");
        }
    }

    #[test]
    fn logs_of_libraries_are_known_by_their_names() {
        for (path, expected) in [
            ("runs/events.out.tfevents.1795668261.vm.2799.0", true),
            ("test/events.out.tfevents", true),
            ("train.tfevents-5.pt", false),
            ("catboost_info/catboost_training.json", true),
            ("learn_error.tsv", true),
            ("experiment.cbsnapshot", false),
            ("wandb/offline-run-20261128_164425-n9vskt9o/run-n9vskt9o.wandb", true),
            ("optuna_journal_storage.log", false),
            ("state.json", false),
        ] {
            assert_eq!(is_library_log(path), expected, "{path}");
        }
    }

    #[test]
    fn folders_that_are_checkpoints_go_as_one() {
        let cases = [
            ("model.pt", "model.pt"),
            ("checkpoint-500/optimizer.pt", "checkpoint-500"),
            ("run/global_step_12/mp/rank_0.pt", "run/global_step_12"),
            ("a/checkpoint-1/step3/x", "a/checkpoint-1"),
            ("iter_0000500/x", "iter_0000500"),
            ("Epoch=3/x", "Epoch=3"),
            ("epoch_0_step_4/model-00005-of-00008.bin", "epoch_0_step_4"),
            ("epoch=4-step=40.ckpt/checkpoint/rank_0.pt", "epoch=4-step=40.ckpt"),
            ("epoch=4-val_loss=0.25/x", "epoch=4-val_loss=0.25/x"),
            ("2026-01-01_00-00-04/x", "2026-01-01_00-00-04/x"),
            // Parameters in a folder's name, and checkpoints below it.
            ("lr_0.1-seed_7/epoch-000001.checkpoint", "lr_0.1-seed_7/epoch-000001.checkpoint"),
            ("7/model.pt", "7/model.pt"),
            ("checkpoint/x", "checkpoint/x"),
            ("version_0/checkpoints/epoch=1.ckpt", "version_0/checkpoints/epoch=1.ckpt"),
        ];
        for (path, expected) in cases {
            assert_eq!(checkpoint(path), expected, "{path}");
        }
    }
}
