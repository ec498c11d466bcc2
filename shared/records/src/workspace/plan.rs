//! What workspaces are made of, as the sweep's plan says it.

use serde::{Deserialize, Serialize};

use crate::stored::is_default;

/// How long workspaces are kept after their trials' ends, in seconds. With 0 they are deleted at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// The time for trials that failed or were cancelled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed_seconds: u32,
    /// The time for trials that succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub succeeded_seconds: u32,
}

/// What a sweep's workspaces are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspacePlan {
    /// GiB. A volume from a snapshot is at least as large as the snapshot's volume.
    pub size_gib: u32,
    /// What the volumes are made from.
    pub origin: Origin,
    /// How long the workspaces are kept after their trials' ends.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: Keep,
    /// MiB/s at which a volume loads its snapshot, 100 to 300; absent for EC2's default rate, which is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_rate: Option<u32>,
}

/// What a volume is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all = "kebab-case")]
pub enum Origin {
    /// The volume starts empty, and the runner makes a file system.
    Blank,
    /// A snapshot of the user, or of a workspace that migrates.
    Snapshot {
        /// `snap-…`
        snapshot: String,
    },
    /// A snapshot for each trial of the sweep. They are listed in `snapshots.json` of the sweep's results, because a
    /// sweep's record is read with each event of its trials. Each trial's own volume starts from one
    /// [`Origin::Snapshot`].
    Snapshots,
    /// A volume that a person made, and that is never deleted.
    Adopted {
        /// `vol-…`
        volume: String,
        /// The availability zone.
        zone: String,
        /// The Name tag, which the volume's copies get too.
        name: String,
    },
}

impl WorkspacePlan {
    /// Returns what the volume of a trial starts from; `None` while the trial's own snapshot is not known.
    pub fn origin_of(&self, snapshot: Option<&str>) -> Option<Origin> {
        match &self.origin {
            Origin::Snapshots => snapshot.map(|snapshot| Origin::Snapshot { snapshot: snapshot.to_owned() }),
            other @ (Origin::Blank | Origin::Snapshot { .. } | Origin::Adopted { .. }) => Some(other.clone()),
        }
    }
}
