//! The call CreateVolume (EC2 API reference), and the states of the new volume.

use std::sync::Arc;
use std::time::Duration;

use super::token::Verdict;
use super::{CreateVolume, SnapshotState, Volume, VolumeOrder, VolumeState};
use crate::trouble::take_one;
use crate::{ApiError, Timer, World};

const MIB: u64 = 1 << 20;
/// The limit of gp3 since 2025-09 (EBS user guide, "General Purpose SSD volumes").
const LARGEST_GP3_GIB: u32 = 65_536;
const LARGEST_GP2_GIB: u32 = 16_384;
/// The possible rates in MiB/s (fact 25).
const INITIALIZATION_RATES: std::ops::RangeInclusive<u32> = 100..=300;
/// How long a volume whose creation failed stays visible. It is removed soon: aws-ebs-csi-driver issues 1951 and 3010
/// got `InvalidVolume.NotFound` next.
const ERROR_KEPT: Duration = Duration::from_secs(5);

/// The properties that a new volume takes from its snapshot.
struct Origin {
    id: String,
    size_gib: u32,
    encrypted: bool,
    lineage: Vec<String>,
    files: Arc<super::FileSystem>,
}

impl World {
    /// Creates a volume, or returns the one that the same token has created before.
    ///
    /// # Errors
    /// EC2's codes for invalid parameters, snapshots that are missing or pending (fact 7), tokens, capacity and limits.
    pub fn create_volume(&mut self, request: CreateVolume) -> Result<Volume, ApiError> {
        check_parameters(&request)?;
        match self.token_verdict(&request)? {
            Verdict::Known(id) => self.find_known(&id),
            Verdict::New => self.make_volume(request),
        }
    }

    fn find_known(&self, id: &str) -> Result<Volume, ApiError> {
        self.volume(id).cloned().ok_or_else(super::token::resource_deleted)
    }

    fn make_volume(&mut self, request: CreateVolume) -> Result<Volume, ApiError> {
        self.check_zone(&request.zone)?;
        let origin = request.snapshot.clone().map(|id| self.origin(id)).transpose()?;
        let size_gib = size(&request, origin.as_ref())?;
        self.check_volume_limits(&request)?;
        let id = format!("vol-0{}", self.ids.hex(16));
        let token = request.client_token.clone();
        let mut lineage = origin.as_ref().map(|origin| origin.lineage.clone()).unwrap_or_default();
        lineage.extend(request.snapshot.clone());
        let volume = Volume {
            id: id.clone(),
            zone: request.zone.clone(),
            size_gib,
            volume_type: request.volume_type.clone().unwrap_or_else(|| "gp2".into()),
            encrypted: request.encrypted || origin.as_ref().is_some_and(|origin| origin.encrypted),
            snapshot: request.snapshot.clone(),
            initialization_rate: request.initialization_rate,
            created_at: self.now,
            initialized_at: None,
            state: VolumeState::Creating,
            attachment: None,
            mounted: false,
            tags: request.tags.clone(),
            visible_at: self.visible_at(),
            lineage,
            files: origin.as_ref().map(|origin| origin.files.clone()).unwrap_or_default(),
            fails: self.trouble.unusable_key || take_one(&mut self.trouble.failing_volumes),
        };
        self.ebs.volumes.insert(id.clone(), volume.clone());
        if let Some(token) = token {
            self.remember_token(token, request, &id);
        }
        self.give_order(VolumeOrder::Make { volume: id, size_gib, from: origin.map(|origin| origin.id) });
        Ok(volume)
    }

    fn origin(&mut self, id: String) -> Result<Origin, ApiError> {
        let snapshot = self.find_snapshot(&id)?;
        match snapshot.state {
            SnapshotState::Completed => Ok(Origin {
                id,
                size_gib: snapshot.volume_size_gib,
                encrypted: snapshot.encrypted,
                lineage: snapshot.lineage.clone(),
                files: snapshot.files.clone(),
            }),
            state @ (SnapshotState::Pending | SnapshotState::Error) => {
                let message = format!("Snapshot is in invalid state - {}", state.as_str());
                Err(ApiError::ec2("IncorrectState", message))
            }
        }
    }

