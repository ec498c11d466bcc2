//! The resources that still exist and would be billed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Tags, VolumeState};
use crate::World;

/// Volumes, snapshots and attachments that were not removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Leftovers {
    /// Volumes that are not deleted.
    pub volumes: Vec<LeftVolume>,
    /// Snapshots that are not deleted.
    pub snapshots: Vec<LeftSnapshot>,
    /// Volumes that are attached to an instance.
    pub attachments: Vec<LeftAttachment>,
}

/// A volume that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftVolume {
    /// The volume's id.
    pub id: String,
    /// The availability zone.
    pub zone: String,
    /// EC2's name of the state.
    pub state: &'static str,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A snapshot that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftSnapshot {
    /// The snapshot's id.
    pub id: String,
    /// The volume that it was taken of.
    pub volume: String,
    /// EC2's name of the state.
    pub state: &'static str,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A volume that is attached, or is being attached or detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftAttachment {
    /// The volume's id.
    pub volume: String,
    /// The instance's id.
    pub instance: String,
    /// The device name.
    pub device: String,
    /// EC2's name of the state.
    pub state: &'static str,
}

impl Leftovers {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.snapshots.is_empty() && self.attachments.is_empty()
    }
}

impl World {
    /// Returns what has not been removed. A volume that is being deleted counts as removed.
    pub fn leftovers(&self) -> Leftovers {
        let kept = |tags: &Tags| tags.0.clone();
        let volumes = self.volumes().filter(|volume| volume.state != VolumeState::Deleting);
        let attached = self.volumes().filter_map(|volume| Some((volume, volume.attachment.as_ref()?)));
        Leftovers {
            volumes: volumes
                .map(|volume| LeftVolume {
                    id: volume.id.clone(),
                    zone: volume.zone.clone(),
                    state: volume.state.as_str(),
                    tags: kept(&volume.tags),
                })
                .collect(),
            snapshots: self
                .snapshots()
                .map(|snapshot| LeftSnapshot {
                    id: snapshot.id.clone(),
                    volume: snapshot.volume.clone(),
                    state: snapshot.state.as_str(),
                    tags: kept(&snapshot.tags),
                })
                .collect(),
            attachments: attached
                .map(|(volume, attachment)| LeftAttachment {
                    volume: volume.id.clone(),
                    instance: attachment.instance.clone(),
                    device: attachment.device.clone(),
                    state: attachment.state.as_str(),
                })
                .collect(),
        }
    }
}
