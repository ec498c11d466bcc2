//! What a file is for: a state that a training goes on from, a text, or a log.
//!
//! Its content shows that, and how it changes while a training runs. Its name does not: `model.txt` may be a model, and
//! `weights.log` a state.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spotsweep_checkpoint_formats::{BEGINNING_BYTES, Beginning, Completeness};

use crate::content::{SMALL_BYTES, read, read_from};
use crate::disk::{Disk, Stamp};

/// What a file is for; the greater counts more where a checkpoint has several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// It is appended to, and no training goes on from it.
    Log,
    /// A mark, a pointer, a counter, or a longer text of which it is not known.
    Text,
    /// Weights or a state.
    State,
}

/// What is known of how files change, by path below `checkpoints/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Uses {
    /// Files that were appended to, and those whose format is that of a log.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    logs: BTreeSet<String>,
    /// Texts that were rewritten while a training ran.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    rewritten: BTreeSet<String>,
}

impl Uses {
    pub(crate) fn is_log(&self, path: &str) -> bool {
        self.logs.contains(path)
    }

    /// What the file at `path` below `folder` is for. One that cannot be read is a text: it is no proof of a state.
    pub(crate) fn of(&self, disk: &dyn Disk, folder: &Path, path: &str, bytes: u64) -> Use {
        if self.is_log(path) {
            return Use::Log;
        }
        if bytes == 0 {
            return Use::Text;
        }
        let file = folder.join(path);
        match beginning(disk, &file, bytes) {
            Ok(Beginning::State | Beginning::Unknown) => Use::State,
            Ok(Beginning::Log) => Use::Log,
            Ok(Beginning::Json | Beginning::Text) if bytes > SMALL_BYTES && self.rewritten.contains(path) => Use::State,
            Ok(Beginning::Json) if bytes > SMALL_BYTES && is_one_value(disk, &file) => Use::State,
            Ok(Beginning::Json | Beginning::Text) | Err(_) => Use::Text,
        }
    }

    /// Forgets what is no longer there.
    fn retain(&mut self, files: &BTreeMap<String, Stamp>) {
        self.logs.retain(|path| files.contains_key(path));
        self.rewritten.retain(|path| files.contains_key(path));
    }
}

/// A small file is read as a whole, so that a zero byte anywhere shows that it is no text.
fn beginning(disk: &dyn Disk, file: &Path, bytes: u64) -> io::Result<Beginning> {
    let most = if bytes <= SMALL_BYTES { SMALL_BYTES } else { BEGINNING_BYTES };
    Ok(Beginning::of(&read(disk, file, most)?, file))
}

/// Whether a long text is one value of JSON, as XGBoost's models are, or the first part of one. JSON by lines is a log.
fn is_one_value(disk: &dyn Disk, file: &Path) -> bool {
    disk.completeness(file).is_ok_and(|found| matches!(found, Completeness::Whole | Completeness::Torn))
}

/// Looks again and again at the texts that a training writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    seen: BTreeMap<String, Seen>,
}

/// A file at the last look.
#[derive(Debug, Clone)]
struct Seen {
    stamp: Stamp,
    /// The hash of its two ends; absent where it is no text.
    ends: Option<[u8; 32]>,
}

impl Growth {
    /// Compares `files` with the last look, and notes in `uses` what that shows. Only versions count that this attempt has
    /// written, after `first`: a log may be begun again by each attempt, and is no state for that.
    pub(crate) fn look(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        (first, files): (&BTreeMap<String, Stamp>, &BTreeMap<String, Stamp>),
        uses: &mut Uses,
    ) {
        self.seen.retain(|path, _| files.contains_key(path));
        uses.retain(files);
        for (path, stamp) in files.iter().filter(|(path, stamp)| first.get(*path) != Some(*stamp)) {
            let before = self.seen.get(path);
            if stamp.bytes == 0 || before.is_some_and(|before| before.stamp == *stamp) {
                continue;
            }
            // What cannot be read now is looked at again.
            let Ok(seen) = look_at(disk, folder, path, (*stamp, before), uses) else { continue };
            self.seen.insert(path.clone(), seen);
        }
    }
}

fn look_at(
    disk: &dyn Disk,
    folder: &Path,
    path: &str,
    (stamp, before): (Stamp, Option<&Seen>),
    uses: &mut Uses,
) -> io::Result<Seen> {
    let file = folder.join(path);
    let beginning = beginning(disk, &file, stamp.bytes)?;
    if beginning == Beginning::Log {
        uses.logs.insert(path.to_owned());
    }
    if !matches!(beginning, Beginning::Json | Beginning::Text) {
        return Ok(Seen { stamp, ends: None });
    }
    if let Some((bytes, ends)) = before.and_then(|before| Some((before.stamp.bytes, before.ends?))) {
        let keeps = stamp.bytes >= bytes && ends_of(disk, &file, bytes)? == ends;
        // A state may take several looks to be written, and a log is not rewritten again and again.
        if !keeps {
            uses.logs.remove(path);
            uses.rewritten.insert(path.to_owned());
        } else if stamp.bytes > bytes && !uses.rewritten.contains(path) {
            uses.logs.insert(path.to_owned());
        }
    }
    Ok(Seen { stamp, ends: Some(ends_of(disk, &file, stamp.bytes)?) })
}

/// The hash of both ends of the first `bytes` of a file: a text that is rewritten differs in one of them.
fn ends_of(disk: &dyn Disk, file: &Path, bytes: u64) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    for offset in [0, bytes.saturating_sub(BEGINNING_BYTES)] {
        hasher.update(read_from(disk, file, offset, BEGINNING_BYTES.min(bytes))?);
    }
    Ok(hasher.finalize().into())
}
