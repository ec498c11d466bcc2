//! The loss of what an instance had not written out.
//!
//! POSIX promises nothing about it, and file systems differ. So each file, each name and each sector is on the volume
//! or is not, in any order. Two rules hold on ext4 and XFS, the file systems of workspaces. A rename is made completely
//! or not at all (rename(2)). And blocks that were never written read as zeros and are holes, never what another file
//! left there (ext4(5), `data=ordered`; xfs(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{File, FileSystem, View};
use crate::rng::Rng;

/// The smallest part of a file that is written completely or not at all: a sector of the device.
const SECTOR: usize = 512;

impl FileSystem {
    /// Loses data at random that the instance had not written out.
    pub fn lose(&mut self, rng: &mut Rng) {
        if self.seen == self.written {
            return;
        }
        let mut contents = BTreeMap::new();
        for file in self.seen.files.values() {
            let before = self.written.files.values().find(|before| before.inode == file.inode);
            let passed = self.passed.get(&file.inode).filter(|passed| passed.blocks == file.blocks);
            contents.entry(file.inode).or_insert_with(|| {
                let before = passed.filter(|_| rng.unit() < 0.5).or(before);
                lost_content(file, before, rng)
            });
        }
        let mut renames = BTreeMap::new();
        let mut left = View::default();
        let names = self.seen.files.keys().chain(self.written.files.keys());
        for path in names.collect::<BTreeSet<_>>() {
            let (now, before) = (self.seen.files.get(path), self.written.files.get(path));
            // All names of the file that has or had this name change together.
            let inode = now.or(before).map_or(0, |file| file.inode);
            let is_done = *renames.entry(inode).or_insert_with(|| rng.unit() < 0.5);
            let is_same = now.map(|file| file.inode) == before.map(|file| file.inode);
            let file = if is_done || is_same { now } else { before };
            left.files.extend(file.map(|file| (path.clone(), contents.get(&file.inode).unwrap_or(file).clone())));
        }
        let links = self.seen.links.keys().chain(self.written.links.keys());
        for path in links.collect::<BTreeSet<_>>() {
            let view = if rng.unit() < 0.5 { &self.seen } else { &self.written };
            let target = view.links.get(path).filter(|_| !left.files.contains_key(path));
            left.links.extend(target.map(|target| (path.clone(), target.clone())));
        }
        self.passed.clear();
        self.seen = left.clone();
        self.written = left;
    }
}

/// Returns what is left of a file whose version on the volume is `before`.
fn lost_content(file: &File, before: Option<&File>, rng: &mut Rng) -> File {
    if before == Some(file) {
        return file.clone();
    }
    let shares_blocks = before.is_some_and(|before| before.blocks == file.blocks);
    let old = before.filter(|_| shares_blocks).map(|before| before.bytes.as_slice()).unwrap_or_default();
    let drawn = rng.next_u64();
    let left = match (drawn % 4, before) {
        (0, Some(before)) => before.clone(),
        (0, None) => File { bytes: Arc::default(), ..file.clone() },
        (1, _) => file.clone(),
        // The end of the file is missing.
        (2, _) => {
            let grown = file.bytes.len().saturating_sub(old.len());
            let length = file.bytes.len() - grown + scaled(grown, rng.unit());
            File { bytes: Arc::new(file.bytes[..length].to_vec()), ..file.clone() }
        }
        (_, _) => mixed(file, old, rng),
    };
    // A file of the same length and the same blocks may also have its old time, because the inode was not written out.
    let keeps_time =
        |before: &&File| shares_blocks && before.bytes.len() == left.bytes.len() && (drawn / 4).is_multiple_of(4);
    let modified_ns = before.filter(keeps_time).map_or(left.modified_ns, |before| before.modified_ns);
    File { modified_ns, ..left }
}

/// Returns the file with some sectors as they were before. Those beyond the old end were never written.
fn mixed(file: &File, old: &[u8], rng: &mut Rng) -> File {
    let mut bytes = file.bytes.to_vec();
    let mut has_hole = file.has_hole;
    for (number, sector) in bytes.chunks_mut(SECTOR).enumerate() {
        if rng.unit() < 0.5 {
            continue;
        }
        let start = number * SECTOR;
        let there = old.get(start..old.len().min(start + sector.len())).unwrap_or_default();
        has_hole |= there.is_empty();
        sector.fill(0);
        sector[..there.len()].copy_from_slice(there);
    }
    File { bytes: Arc::new(bytes), has_hole, ..file.clone() }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
fn scaled(length: usize, share: f64) -> usize {
    (length as f64 * share) as usize
}
