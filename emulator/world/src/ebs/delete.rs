//! The calls DeleteVolume and DeleteSnapshot (EC2 API reference).

use super::{SnapshotState, VolumeOrder, VolumeState};
use crate::{ApiError, Timer, World};

impl World {
    /// Deletes a volume that is attached to no instance.
    ///
    /// # Errors
    /// `VolumeInUse` while it is attached, `IncorrectState` while it is being created or deleted,
    /// `InvalidVolume.NotFound`.
    pub fn delete_volume(&mut self, id: &str) -> Result<(), ApiError> {
        let volume = self.find_volume(id)?;
        if let Some(attachment) = &volume.attachment {
            let message = format!("Volume {id} is currently attached to {}", attachment.instance);
            return Err(ApiError::ec2("VolumeInUse", message));
        }
        match volume.state {
            VolumeState::Available | VolumeState::Error => {}
            state @ (VolumeState::Creating | VolumeState::InUse | VolumeState::Deleting) => {
                let message = format!("The volume '{id}' is in the '{}' state.", state.as_str());
                return Err(ApiError::ec2("IncorrectState", message));
            }
        }
        volume.state = VolumeState::Deleting;
        self.orphan_snapshots(id);
        self.order_removal(id);
        Ok(())
    }

    /// Continues a deletion once the volume's bytes are removed. A volume whose creation failed has a timer of its own.
    pub(super) fn volume_removed(&mut self, id: &str) {
        if self.volume(id).is_some_and(|volume| volume.state == VolumeState::Deleting) {
            self.after(self.settings.timings.delete_volume, Timer::VolumeGone { volume: id.to_owned() });
        }
    }

    /// Fails the pending snapshots of a deleted volume. No document says what happens to them (fact 24). This is the
    /// worst case, so that a control plane which relies on anything else fails here first.
    fn orphan_snapshots(&mut self, volume: &str) {
        let pending = self.ebs.snapshots.values().filter(|snapshot| {
            snapshot.volume == volume && snapshot.state == SnapshotState::Pending && !snapshot.deleted
        });
        let pending: Vec<String> = pending.map(|snapshot| snapshot.id.clone()).collect();
        for id in pending {
            self.fail_snapshot(&id, "The source volume was deleted.");
        }
    }

    pub(super) fn order_removal(&mut self, volume: &str) {
        self.give_order(VolumeOrder::RemoveVolume(volume.to_owned()));
    }

    /// Removes a volume for good. There is no event for a deletion that failed (fact 11), and no further one for a
    /// volume whose creation failed.
    pub(crate) fn volume_gone(&mut self, id: &str) {
        if let Some(volume) = self.ebs.volumes.remove(id)
            && volume.state == VolumeState::Deleting
        {
            self.emit_volume(id, "deleteVolume", "deleted", "");
        }
    }

    /// Deletes a snapshot, whatever its state is. The copy of a pending one continues invisibly.
    ///
    /// # Errors
    /// `InvalidSnapshot.NotFound`.
    pub fn delete_snapshot(&mut self, id: &str) -> Result<(), ApiError> {
        let snapshot = self.find_snapshot(id)?;
        if snapshot.state == SnapshotState::Pending {
            snapshot.deleted = true;
        } else {
            self.remove_snapshot(id);
        }
        Ok(())
    }

    pub(super) fn remove_snapshot(&mut self, id: &str) {
        self.ebs.snapshots.remove(id);
        self.give_order(VolumeOrder::RemoveSnapshot(id.to_owned()));
    }
}