    fn check_volume_limits(&self, request: &CreateVolume) -> Result<(), ApiError> {
        let (code, message) = if self.trouble.volume_limit.is_some_and(|limit| self.ebs.volumes.len() >= limit) {
            ("VolumeLimitExceeded", "Maximum number of volumes exceeded.".to_owned())
        } else if self.trouble.zones_without_volume_capacity.contains(&request.zone) {
            let zone = &request.zone;
            ("InsufficientVolumeCapacity", format!("There is not enough capacity for the volume in zone {zone}."))
        } else if self.trouble.refuse_initialization_rate && request.initialization_rate.is_some() {
            // No document names the code of this refusal. This is EC2's code for limits without a code of their own,
            // and a caller has to give up the rate after any code.
            let message = "The quota of cumulative volume initialization rates is exceeded.";
            ("ResourceLimitExceeded", message.to_owned())
        } else {
            return Ok(());
        };
        Err(ApiError::ec2(code, message))
    }

    /// Continues a creation once the volume's bytes are in place.
    pub(super) fn volume_made(&mut self, id: &str, outcome: Result<u64, String>) {
        let timings = self.settings.timings;
        let now = self.now;
        let Some(volume) = self.ebs.volumes.get_mut(id) else { return };
        volume.fails |= outcome.is_err();
        let rate = volume.initialization_rate.map(|mib| u64::from(mib) * MIB);
        let rate = rate.unwrap_or(timings.initialization_bytes_per_second).max(1);
        if let (Some(_), Ok(bytes)) = (&volume.snapshot, outcome) {
            let load = Duration::from_secs_f64(bytes as f64 / rate as f64);
            volume.initialized_at = now.saturating_add(timings.create_volume + load).ok();
        }
        self.after(timings.create_volume, Timer::VolumeReady { volume: id.to_owned() });
    }

    /// Ends the state `creating`.
    pub(crate) fn volume_ready(&mut self, id: &str) {
        let Some(volume) = self.ebs.volumes.get_mut(id).filter(|v| v.state == VolumeState::Creating) else { return };
        if volume.fails {
            volume.state = VolumeState::Error;
            let cause = match self.trouble.unusable_key {
                true => format!("{} is disabled.", self.arn("kms", "key/01234567-0123-0123-0123-0123456789ab")),
                false => "The volume could not be created.".to_owned(),
            };
            self.emit_volume(id, "createVolume", "failed", &cause);
            self.order_removal(id);
            self.after(ERROR_KEPT, Timer::VolumeGone { volume: id.to_owned() });
        } else {
            volume.state = VolumeState::Available;
            self.emit_volume(id, "createVolume", "available", "");
        }
    }
}

fn check_parameters(request: &CreateVolume) -> Result<(), ApiError> {
    let invalid = |message: String| Err(ApiError::ec2("InvalidParameterValue", message));
    if request.zone.is_empty() {
        return Err(ApiError::ec2("MissingParameter", "The request must contain the parameter AvailabilityZone"));
    }
    if request.size_gib.is_none() && request.snapshot.is_none() {
        return Err(ApiError::ec2("MissingParameter", "The request must contain the parameter size/snapshot"));
    }
    let largest = match request.volume_type.as_deref() {
        None | Some("gp2") => LARGEST_GP2_GIB,
        Some("gp3") => LARGEST_GP3_GIB,
        Some(other) => return invalid(format!("Volume type {other} is not emulated by spotsweep-emulator: use gp3.")),
    };
    if let Some(size) = request.size_gib.filter(|size| !(1..=largest).contains(size)) {
        return invalid(format!("Volume of {size}GiB is not between 1GiB and {largest}GiB."));
    }
    if request.client_token.as_ref().is_some_and(|token| token.len() > 64 || !token.is_ascii()) {
        return invalid("Client token must be less than or equal to 64 characters".into());
    }
    match request.initialization_rate {
        Some(_) if request.snapshot.is_none() => {
            let message = "The parameter VolumeInitializationRate requires the parameter SnapshotId";
            Err(ApiError::ec2("InvalidParameterCombination", message))
        }
        Some(rate) if !INITIALIZATION_RATES.contains(&rate) => {
            invalid(format!("Volume initialization rate of {rate} MiB/s is not between 100 and 300 MiB/s."))
        }
        Some(_) | None => request.tags.check(),
    }
}

fn size(request: &CreateVolume, origin: Option<&Origin>) -> Result<u32, ApiError> {
    let least = origin.map_or(1, |origin| origin.size_gib);
    match request.size_gib {
        Some(size) if size < least => {
            let message = format!("Volume of {size}GiB is smaller than its snapshot, expect size >= {least}GiB");
            Err(ApiError::ec2("InvalidParameterValue", message))
        }
        Some(size) => Ok(size),
        None => Ok(least),
    }
}
