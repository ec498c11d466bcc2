//! Standing faults, which last as long as they are set. Faults of single calls are in `calls`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::instance::Defect;
use super::{ApiError, Service, World};

/// The limit for volumes and other devices of one instance: "28 shared" on most Nitro types (fact 27).
const ATTACHMENT_LIMIT: usize = 28;

/// Standing faults. By default there are none, and an instance has AWS's limit of attachments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trouble {
    /// Zones in which CreateVolume is refused with `InsufficientVolumeCapacity`.
    pub zones_without_volume_capacity: BTreeSet<String>,
    /// Most volumes of the account. After that CreateVolume is refused with `VolumeLimitExceeded`.
    pub volume_limit: Option<usize>,
    /// Most attachments of an instance, including its root volume and network interface.
    pub attachment_limit: usize,
    /// How many of the next volumes fail after CreateVolume has answered, and use up their token.
    pub failing_volumes: u32,
    /// How many of the next containers cannot be started, because Docker, ECR or the ECS agent fails (fact 18).
    pub failing_starts: u32,
    /// How many of the next instances cannot train, because their GPU does not answer.
    pub defective_instances: u32,
    /// How many of the next instances fail each training at once, while nothing else shows it.
    pub failing_instances: u32,
    /// How many of the next snapshots end in `error`.
    pub failing_snapshots: u32,
    /// Whether CreateVolume refuses any VolumeInitializationRate, because its quota is used up (fact 25).
    pub refuse_initialization_rate: bool,
    /// Whether ECS leaves an instance ACTIVE after its interruption notice, as it does by default, so that Batch may
    /// place another job there (fact 9). It is off by default, because `infra/compute.yaml` sets
    /// `ECS_ENABLE_SPOT_INSTANCE_DRAINING`.
    pub without_draining: bool,
    /// Whether FIS lacks the action that interrupts Spot instances, as it does in some regions (fact 33).
    pub without_fis_action: bool,
    /// Whether FIS sends the notice at the end of its duration, so that the instance runs for two minutes more. AWS's
    /// page can be read both ways (fact 33).
    pub late_fis_warnings: bool,
    /// vCPUs of Spot instances that the account's quota allows; `None` for no limit.
    pub spot_vcpus: Option<u32>,
    /// Milliseconds from an attachment or a detachment until udev changes the links to the disks of an instance (fact
    /// 59).
    pub links_lag_ms: u64,
    /// Milliseconds for which a new resource is not found (EC2 API reference, "Eventual consistency").
    pub visible_after_ms: u64,
    /// Whether EC2's documented request limits hold (fact 23). That of SubmitJob always does.
    pub request_limits: bool,
    /// Actions that are denied (with `UnauthorizedOperation` by EC2, and `AccessDeniedException` by others). They are
    /// denied for so many milliseconds from their first call, as before a grant is in force, or for good.
    pub denied: BTreeMap<String, Option<u64>>,
    /// For how many milliseconds from the first CreateVolume the account has as many volumes as it may have.
    pub quota_full_ms: u64,
    /// Share of EC2 calls, 0 to 1, that are refused for a temporary reason: a quota, a wrong state.
    pub refused_share: f64,
    /// Whether EC2 answers `UnauthorizedOperation` if a resource is gone, because a policy with a condition on its tags
    /// cannot match.
    pub gone_is_denied: bool,
    /// Whether the KMS key of volumes is disabled, so that each volume fails after CreateVolume has answered.
    pub unusable_key: bool,
    /// Share of attempts, 0 to 1, that end with their instance without the status reason "Host EC2".
    pub unnamed_ends: f64,
    /// Whether NVIDIA's runtime has its mode `legacy`, in which containers have the UUIDs of their GPUs in
    /// `NVIDIA_VISIBLE_DEVICES`. If it is off, as on AWS's images since 6 February 2026, the variable is `void` (fact
    /// 57).
    pub legacy_nvidia_runtime: bool,
    /// Whether ECS does not report which GPUs it has assigned.
    pub unnamed_gpus: bool,
    /// Whether Batch reports a job as STARTING before it reports the instance.
    pub unplaced_starts: bool,
    /// Most milliseconds by which an answer of DescribeVolumes, DescribeSnapshots and DescribeJobs lags behind.
    pub lag_ms: u64,
    /// Share of calls, 0 to 1, that are throttled before they have any effect, by service.
    pub throttle_share: BTreeMap<Service, f64>,
    /// Instance types, with the zones that do not offer them.
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
    /// Returns the defect of the next instance.
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
    /// Returns the standing faults.
    pub fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Returns an error for faults with invalid values.
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

    /// Returns the standing faults, to be changed. Changes hold from the next call on.
    pub fn trouble_mut(&mut self) -> &mut Trouble {
        &mut self.trouble
    }
}

/// Counts down by one. Returns `false` if none is left.
pub(super) fn take_one(left: &mut u32) -> bool {
    let hit = *left > 0;
    *left = left.saturating_sub(1);
    hit
}
