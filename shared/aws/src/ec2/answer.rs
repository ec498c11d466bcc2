//! Maps EC2's descriptions of volumes, snapshots and instances. A state that EC2 leaves out is empty.

use aws_sdk_ec2::types::{
    self, InstanceStatusSummary, SnapshotState, VolumeAttachment, VolumeAttachmentState, VolumeState,
};
use jiff::Timestamp;
use spotsweep_control_plane::calls::{
    Attachment, Instance, InstanceStatus, InstanceTypeInfo, Snapshot, SpotPriceRow, Volume,
};

pub(super) fn volume(found: types::Volume) -> Option<Volume> {
    Some(Volume {
        zone: found.availability_zone,
        size_gib: found.size.and_then(|size| u32::try_from(size).ok()),
        tags: found.tags.unwrap_or_default().into_iter().filter_map(|tag| Some((tag.key?, tag.value?))).collect(),
        ..new_volume(found.volume_id?, found.state.as_ref(), found.attachments.unwrap_or_default())
    })
}

/// Maps the answer of CreateVolume, of which nothing else is used.
pub(super) fn new_volume(id: String, state: Option<&VolumeState>, attachments: Vec<VolumeAttachment>) -> Volume {
    let attachments = attachments.into_iter().map(|found| attachment(found.instance_id, found.state.as_ref()));
    let state = word(state.map(VolumeState::as_str));
    Volume { id, state, attachments: attachments.collect(), ..Volume::default() }
}

pub(super) fn attachment(instance: Option<String>, state: Option<&VolumeAttachmentState>) -> Attachment {
    Attachment { instance, state: word(state.map(VolumeAttachmentState::as_str)) }
}

pub(super) fn snapshot(found: types::Snapshot) -> Option<Snapshot> {
    Some(Snapshot {
        volume_size_gib: found.volume_size.and_then(|size| u32::try_from(size).ok()),
        full_bytes: found.full_snapshot_size_in_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        ..new_snapshot(found.snapshot_id?, found.state.as_ref())
    })
}

/// Maps the answer of CreateSnapshot, of which nothing else is used.
pub(super) fn new_snapshot(id: String, state: Option<&SnapshotState>) -> Snapshot {
    Snapshot { id, state: word(state.map(SnapshotState::as_str)), ..Snapshot::default() }
}

pub(super) fn instance(found: &types::Instance) -> Instance {
    let state = found.state.as_ref().and_then(|state| state.name());
    Instance { state: word(state.map(types::InstanceStateName::as_str)) }
}

pub(super) fn instance_status(found: &types::InstanceStatus) -> InstanceStatus {
    let summary = |found: Option<&InstanceStatusSummary>| {
        word(found.and_then(|found| found.status()).map(types::SummaryStatus::as_str))
    };
    let state = found.instance_state().and_then(|state| state.name());
    InstanceStatus {
        state: word(state.map(types::InstanceStateName::as_str)),
        system: summary(found.system_status()),
        instance: summary(found.instance_status()),
    }
}

/// Disks without NVMe, which some older types have, are left out.
pub(super) fn instance_type(found: &types::InstanceTypeInfo) -> Option<InstanceTypeInfo> {
    let storage = found.instance_storage_info();
    let nvme = storage.filter(|found| found.nvme_support() != Some(&types::EphemeralNvmeSupport::Unsupported));
    let gpus = found.gpu_info().map(types::GpuInfo::gpus).unwrap_or_default().iter();
    Some(InstanceTypeInfo {
        gpus: gpus.filter_map(|gpu| u32::try_from(gpu.count()?).ok()).sum(),
        name: found.instance_type()?.as_str().to_owned(),
        nvme_gb: nvme.and_then(|found| found.total_size_in_gb()).and_then(|gb| u64::try_from(gb).ok()),
    })
}

pub(super) fn spot_price(found: types::SpotPrice) -> Option<SpotPriceRow> {
    Some(SpotPriceRow {
        instance_type: found.instance_type?.as_str().to_owned(),
        zone: found.availability_zone?,
        from: Timestamp::from_second(found.timestamp?.secs()).ok()?,
        usd: found.spot_price?,
    })
}

fn word(state: Option<&str>) -> String {
    state.unwrap_or_default().to_owned()
}
