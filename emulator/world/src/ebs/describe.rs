//! The calls DescribeVolumes and DescribeSnapshots (EC2 API reference).

use super::{Snapshot, Volume};
use crate::filter::Resource;
use crate::{ApiError, Selection, World};

impl World {
    /// Describes volumes. Returns them with the token of the next page.
    ///
    /// # Errors
    /// `InvalidVolume.NotFound` if one of the ids is unknown, `InvalidParameterValue` for unknown filters.
    pub fn describe_volumes(&mut self, wanted: &Selection) -> Result<(Vec<&Volume>, Option<String>), ApiError> {
        for id in &wanted.ids {
            self.find_volume(id)?;
        }
        if wanted.is_unbounded() {
            self.check_unbounded("DescribeVolumes")?;
        }
        let (now, time) = (self.now, self.lagging());
        let world = &*self;
        let visible = world.volumes().filter(|volume| volume.visible_at <= now);
        wanted.choose(visible.map(|volume| world.volume_at(volume, time)))
    }

    /// Describes the account's own snapshots. Returns them with the token of the next page.
    ///
    /// # Errors
    /// `InvalidSnapshot.NotFound` if one of the ids is unknown, `InvalidParameterValue` for unknown filters.
    pub fn describe_snapshots(&mut self, wanted: &Selection) -> Result<(Vec<&Snapshot>, Option<String>), ApiError> {
        for id in &wanted.ids {
            self.find_snapshot(id)?;
        }
        if wanted.is_unbounded() {
            self.check_unbounded("DescribeSnapshots")?;
        }
        let (now, time) = (self.now, self.lagging());
        let world = &*self;
        let visible = world.snapshots().filter(|snapshot| snapshot.visible_at <= now);
        wanted.choose(visible.map(|snapshot| world.snapshot_at(snapshot, time)))
    }
}

impl Resource for Volume {
    const IDS: &'static str = "volumesSet";

    const FILTERS: &'static [&'static str] = &[
        "volume-id",
        "availability-zone",
        "status",
        "volume-type",
        "encrypted",
        "snapshot-id",
        "attachment.instance-id",
        "attachment.device",
        "attachment.status",
    ];

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter()
    }

    fn field(&self, filter: &str) -> Vec<&str> {
        let attachment = self.attachment.as_ref();
        let field = match filter {
            "volume-id" => Some(self.id.as_str()),
            "availability-zone" => Some(self.zone.as_str()),
            "status" => Some(self.state.as_str()),
            "volume-type" => Some(self.volume_type.as_str()),
            "encrypted" => Some(if self.encrypted { "true" } else { "false" }),
            "snapshot-id" => self.snapshot.as_deref(),
            "attachment.instance-id" => attachment.map(|attachment| attachment.instance.as_str()),
            "attachment.device" => attachment.map(|attachment| attachment.device.as_str()),
            "attachment.status" => attachment.map(|attachment| attachment.state.as_str()),
            _unknown => return Vec::new(),
        };
        field.into_iter().collect()
    }
}

impl Resource for Snapshot {
    const IDS: &'static str = "snapshotSet";

    const FILTERS: &'static [&'static str] = &["snapshot-id", "volume-id", "status", "description", "encrypted"];

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter()
    }

    fn field(&self, filter: &str) -> Vec<&str> {
        let field = match filter {
            "snapshot-id" => self.id.as_str(),
            "volume-id" => self.volume.as_str(),
            "status" => self.state.as_str(),
            "description" => self.description.as_str(),
            "encrypted" => {
                if self.encrypted {
                    "true"
                } else {
                    "false"
                }
            }
            _unknown => return Vec::new(),
        };
        vec![field]
    }
}
