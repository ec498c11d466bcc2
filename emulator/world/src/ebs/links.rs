//! The links that udev makes to the volumes of an instance, `/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol…`.
//!
//! The kernel gives a disk the lowest free number, so a number soon belongs to another volume. udev changes the links
//! later, sometimes by minutes. Until then a link leads to the disk that its volume had before (fact 59).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Attachment;
use crate::{Timer, World};

/// Disk numbers by instance and by the volume that the link names.
pub(super) type Links = BTreeMap<(String, String), u32>;

/// The lowest number of a disk that is not the root volume, whose disk is `/dev/nvme0n1`.
const FIRST_DISK: u32 = 1;

impl World {
    /// Returns the volume on the disk to which an instance's link for `volume` leads; `None` if the link or the disk
    /// does not exist.
    pub fn behind_link(&self, instance: &str, volume: &str) -> Option<&str> {
        let disk = self.ebs.links.get(&(instance.to_owned(), volume.to_owned()))?;
        self.on_disk(instance, *disk)
    }

    fn on_disk(&self, instance: &str, disk: u32) -> Option<&str> {
        let is_it = |of: &Attachment| of.instance == instance && of.disk == Some(disk);
        let mut found = self.volumes().filter(|volume| volume.attachment.as_ref().is_some_and(is_it));
        found.next().map(|volume| volume.id.as_str())
    }

    /// Returns the lowest number that no disk of the instance has.
    pub(super) fn free_disk(&self, instance: &str) -> u32 {
        let is_taken = |disk: &u32| self.on_disk(instance, *disk).is_some();
        (FIRST_DISK..).find(|disk| !is_taken(disk)).unwrap_or(u32::MAX)
    }

    /// Lets udev change its links some time after a disk has appeared or disappeared.
    pub(super) fn disk_changed(&mut self, instance: String, disk: u32) {
        match self.trouble.links_lag_ms {
            0 => self.linked(&instance, disk),
            lag => self.after(Duration::from_millis(lag), Timer::Linked { instance, disk }),
        }
    }

    /// Updates the links to a disk, so that only the link of the volume which is there now leads to it.
    pub(crate) fn linked(&mut self, instance: &str, disk: u32) {
        self.ebs.links.retain(|(at, _), leads_to| at != instance || *leads_to != disk);
        if let Some(volume) = self.on_disk(instance, disk).map(str::to_owned) {
            self.ebs.links.insert((instance.to_owned(), volume), disk);
        }
    }
}
