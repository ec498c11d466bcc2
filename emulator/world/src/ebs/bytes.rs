//! The bytes of volumes in memory, for tests and the simulation.

use std::sync::Arc;

use super::{Attachment, AttachmentState, FileSystem, Opened};
use crate::World;

/// The error of an instance's access to a volume that is not attached to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{volume} is not attached to {instance}")]
pub struct NotAttached {
    /// The volume's id.
    pub volume: String,
    /// The instance's id.
    pub instance: String,
}

impl World {
    /// Replaces a file's content as a container on `instance` does, and writes it out.
    ///
    /// # Errors
    /// [`NotAttached`] unless the volume's device is in place.
    pub fn write_file(
        &mut self,
        volume: &str,
        instance: &str,
        path: &str,
        contents: impl AsRef<[u8]>,
    ) -> Result<(), NotAttached> {
        let files = self.file_system(volume, instance)?;
        files.open(path, Opened::Truncated, 0);
        files.write(path, 0, contents.as_ref(), 0);
        files.sync(path);
        Ok(())
    }

    /// Removes a file for good as a container on `instance` does. Returns whether it existed.
    ///
    /// # Errors
    /// The same as those of [`World::write_file`].
    pub fn remove_file(&mut self, volume: &str, instance: &str, path: &str) -> Result<bool, NotAttached> {
        let files = self.file_system(volume, instance)?;
        let was_there = files.remove(path);
        files.sync_all();
        Ok(was_there)
    }

    /// Returns the files of a volume, as a container on `instance` reads and changes them.
    ///
    /// # Errors
    /// The same as those of [`World::write_file`].
    pub fn file_system(&mut self, volume: &str, instance: &str) -> Result<&mut FileSystem, NotAttached> {
        self.files_from(volume, instance).map(Arc::make_mut)
    }

    /// Returns the same files when the instance has just begun to shut down, because its containers have written until
    /// then.
    pub fn files_at_the_end(&mut self, volume: &str, instance: &str) -> Option<&mut FileSystem> {
        let volume = self.ebs.volumes.get_mut(volume)?;
        let is_here = volume.attachment.as_ref().is_some_and(|attachment| attachment.instance == instance);
        is_here.then(|| Arc::make_mut(&mut volume.files))
    }

    /// Returns the files of a volume, wherever it is attached, for checks from outside. They are empty for a volume
    /// that is gone.
    pub fn files_of_volume(&self, volume: &str) -> Arc<FileSystem> {
        self.ebs.volumes.get(volume).map(|volume| volume.files.clone()).unwrap_or_default()
    }

    /// Returns the files that a snapshot has once it is completed, for checks from outside.
    pub fn files_of_snapshot(&self, snapshot: &str) -> Arc<FileSystem> {
        self.ebs.snapshots.get(snapshot).map(|snapshot| snapshot.files.clone()).unwrap_or_default()
    }

    fn files_from(&mut self, volume: &str, instance: &str) -> Result<&mut Arc<FileSystem>, NotAttached> {
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

/// Returns the bytes of the files that differ from those of the base.
pub(super) fn changed(files: &FileSystem, base: Option<&FileSystem>) -> u64 {
    let changed = files.seen().files.iter().filter(|(path, file)| {
        let there = base.and_then(|base| base.content(path));
        there != Some(file.bytes.as_slice())
    });
    changed.map(|(_, file)| file.bytes.len() as u64).sum()
}
