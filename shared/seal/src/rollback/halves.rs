//! Finds files that may be what is left of a checkpoint.
//!
//! Neither names nor times show of each file whether it is a checkpoint of its own or a part of one. If one part was
//! quarantined, the others stay, and each of them counts as a checkpoint. Whatever their seals and formats show, they
//! do not prove that the training can start from them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::aside::incomplete;
use crate::disk::{Disk, Stamp};
use crate::groups::{Group, Groups};
use crate::sealer::Sealer;

impl Sealer {
    /// Those of `files` that may be one checkpoint with a file that was quarantined as incomplete and is not back.
    pub(super) fn halves(&self, disk: &dyn Disk, files: &BTreeMap<String, Stamp>) -> io::Result<BTreeSet<String>> {
        let mut gone = incomplete(disk, &self.own)?;
        gone.retain(|path, _| !files.contains_key(path));
        let present = files.iter().chain(&gone).map(|(path, stamp)| (path.as_str(), *stamp));
        let sealed = self.record.files.iter().map(|(path, sealed)| (path.as_str(), sealed.stamp));
        let possible = Groups::to_keep(present.chain(sealed).chain(self.record.kept_files()), self.record.parts());
        let groups = gone.keys().filter_map(|path| possible.group(path));
        Ok(groups.flat_map(|group| group.members.iter().filter(|path| files.contains_key(*path))).cloned().collect())
    }
}

/// Whether a checkpoint is one file, and one of the `halves`.
pub(super) fn is_half(group: &Group, members: &BTreeSet<&str>, halves: &BTreeSet<String>) -> bool {
    group.is_file() && members.iter().any(|path| halves.contains(*path))
}
