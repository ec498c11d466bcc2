//! Room on a volume that the runner keeps for itself.
//!
//! A training may fill its volume. The runner writes little, but without room a trial ends that could go on: the next
//! attempt can neither seal nor quarantine an incomplete checkpoint. So some files hold room and names. The runner
//! removes them when it needs room and no training runs.

use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::sealer::Sealer;

/// Several files, because a file system may also run out of inodes.
const FILES: u64 = 8;
/// The bytes of all of them. A seal has some 200 bytes for each checkpoint file and is written next to the one before;
/// a log has a MiB.
pub(crate) const BYTES: u64 = 16 << 20;

impl Sealer {
    /// Gives up the runner's room on the volume, so that it can write. Call it only when no training runs.
    pub fn make_room(&mut self, disk: &dyn Disk) {
        self.has_reserve = false;
        give_up(disk, &self.own);
    }

    /// Reserves room. If there is none now, the next round tries again.
    pub(crate) fn reserve(&mut self, disk: &dyn Disk) {
        if !self.is_disk || self.has_reserve {
            return;
        }
        let held = files(&self.own).try_for_each(|file| disk.allocate(&file, BYTES / FILES));
        self.has_reserve = held.is_ok();
        if held.is_err() {
            // The little room that is left is for the training.
            give_up(disk, &self.own);
        }
    }
}

/// Removes the files that hold the room, if they exist.
pub(crate) fn give_up(disk: &dyn Disk, own: &Path) {
    for file in files(own) {
        // Fails if the file was never made.
        let _ = disk.remove_file(&file);
    }
}

fn files(own: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let own = own.to_owned();
    (1..=FILES).map(move |number| own.join(format!("reserve-{number}")))
}
