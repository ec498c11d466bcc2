//! What has to happen to bytes, for whoever keeps them.
//!
//! By itself the World keeps the bytes of volumes in memory (see [`World::write_file`]) and every
//! order is done as it is given. The local stack keeps them on disk: there the World hands its
//! orders out, and goes on when one is done.

use super::{FileSystem, bytes};
use crate::World;

/// Something to be done with the bytes of volumes and snapshots, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeOrder {
    /// Make a volume's bytes: zeros, or a snapshot's. Answered with the number of bytes of data.
    Make {
        /// The volume.
        volume: String,
        /// Its size in GiB.
        size_gib: u32,
        /// The snapshot.
        from: Option<String>,
    },
    /// Make the device appear at an instance.
    Attach {
        /// The volume.
        volume: String,
        /// The instance.
        instance: String,
        /// The attachment's number.
        number: u64,
    },
    /// Make the device disappear, once it is not mounted; at once where
    /// [`World::is_detach_forced`].
    Detach {
        /// The volume.
        volume: String,
        /// The instance.
        instance: String,
        /// The attachment's number.
        number: u64,
    },
    /// Keep the volume's bytes as they are at this moment. Answered with the number of bytes that
    /// differ from the base.
    Copy {
        /// The snapshot to be made.
        snapshot: String,
        /// Of which volume.
        volume: String,
        /// What the snapshot is incremental to.
        base: Option<String>,
        /// Whose writes must not get in.
        instance: Option<String>,
    },
    /// Forget a volume's bytes.
    RemoveVolume(String),
    /// Forget a snapshot's bytes.
    RemoveSnapshot(String),
}

impl World {
    /// From now on the bytes are kept outside: what keeps them takes the orders and reports what was done.
    #[must_use]
    pub fn with_bytes_outside(mut self) -> Self {
        self.ebs.outside = true;
        self
    }

    /// The orders since the last call. Always empty for a World that keeps the bytes itself.
    pub fn take_volume_orders(&mut self) -> Vec<VolumeOrder> {
        std::mem::take(&mut self.ebs.orders)
    }

    /// Reports what became of an order: the number of bytes it asks for, or why it failed.
    pub fn volume_order_done(&mut self, order: &VolumeOrder, outcome: Result<u64, String>, now: jiff::Timestamp) {
        self.advance(now);
        self.order_done(order, outcome);
    }

    /// Whether a volume is to come off its instance even where it is mounted.
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

    /// The answer to an order about bytes in memory.
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
