//! Resources that exist before the World begins.

use std::sync::Arc;

use super::{FileSystem, Snapshot, SnapshotState, Tags};
use crate::World;

impl World {
    /// Adds a completed snapshot of a volume that is gone, such as a dataset, and returns its id. This is only possible
    /// for a World that keeps the bytes itself.
    pub fn prepare_snapshot(&mut self, size_gib: u32, files: FileSystem) -> String {
        let id = format!("snap-0{}", self.ids.hex(16));
        let snapshot = Snapshot {
            id: id.clone(),
            volume: format!("vol-0{}", self.ids.hex(16)),
            volume_size_gib: size_gib,
            encrypted: false,
            description: String::new(),
            state: SnapshotState::Completed,
            started_at: self.now,
            completes_at: Some(self.now),
            changed_bytes: Some(files.bytes()),
            tags: Tags::default(),
            visible_at: self.now,
            lineage: Vec::new(),
            files: Arc::new(files),
            fails: false,
            deleted: false,
        };
        self.ebs.snapshots.insert(id.clone(), snapshot);
        id
    }
}
