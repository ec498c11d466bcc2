//! What goes wrong on demand, for as long as it is set. Faults of single calls are in `calls`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ApiError, Service, World};

/// Volumes and other devices of one instance: "28 shared" on most Nitro types (facts 27).
const ATTACHMENT_LIMIT: usize = 28;

/// Standing trouble. The default is none, within AWS's own limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trouble {
    /// Zones in which CreateVolume answers `InsufficientVolumeCapacity`.
    pub zones_without_volume_capacity: BTreeSet<String>,
    /// Most volumes of the account: beyond, CreateVolume answers `VolumeLimitExceeded`.
    pub volume_limit: Option<usize>,
    /// Most attachments of an instance, its root volume and network interface included.
    pub attachment_limit: usize,
    /// So many of the next volumes fail after CreateVolume has answered, and burn their token.
    pub failing_volumes: u32,
    /// So many of the next containers can't be started: Docker, ECR or the ECS agent fails (facts 18).
    pub failing_starts: u32,
    /// So many of the next snapshots end in `error`.
    pub failing_snapshots: u32,
    /// CreateVolume refuses any VolumeInitializationRate: its quota is used up (facts 25).
    pub refuse_initialization_rate: bool,
    /// Whether ECS leaves an instance ACTIVE on its interruption notice, as it does by default: Batch may place
    /// another job there (facts 9). Off, as `infra/compute.yaml` sets `ECS_ENABLE_SPOT_INSTANCE_DRAINING`.
    pub without_draining: bool,
    /// What was just made is not found for so long (EC2 API reference, "Eventual consistency").
    pub visible_after_ms: u64,
    /// Whether EC2's documented request buckets hold (facts 23). SubmitJob's always does.
    pub request_limits: bool,
    /// Share of calls, 0 to 1, that are throttled before they have any effect.
    pub throttle_share: BTreeMap<Service, f64>,
}

impl Default for Trouble {
    fn default() -> Self {
        Trouble {
            zones_without_volume_capacity: BTreeSet::new(),
            volume_limit: None,
            attachment_limit: ATTACHMENT_LIMIT,
            failing_volumes: 0,
            failing_starts: 0,
            failing_snapshots: 0,
            refuse_initialization_rate: false,
            without_draining: false,
            visible_after_ms: 0,
            request_limits: false,
            throttle_share: BTreeMap::new(),
        }
    }
}

impl Trouble {
    pub(super) fn visible_after(&self) -> Duration {
        Duration::from_millis(self.visible_after_ms)
    }
}

impl World {
    /// The standing trouble.
    pub fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Refuses trouble that cannot be meant.
    pub(crate) fn check_trouble(&self, trouble: &Trouble) -> Result<(), ApiError> {
        trouble.zones_without_volume_capacity.iter().try_for_each(|zone| self.check_zone(zone))?;
        match trouble.throttle_share.iter().find(|(_, share)| !(0.0..=1.0).contains(*share)) {
            Some((service, share)) => {
                let message = format!("throttle_share of {service:?} is {share}: it must lie between 0 and 1");
                Err(ApiError::ec2("InvalidParameterValue", message))
            }
            None => Ok(()),
        }
    }

    /// The standing trouble, to be changed. It holds from the next call on.
    pub fn trouble_mut(&mut self) -> &mut Trouble {
        &mut self.trouble
    }
}

/// Counts one off; `false` when none is left.
pub(super) fn take_one(left: &mut u32) -> bool {
    let hit = *left > 0;
    *left = left.saturating_sub(1);
    hit
}
