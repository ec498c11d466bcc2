//! The seal as it lies on the workspace: `.spotsweep/seal.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use spotsweep_protocol::claim::Seal;

use crate::Say;
use crate::content::read;
use crate::disk::{Disk, Stamp, write_whole};
use crate::failed::Failed;
use crate::groups::Groups;
use crate::logs::{Change, is_log};
use crate::names::is_settings_name;

pub(crate) const NAME: &str = "seal.json";
/// A million files have 200 MB; what a snapshot has under this name may be anything.
const MOST_BYTES: u64 = 1 << 30;

/// Which files were whole, and how they looked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Which attempt sealed.
    pub(crate) attempt: u32,
    /// Nothing was written after it: sealed at release, when the command had stopped.
    #[serde(rename = "final")]
    pub(crate) last: bool,
    /// Whether a command has been started on this workspace.
    #[serde(default)]
    pub(crate) trained: bool,
    /// By path below `checkpoints/`.
    pub(crate) files: BTreeMap<String, Sealed>,
    /// Copies in `.spotsweep/kept/`, by path below `checkpoints/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) kept: BTreeMap<String, Sealed>,
    /// When those of files that are rewritten in place lay there, by the same paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) in_place: BTreeMap<String, InPlace>,
    /// The same as what is kept, in `.spotsweep/begun/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) begun: BTreeMap<String, Sealed>,
    /// The checkpoints that the training failed on since it last made progress. An older runner wrote `failed`, of another
    /// form.
    #[serde(default, deserialize_with = "known_ones", skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failed>,
}

/// At which seals a kept version lay in its place. Seals are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InPlace {
    pub(crate) sha256: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// One file under the seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sealed {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// Of the content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// Whether it may be incomplete: it was being written when its writer ended, and its format does not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) doubtful: bool,
    /// How the file has changed between two seals, as far as that matters.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<Change>,
    /// Where two complete versions were the same, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) constant: Vec<Part>,
}

/// From one place in a file to another, in bytes.
pub(crate) type Part = (u64, u64);

/// What this version knows. Another one may write more, which must not cost the whole seal.
fn known<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(from)?).ok())
}

/// The same of several.
fn known_ones<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

impl Record {
    /// How the file at `path` has changed between two seals.
    pub(crate) fn change(&self, path: &str) -> Option<Change> {
        self.files.get(path).and_then(|sealed| sealed.change)
    }

    /// What is kept, as the files were.
    pub(crate) fn kept_files(&self) -> impl Iterator<Item = (&str, Stamp)> {
        self.kept.iter().map(|(path, kept)| (path.as_str(), kept.stamp))
    }

    /// The seal in `folder`. One that cannot be read seals nothing: every file is then judged by itself.
    pub(crate) fn read(disk: &dyn Disk, folder: &Path, say: Say) -> io::Result<Option<Self>> {
        let text = match read(disk, &folder.join(NAME), MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let record = serde_json::from_slice(&text);
        Ok(record.map_err(|error| say(&format!("the seal is broken, going on without: {error}"))).ok())
    }

    /// Whole or not at all, and on disk when this comes back.
    pub(crate) fn write(&self, disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        write_whole(disk, &folder.join(NAME), &serde_json::to_vec(self)?)
    }

    /// Removes a record in `folder` after which nothing was said to be written.
    pub(crate) fn give_up_last(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        let is_last = Self::read(disk, folder, |_| ())?.is_some_and(|record| record.last);
        if is_last { disk.remove_file(&folder.join(NAME)) } else { Ok(()) }
    }

    /// What the control plane keeps of it; nothing where nothing is sealed.
    pub(crate) fn summary(&self) -> Option<Seal> {
        let files = || self.files.iter().map(|(path, file)| (path.as_str(), file.stamp));
        let groups = Groups::of(files().chain(self.kept_files()));
        let others = files().filter(|(path, _)| !is_log(path, self.change(path)) && !is_settings_name(path));
        (!self.files.is_empty()).then(|| Seal {
            files: self.files.len() as u64,
            bytes: self.files.values().map(|file| file.stamp.bytes).sum(),
            newest: groups.newest(others).map(str::to_owned),
        })
    }
}
