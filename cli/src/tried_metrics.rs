//! The metrics that `spotsweep try` has found for the code of a folder, for `spotsweep init`. They are kept in the user's
//! cache, and it does no harm to lose them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spotsweep_local_stack::installation::cache_folder;

/// The metrics by folder.
type Metrics = BTreeMap<PathBuf, Vec<String>>;

/// Notes the metrics of a folder's code.
pub(crate) fn note(code: &Path, metrics: Vec<String>) {
    let Some(file) = file() else { return };
    let mut all = all(&file);
    all.insert(code.to_owned(), metrics);
    let text = serde_json::to_string(&all).unwrap_or_default();
    let _ = file.parent().map(fs::create_dir_all);
    let _ = fs::write(file, text);
}

/// The metrics of a folder's code, or none.
pub(crate) fn read(code: &Path) -> Vec<String> {
    file().and_then(|file| all(&file).remove(code)).unwrap_or_default()
}

fn all(file: &Path) -> Metrics {
    fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn file() -> Option<PathBuf> {
    Some(cache_folder()?.join("tried-metrics.json"))
}
