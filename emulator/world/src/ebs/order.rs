//! The orders about the bytes of volumes, for the program that keeps the bytes.
//!
//! By default the World keeps the bytes of volumes in memory (see [`World::write_file`]), and executes every order at
//! once. The local stack keeps them on disk. The World then hands out its orders, and continues when one is done.

use super::{FileSystem, bytes};
use crate::World;

/// An order about the bytes of volumes and snapshots. Orders are executed in their sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeOrder {
    /// Makes a volume's bytes: zeros, or those of a snapshot. The result is the number of bytes of data.
    Make {
        /// The volume's id.
        volume: String,
        /// Its size in GiB.
        size_gib: u32,
        /// The snapshot's id; absent for zeros.
        from: Option<String>,
    },
    /// Makes the device appear at an instance.
    Attach {
        /// The volume's id.
        volume: String,
        /// The instance's id.
        instance: String,
        /// The attachment's number.
        number: u64,
    },
    /// Makes the device disappear once it is not mounted, or at once if [`World::is_detach_forced`].
    Detach {
        /// The volume's id.
        volume: String,
        /// The instance's id.
        instance: String,
        /// The attachment's number.
        number: u64,
    },
    /// Copies the volume's bytes as they are at this moment. The result is the number of bytes that differ from the
    /// base.
    Copy {
        /// The id of the new snapshot.
        snapshot: String,
        /// The id of the volume.
        volume: String,
        /// The id of the snapshot to which the new one is incremental.
        base: Option<String>,
        /// The instance whose later writes must not be in the copy.
        instance: Option<String>,
    },
    /// Removes a volume's bytes.
    RemoveVolume(String),
    /// Removes a snapshot's bytes.
    RemoveSnapshot(String),
}

impl World {
    /// Makes a World whose bytes are kept outside. The program that keeps them takes the orders and reports their
    /// results.
    #[must_use]
    pub fn with_bytes_outside(mut self) -> Self {
        self.ebs.outside = true;
        self
    }

    /// Returns the orders since the last call. There are none for a World that keeps the bytes itself.
    pub fn take_volume_orders(&mut self) -> Vec<VolumeOrder> {
        std::mem::take(&mut self.ebs.orders)
    }

    /// Reports the result of an order: the number of bytes, or why it failed.
    pub fn volume_order_done(&mut self, order: &VolumeOrder, outcome: Result<u64, String>, now: jiff::Timestamp) {
        self.advance(now);
        self.order_done(order, outcome);
    }

    /// Whether a volume is detached from its instance even if it is mounted.
    pub fn is_detach_forced(&self, volume: &str) -> bool {
        let attachment = self.volume(volume).and_then(|volume| volume.attachment.as_ref());
        attachment.is_none_or(|attachment| attachment.force)
    }

    pub(super) fn give_order(&mut self, order: VolumeOrder) {
        if self.ebs.outside {
            self.ebs.orders.push(order);
        } else {
            let bytes = self.count_bytes(&order);
            self.order_done(&order, Ok(bytes));
        }
    }

    fn order_done(&mut self, order: &VolumeOrder, outcome: Result<u64, String>) {
        match order {
            VolumeOrder::Make { volume, .. } => self.volume_made(volume, outcome),
            VolumeOrder::Attach { volume, number, .. } => self.device_made(volume, *number, outcome.is_ok()),
            VolumeOrder::Detach { volume, number, .. } => self.device_gone(volume, *number),
            VolumeOrder::Copy { snapshot, .. } => self.snapshot_measured(snapshot, outcome),
            VolumeOrder::RemoveVolume(volume) => self.volume_removed(volume),
            VolumeOrder::RemoveSnapshot(_) => {}
        }
    }

    /// Returns the result of an order about bytes in memory.
    fn count_bytes(&self, order: &VolumeOrder) -> u64 {
        let snapshot = |id: &String| self.ebs.snapshots.get(id).map(|snapshot| &*snapshot.files);
        match order {
            VolumeOrder::Make { from, .. } => from.as_ref().and_then(snapshot).map_or(0, FileSystem::bytes),
            VolumeOrder::Copy { snapshot: id, base, .. } => {
                let base = base.as_ref().and_then(snapshot);
                snapshot(id).map_or(0, |files| bytes::changed(files, base))
            }
            VolumeOrder::Attach { .. }
            | VolumeOrder::Detach { .. }
            | VolumeOrder::RemoveVolume(_)
            | VolumeOrder::RemoveSnapshot(_) => 0,
        }
    }
}
