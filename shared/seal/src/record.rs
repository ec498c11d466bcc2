//! The checkpoint manifest on the workspace: `.spotsweep/seal.json`.

use std::collections::{BTreeMap, BTreeSet};
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
/// A manifest of a million files has 200 MB, but a snapshot may have any file under this name.
const MOST_BYTES: u64 = 1 << 30;

/// The sealed files and their stamps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The attempt that sealed.
    pub(crate) attempt: u32,
    /// Nothing was written after it: sealed at release, when the command had stopped.
    #[serde(rename = "final")]
    pub(crate) last: bool,
    /// Whether everything was written out after the end of the command, also what the last seal had no time for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) written_out: bool,
    /// Whether a command has been started on this workspace.
    #[serde(default)]
    pub(crate) trained: bool,
    /// Sealed files, by path below `checkpoints/`.
    pub(crate) files: BTreeMap<String, Sealed>,
    /// The files of numbered checkpoints that the attempt has found. It writes such a file again if it repeats a save.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) first: BTreeMap<String, Stamp>,
    /// The files that the end of the command has left incomplete. If the last seal did not have time for all files, only
    /// this shows it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cut: BTreeMap<String, Stamp>,
    /// Kept copies in `.spotsweep/kept/`, by path below `checkpoints/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) kept: BTreeMap<String, Sealed>,
    /// When the kept versions of files that are rewritten in place lay there, by the same paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) in_place: BTreeMap<String, InPlace>,
    /// The checkpoints on which the training failed since its last progress. An older runner wrote `failed`, in another
    /// form.
    #[serde(default, deserialize_with = "known_ones", skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failed>,
}

/// The first and the last seal at which a kept version lay in its place. Seals are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InPlace {
    pub(crate) sha256: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// One sealed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sealed {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// Hash of the content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// Whether it may be incomplete: it was being written when its writer ended, and its format does not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) doubtful: bool,
    /// How the file has changed between two seals, as far as that matters.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<Change>,
    /// Whether saves rewrite it together with others whose names differ in a number only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_part: bool,
}

/// The value if this version knows it. Another version may write more values, which must not make the whole seal
/// unreadable.
fn known<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(from)?).ok())
}

/// The same for several values.
fn known_ones<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

impl Record {
    /// How the file at `path` has changed between two seals.
    pub(crate) fn change(&self, path: &str) -> Option<Change> {
        self.files.get(path).and_then(|sealed| sealed.change)
    }

    /// The kept files with their stamps.
    pub(crate) fn kept_files(&self) -> impl Iterator<Item = (&str, Stamp)> {
        self.kept.iter().map(|(path, kept)| (path.as_str(), kept.stamp))
    }

    /// The sealed version of the file at `path`, or the kept one of a file that is gone or was gone at the last seal: a
    /// script may remove the old checkpoint before it writes the new one.
    pub(crate) fn version(&self, path: &str) -> Option<&Sealed> {
        self.files.get(path).or_else(|| self.kept.get(path))
    }

    /// All such versions.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&String, &Sealed)> {
        self.files.iter().chain(self.kept.iter().filter(|(path, _)| !self.files.contains_key(*path)))
    }

    /// The files that saves rewrite although their names have a number.
    pub(crate) fn parts(&self) -> BTreeSet<String> {
        let all = self.files.iter().chain(&self.kept);
        all.filter(|(_, sealed)| sealed.is_part).map(|(path, _)| path.clone()).collect()
    }

    /// Whether a save was seen that has rewritten the file at `path` together with the other parts of a checkpoint.
    pub(crate) fn is_part(&self, path: &str) -> bool {
        [&self.files, &self.kept].into_iter().any(|all| all.get(path).is_some_and(|sealed| sealed.is_part))
    }

    /// The manifest of the next `attempt`, which has `found` these files, and some of them as they were `sealed`. It is
    /// not final any more, because the command may change what is sealed.
    pub(crate) fn begun_by(
        self,
        attempt: u32,
        mut sealed: BTreeMap<String, Sealed>,
        (found, groups): (&BTreeMap<String, Stamp>, &Groups),
    ) -> Self {
        let numbered = found.iter().filter(|(path, _)| groups.is_numbered(path));
        let first = numbered.map(|(path, stamp)| (path.clone(), *stamp)).collect();
        // The earlier state of a file stays until the file is sealed again.
        for (path, before) in self.files.into_iter().filter(|(path, _)| found.contains_key(path)) {
            sealed.entry(path).or_insert(before);
        }
        Self { attempt, last: false, written_out: false, files: sealed, first, cut: BTreeMap::new(), ..self }
    }

    /// The seal in `folder`. One that cannot be parsed seals nothing: every file is then judged by itself.
    pub(crate) fn read(disk: &dyn Disk, folder: &Path, say: Say) -> io::Result<Option<Self>> {
        let text = match read(disk, &folder.join(NAME), MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let record = serde_json::from_slice(&text);
        Ok(record.map_err(|error| say(&format!("the seal is broken, going on without: {error}"))).ok())
    }

    /// Writes it completely or not at all. It is on disk when this returns.
    pub(crate) fn write(&self, disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        write_whole(disk, &folder.join(NAME), &serde_json::to_vec(self)?)
    }

    /// Removes a manifest in `folder` that says that nothing was written after it.
    pub(crate) fn give_up_last(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        let is_last = Self::read(disk, folder, |_| ())?.is_some_and(|record| record.last);
        if is_last { disk.remove_file(&folder.join(NAME)) } else { Ok(()) }
    }

    /// The summary for the control plane; `None` if nothing is sealed.
    pub(crate) fn summary(&self) -> Option<Seal> {
        let files = || self.files.iter().map(|(path, file)| (path.as_str(), file.stamp));
        let groups = Groups::with_parts(files().chain(self.kept_files()), self.parts());
        let others = files().filter(|(path, _)| !is_log(path, self.change(path)) && !is_settings_name(path));
        (!self.files.is_empty()).then(|| Seal {
            files: self.files.len() as u64,
            bytes: self.files.values().map(|file| file.stamp.bytes).sum(),
            newest: groups.newest(others).map(str::to_owned),
        })
    }
}
