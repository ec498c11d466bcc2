//! Finds files that a training writes where they are lost with its container.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Most files that are remembered, and that are looked at in each place.
const MOST_FILES: usize = 10_000;
/// Folders that interpreters and libraries use for themselves, and make again.
const OWN: [&str; 6] = ["__pycache__", ".cache", ".config", ".git", ".keras", ".triton"];
/// Folders at the top of a container that are on the trial's volume, and are kept.
const KEPT: [&str; 2] = ["dltraining", "storage"];
/// `HOME` in a container of the local stack.
const HOME: &str = "attempt-home";
/// Prefix of the runner's own folder in `/tmp`, which is the home of a training without another one.
const OF_RUNNER: &str = "spotsweep-";
const HOME_OF_TRAINING: [&str; 2] = ["training", "home"];
/// Extensions of models and checkpoints.
const MODELS: [&str; 14] = [
    "pt",
    "pth",
    "ckpt",
    "safetensors",
    "h5",
    "keras",
    "joblib",
    "onnx",
    "pkl",
    "gguf",
    "cbm",
    "cbsnapshot",
    "ubj",
    "msgpack",
];
/// Extensions that models share with many other files, and the last words in the names of such models: LightGBM's
/// `model.txt`, XGBoost's
/// `final_model.json`, `pytorch_model.bin`.
const MAY_BE_MODELS: [&str; 3] = ["txt", "json", "bin"];
const MODEL_WORDS: [&str; 4] = ["model", "booster", "weights", "checkpoint"];

/// The files that existed when attempts ended.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Size of each file in bytes, by its path as the training writes it: relative to its working folder, or as `~/…`,
    /// `/tmp/…` or `/…`.
    files: BTreeMap<String, u64>,
    /// The files at the last look. The training may remove them, or move them to a place that is kept.
    now: BTreeMap<String, u64>,
    /// Names of the files that are kept.
    kept: BTreeSet<String>,
}

/// Files below one folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The folder, or the file itself.
    pub(super) name: String,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Lost {
    /// Looks at what the containers below `attempts` have written, without the machine's own files.
    pub(super) fn look(&mut self, attempts: &Path) {
        self.now.clear();
        for entry in fs::read_dir(attempts).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "changes") {
                self.walk(&path.join("image/upper"), "");
                self.temporary(&path.join("tmp/upper"));
                continue;
            }
            self.walk(&path.join(HOME), "~/");
            for top in names(&path) {
                if KEPT.contains(&top.as_str()) {
                    keep(&path.join(top), &mut self.kept);
                } else if top != HOME {
                    self.walk(&path.join(&top), &format!("/{top}/"));
                }
            }
        }
    }

    /// Notes that an attempt has ended: the files of the last look are lost.
    pub(super) fn attempt_ends(&mut self) {
        self.files.append(&mut self.now);
    }

    fn temporary(&mut self, folder: &Path) {
        for name in names(folder) {
            let path = folder.join(&name);
            if name.starts_with(OF_RUNNER) {
                self.walk(&HOME_OF_TRAINING.iter().fold(path, |path, part| path.join(part)), "~/");
            } else {
                self.walk(&path, &format!("/tmp/{name}/"));
            }
        }
    }

    /// Adds the files at and below `path`. `shown` is the training's name for it, with a slash at its end.
    fn walk(&mut self, path: &Path, shown: &str) {
        let Ok(found) = path.symlink_metadata() else { return };
        if found.is_file() && found.len() > 0 && self.now.len() < MOST_FILES {
            self.now.insert(shown.trim_end_matches('/').to_owned(), found.len());
        }
        if !found.is_dir() {
            return;
        }
        for name in names(path).into_iter().filter(|name| !OWN.contains(&name.as_str())) {
            self.walk(&path.join(&name), &format!("{shown}{name}/"));
        }
    }

    /// The files by their folder, largest first.
    pub(super) fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for (path, bytes) in &self.files {
            let group = groups.entry(group(path)).or_default();
            *group = (group.0 + 1, group.1 + bytes);
        }
        let groups = groups.into_iter().map(|(name, (files, bytes))| Group { name, files, bytes });
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
        groups
    }

    /// Models and checkpoints that are not also kept under the same name.
    pub(super) fn models(&self) -> Vec<&str> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let models = self.files.keys().filter(|path| is_model(&name(path)) && !self.kept.contains(&name(path)));
        models.map(String::as_str).collect()
    }
}

