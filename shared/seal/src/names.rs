//! What the names of files say.

/// Endings of names under which programs write what they later rename.
pub(crate) const UNFINISHED: [&str; 5] = [".part", ".partial", ".tmp", ".temp", "~"];
/// Hugging Face's trainer writes a checkpoint folder under such a name.
const UNFINISHED_START: &str = "tmp-";
/// With a number after them: folders that are one checkpoint, as Hugging Face, DeepSpeed, Megatron,
/// Accelerate and Ray name them.
const CHECKPOINT_FOLDERS: [&str; 8] =
    ["checkpoint", "ckpt", "step", "global_step", "epoch", "iter", "iteration", "model_step"];
/// Endings of the names of logs, under which other programs write models and states.
const LOGS: [&str; 5] = [".csv", ".jsonl", ".log", ".tsv", ".txt"];

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

/// Whether a file goes by a name under which programs write what they later rename.
pub(crate) fn is_unfinished(path: &str) -> bool {
    let name = file_name(path);
    name.starts_with(UNFINISHED_START) || UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// The checkpoint that a file belongs to: the outermost folder that is one as a whole, or else
/// the file itself.
pub(crate) fn checkpoint(path: &str) -> &str {
    let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    let is_checkpoint = |folder: &&str| {
        let name = file_name(folder).to_ascii_lowercase();
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = word.len() < name.len();
        numbered && CHECKPOINT_FOLDERS.contains(&word.trim_end_matches(['-', '_', '=', '.']))
    };
    folders.find(is_checkpoint).unwrap_or(path)
}

/// The number in a file's name, such as 5 in `ckpt-5.data-00000-of-00001`.
pub(crate) fn number(path: &str) -> Option<&str> {
    let stem = file_name(path).trim_start_matches('.').split('.').next()?;
    let end = stem.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = stem[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1);
    Some(&stem[start..end])
}

/// Whether a file belongs to one checkpoint of several, so that it is not rewritten by the next.
pub(crate) fn is_numbered(path: &str) -> bool {
    checkpoint(path) != path || number(path).is_some()
}

/// Whether a file is called as pointer files are.
pub(crate) fn is_pointer_name(path: &str) -> bool {
    POINTERS.contains(&file_name(path))
}

/// Whether a file has one of the names that TensorBoard gives its event files, and looks for.
pub(crate) fn is_event_file(path: &str) -> bool {
    file_name(path).contains(".tfevents.")
}

/// Whether a file goes by a name under which logs are written. How it changes shows whether it is one.
pub(crate) fn is_log_name(path: &str) -> bool {
    let name = file_name(path).to_ascii_lowercase();
    is_event_file(path) || (LOGS.iter().any(|end| name.ends_with(end)) && !is_pointer_name(path))
}

/// Whether an empty file that was being written is cut off, and not a mark: marks have no ending.
pub(crate) fn has_lost_all(path: &str, bytes: u64) -> bool {
    bytes == 0 && file_name(path).trim_start_matches('.').contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_checkpoints_go_as_one() {
        let cases = [
            ("model.pt", "model.pt"),
            ("checkpoint-500/optimizer.pt", "checkpoint-500"),
            ("run/global_step_12/mp/rank_0.pt", "run/global_step_12"),
            ("a/checkpoint-1/step3/x", "a/checkpoint-1"),
            ("iter_0000500/x", "iter_0000500"),
            ("Epoch=3/x", "Epoch=3"),
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
