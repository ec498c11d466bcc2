//! What goes wrong on demand, for as long as it is set. Faults of single calls are in `calls`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::instance::Defect;
use super::{ApiError, Service, World};

/// Volumes and other devices of one instance: "28 shared" on most Nitro types (fact 27).
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
    /// So many of the next containers can't be started: Docker, ECR or the ECS agent fails (fact 18).
    pub failing_starts: u32,
    /// So many of the next instances cannot train: their GPU does not answer.
    pub defective_instances: u32,
    /// So many of the next instances fail each training at once, and nothing else shows it.
    pub failing_instances: u32,
    /// So many of the next snapshots end in `error`.
    pub failing_snapshots: u32,
    /// CreateVolume refuses any VolumeInitializationRate: its quota is used up (fact 25).
    pub refuse_initialization_rate: bool,
    /// Whether ECS leaves an instance ACTIVE on its interruption notice, as it does by default: Batch may place
    /// another job there (fact 9). Off, as `infra/compute.yaml` sets `ECS_ENABLE_SPOT_INSTANCE_DRAINING`.
    pub without_draining: bool,
    /// Whether FIS lacks the action that interrupts Spot instances, as in some regions (fact 33).
    pub without_fis_action: bool,
    /// Whether FIS warns at the end of its duration, so that the instance lives for two minutes more. AWS's page can be
    /// read both ways (fact 33).
    pub late_fis_warnings: bool,
    /// vCPUs of Spot instances that the account's quota allows; none means no limit.
    pub spot_vcpus: Option<u32>,
    /// How long after an attachment or a detachment udev changes the links to the disks of an instance (fact 59).
    pub links_lag_ms: u64,
    /// What was just made is not found for so long (EC2 API reference, "Eventual consistency").
    pub visible_after_ms: u64,
    /// Whether EC2's documented request buckets hold (fact 23). SubmitJob's always does.
    pub request_limits: bool,
    /// Actions that are denied (`UnauthorizedOperation` of EC2, else `AccessDeniedException`): for so many milliseconds from their first call, as while
    /// a grant is on its way, or for good.
    pub denied: BTreeMap<String, Option<u64>>,
    /// The account has as many volumes as it may have, for so many milliseconds from the first CreateVolume.
    pub quota_full_ms: u64,
    /// Share of EC2 calls, 0 to 1, that are refused for a reason that passes: a quota, a wrong state.
    pub refused_share: f64,
    /// Whether EC2 answers `UnauthorizedOperation` where a resource is gone: a policy that names its tags cannot match.
    pub gone_is_denied: bool,
    /// Whether the KMS key of volumes is disabled: each fails after CreateVolume has answered.
    pub unusable_key: bool,
    /// Share of attempts, 0 to 1, that end with their instance and of which Batch does not say "Host EC2".
    pub unnamed_ends: f64,
    /// Whether NVIDIA's runtime has its mode `legacy`: then containers have the UUIDs of their GPUs in
    /// `NVIDIA_VISIBLE_DEVICES`. Off, as on AWS's images since 6 February 2026: it is `void` (fact 57).
    pub legacy_nvidia_runtime: bool,
    /// Whether ECS does not say which GPUs it has assigned.
    pub unnamed_gpus: bool,
    /// Whether Batch's job is STARTING before it says on which instance.
    pub unplaced_starts: bool,
    /// Longest time by which an answer of DescribeVolumes, DescribeSnapshots and DescribeJobs lags behind.
    pub lag_ms: u64,
    /// Share of calls, 0 to 1, that are throttled before they have any effect.
    pub throttle_share: BTreeMap<Service, f64>,
    /// Instance types, and the zones that do not have them.
    pub types_not_offered: BTreeMap<String, BTreeSet<String>>,
    /// vCPUs that the account may have, by the code of the quota.
    pub vcpu_quotas: BTreeMap<String, f64>,
}

impl Default for Trouble {
    fn default() -> Self {
        Trouble {
            zones_without_volume_capacity: BTreeSet::new(),
            volume_limit: None,
            attachment_limit: ATTACHMENT_LIMIT,
            failing_volumes: 0,
            failing_starts: 0,
            defective_instances: 0,
            failing_instances: 0,
            failing_snapshots: 0,
            refuse_initialization_rate: false,
            without_draining: false,
            without_fis_action: false,
            late_fis_warnings: false,
            spot_vcpus: None,
            links_lag_ms: 0,
            visible_after_ms: 0,
            request_limits: false,
            denied: BTreeMap::new(),
            quota_full_ms: 0,
            refused_share: 0.0,
            gone_is_denied: false,
            unusable_key: false,
            unnamed_ends: 0.0,
            legacy_nvidia_runtime: false,
            unnamed_gpus: false,
            unplaced_starts: false,
            lag_ms: 0,
            throttle_share: BTreeMap::new(),
            types_not_offered: BTreeMap::new(),
            vcpu_quotas: BTreeMap::new(),
        }
    }
}

impl Trouble {
    /// What is wrong with the next instance.
    pub(super) fn next_defect(&mut self) -> Option<Defect> {
        if take_one(&mut self.defective_instances) {
            return Some(Defect::Visible);
        }
        take_one(&mut self.failing_instances).then_some(Defect::Hidden)
    }

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
    pub fn check_trouble(&self, trouble: &Trouble) -> Result<(), ApiError> {
        trouble.zones_without_volume_capacity.iter().try_for_each(|zone| self.check_zone(zone))?;
        trouble.types_not_offered.values().flatten().try_for_each(|zone| self.check_zone(zone))?;
        let throttled =
            trouble.throttle_share.iter().map(|(service, share)| (format!("throttle_share of {service:?}"), *share));
        let others = [("refused_share", trouble.refused_share), ("unnamed_ends", trouble.unnamed_ends)];
        let mut shares = throttled.chain(others.map(|(name, share)| (name.to_owned(), share)));
        match shares.find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((name, share)) => {
                let message = format!("{name} is {share}: it must lie between 0 and 1");
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