/// Whether a file is a model or a checkpoint by its name.
fn is_model(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let has_word = || {
        let mut words = stem.rsplit(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        words.next().is_some_and(|word| MODEL_WORDS.iter().any(|model| word.eq_ignore_ascii_case(model)))
    };
    MODELS.contains(&ending) || (MAY_BE_MODELS.contains(&ending) && has_word())
}

/// The folder that is shown for a path: `outputs/` for `outputs/a/b`, `~/x/` for `~/x/y`, `/tmp/x/` for `/tmp/x/y`. A
/// path with fewer parts is shown as a whole.
fn group(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    // The first part is empty in an absolute path, and `~` in the home.
    let own = match parts.as_slice() {
        ["", "tmp", ..] => 3,
        ["" | "~", ..] => 2,
        _ => 1,
    };
    if parts.len() > own { format!("{}/", parts[..own].join("/")) } else { path.to_owned() }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_FILES);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A top folder may be a link to the volume. No other link is followed.
fn keep(folder: &Path, kept: &mut BTreeSet<String>) {
    for name in names(folder) {
        let path = folder.join(&name);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) || folder.ends_with("storage") {
            keep(&path, kept);
        }
        if kept.len() < MOST_FILES {
            kept.insert(name);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        for (name, expected) in [
            ("last.pt", true),
            ("model.cbm", true),
            ("experiment.cbsnapshot", true),
            ("model_690.ubj", true),
            ("model.txt", true),
            ("lightgbm_model-3.txt", true),
            ("final_model.json", true),
            ("pytorch_model.bin", true),
            ("requirements.txt", false),
            ("model_config.json", false),
            ("catboost_training.json", false),
            ("model.csv", false),
            ("model", false),
        ] {
            assert_eq!(is_model(name), expected, "{name}");
        }
    }

    #[test]
    fn files_outside_of_the_workspace_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, content) in [
            ("s-1-0.changes/image/upper/runs/events.1", "12"),
            ("s-1-0.changes/image/upper/runs/a/model.pt", "1234"),
            ("s-1-0.changes/image/upper/best.ckpt", "123"),
            ("s-1-0.changes/image/upper/moved.pt", "1"),
            ("s-1-0.changes/image/upper/__pycache__/train.pyc", "1"),
            ("s-1-0.changes/tmp/upper/data/mnist.npz", "1"),
            ("s-1-0.changes/tmp/upper/spotsweep-x/training/home/results/a.csv", "1"),
            ("s-1-0.changes/tmp/upper/spotsweep-x/params.json", "1"),
            ("s-1-0/attempt-home/.cache/hub/model.safetensors", "1"),
            ("s-1-0/attempt-home/model.h5", "1"),
            ("s-1-0/models/m.onnx", "1"),
            ("s-1-0/etc/empty", ""),
            ("s-1-0/dltraining/checkpoints/best.ckpt", "123"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let mut lost = Lost::default();
        lost.look(root);
        assert_eq!(lost.groups(), [], "it may still move them");
        fs::remove_file(root.join("s-1-0.changes/image/upper/moved.pt")).unwrap();
        lost.look(root);
        lost.attempt_ends();
        let groups: Vec<(String, usize)> = lost.groups().into_iter().map(|group| (group.name, group.files)).collect();
        assert_eq!(groups[..2], [("runs/".to_owned(), 2), ("best.ckpt".to_owned(), 1)]);
        let names: BTreeSet<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, BTreeSet::from(["/models/", "/tmp/data/", "best.ckpt", "runs/", "~/model.h5", "~/results/"]));
        assert_eq!(lost.models(), ["/models/m.onnx", "runs/a/model.pt", "~/model.h5"]);
    }
}
