//! Room on a volume that the runner keeps for itself.
//!
//! A training may fill its volume. What the runner writes is little, and without it a trial ends that could go on: the
//! next attempt can neither seal nor put a torn checkpoint aside. So some files hold room and names, which the runner
//! gives up when it needs them and no training runs.

use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::sealer::Sealer;

/// So many files, as a file system may also run out of files.
const FILES: u64 = 8;
/// All of them: a seal has some 200 bytes for each checkpoint file and is written next to the one before, and a log has
/// a MiB.
pub(crate) const BYTES: u64 = 16 << 20;

impl Sealer {
    /// Gives the runner's room on the volume up, so that it can write. No training runs then.
    pub fn make_room(&mut self, disk: &dyn Disk) {
        self.has_reserve = false;
        give_up(disk, &self.own);
    }

    /// Sets room aside, unless there is none now; the next round tries again.
    pub(crate) fn reserve(&mut self, disk: &dyn Disk) {
        if !self.is_disk || self.has_reserve {
            return;
        }
        let held = files(&self.own).try_for_each(|file| disk.allocate(&file, BYTES / FILES));
        self.has_reserve = held.is_ok();
        if held.is_err() {
            // What little there is, is the training's.
            give_up(disk, &self.own);
        }
    }
}

/// Removes what holds the room, as far as it is there.
pub(crate) fn give_up(disk: &dyn Disk, own: &Path) {
    for file in files(own) {
        // Fails where it was never made.
        let _ = disk.remove_file(&file);
    }
}

fn files(own: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let own = own.to_owned();
    (1..=FILES).map(move |number| own.join(format!("reserve-{number}")))
}
