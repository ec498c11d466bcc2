//! Bytes of volumes in memory, for tests and the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Attachment, AttachmentState};
use crate::World;

/// File contents by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// An instance touched a volume that is not attached to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{volume} is not attached to {instance}")]
pub struct NotAttached {
    /// The volume.
    pub volume: String,
    /// The instance.
    pub instance: String,
}

impl World {
    /// Writes a file as a container on `instance` does.
    ///
    /// # Errors
    /// [`NotAttached`] unless the volume's device is there.
    pub fn write_file(
        &mut self,
        volume: &str,
        instance: &str,
        path: &str,
        contents: impl Into<Vec<u8>>,
    ) -> Result<(), NotAttached> {
        Arc::make_mut(self.files_from(volume, instance)?).insert(path.to_owned(), contents.into());
        Ok(())
    }

    /// Removes a file as a container on `instance` does; whether it was there.
    ///
    /// # Errors
    /// As [`World::write_file`].
    pub fn remove_file(&mut self, volume: &str, instance: &str, path: &str) -> Result<bool, NotAttached> {
        Ok(Arc::make_mut(self.files_from(volume, instance)?).remove(path).is_some())
    }

    /// Reads all files as a container on `instance` does.
    ///
    /// # Errors
    /// As [`World::write_file`].
    pub fn read_files(&mut self, volume: &str, instance: &str) -> Result<Arc<Files>, NotAttached> {
        self.files_from(volume, instance).map(|files| files.clone())
    }

    /// What a volume holds, wherever it is: for checks from outside. Empty for a volume that is gone.
    pub fn files_of_volume(&self, volume: &str) -> Arc<Files> {
        self.ebs.volumes.get(volume).map(|volume| volume.files.clone()).unwrap_or_default()
    }

    /// What a snapshot will hold once it is completed: for checks from outside.
    pub fn files_of_snapshot(&self, snapshot: &str) -> Arc<Files> {
        self.ebs.snapshots.get(snapshot).map(|snapshot| snapshot.files.clone()).unwrap_or_default()
    }

    fn files_from(&mut self, volume: &str, instance: &str) -> Result<&mut Arc<Files>, NotAttached> {
        let alive = self.instances.get(instance).is_some_and(|host| host.state.is_live());
        let here = |attachment: &Attachment| {
            attachment.instance == instance
                && matches!(attachment.state, AttachmentState::Attached | AttachmentState::Busy)
        };
        let found =
            self.ebs.volumes.get_mut(volume).filter(|volume| alive && volume.attachment.as_ref().is_some_and(here));
        let missing = || NotAttached { volume: volume.to_owned(), instance: instance.to_owned() };
        found.map(|volume| &mut volume.files).ok_or_else(missing)
    }
}

pub(super) fn total(files: &Files) -> u64 {
    files.values().map(|contents| contents.len() as u64).sum()
}

/// Bytes of the files that are not the same in the base.
pub(super) fn changed(files: &Files, base: Option<&Files>) -> u64 {
    let same = |path: &String, contents: &Vec<u8>| base.and_then(|base| base.get(path)) == Some(contents);
    files.iter().filter(|(path, contents)| !same(path, contents)).map(|(_, contents)| contents.len() as u64).sum()
}
