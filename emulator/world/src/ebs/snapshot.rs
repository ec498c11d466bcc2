//! The call CreateSnapshot (EC2 API reference), and how long it takes. There is no client token (fact 6).

use std::sync::Arc;
use std::time::Duration;

use super::{Snapshot, SnapshotState, Tags, VolumeOrder, VolumeState};
use crate::trouble::take_one;
use crate::{ApiError, Timer, World};

/// Most pending snapshots of one gp2 or gp3 volume (fact 24).
const MOST_PENDING: usize = 5;

/// "Wait at least 15 seconds between concurrent volume snapshots"
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>).
const BETWEEN_SNAPSHOTS: Duration = Duration::from_secs(15);

/// The parameters of CreateSnapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateSnapshot {
    /// The volume's id. It may be attached or not.
    pub volume: String,
    /// Free text.
    pub description: String,
    /// Tags of the snapshot.
    pub tags: Tags,
}

impl Snapshot {
    /// Returns the copied share, as EC2 writes it.
    pub fn progress(&self, now: jiff::Timestamp) -> String {
        let percent = match (self.state, self.completes_at) {
            (SnapshotState::Completed, _) => 100.0,
            (SnapshotState::Pending | SnapshotState::Error, None) => 0.0,
            (SnapshotState::Pending | SnapshotState::Error, Some(end)) => {
                let seconds =
                    |since: jiff::Timestamp, until: jiff::Timestamp| until.duration_since(since).as_secs_f64();
                let all = seconds(self.started_at, end).max(f64::MIN_POSITIVE);
                (100.0 * seconds(self.started_at, now) / all).clamp(0.0, 99.0).floor()
            }
        };
        format!("{percent}%")
    }
}

impl World {
    /// Takes a snapshot of the volume's present bytes. Later writes do not change it.
    ///
    /// # Errors
    /// `IncorrectState` for a volume that is neither available nor in use,
    /// `ConcurrentSnapshotLimitExceeded`, `SnapshotCreationPerVolumeRateExceeded`, `InvalidVolume.NotFound`.
    pub fn create_snapshot(&mut self, request: CreateSnapshot) -> Result<Snapshot, ApiError> {
        request.tags.check()?;
        let id = format!("snap-0{}", self.ids.hex(16));
        let volume = self.find_volume(&request.volume)?.clone();
        if !matches!(volume.state, VolumeState::Available | VolumeState::InUse) {
            let message = format!("The volume '{}' is in the '{}' state.", volume.id, volume.state.as_str());
            return Err(ApiError::ec2("IncorrectState", message));
        }
        let pending = self.ebs.snapshots.values();
        let pending = pending.filter(|s| s.volume == volume.id && s.state == SnapshotState::Pending);
        if pending.count() >= MOST_PENDING {
            let message = "Maximum allowed in-progress snapshots for a single volume exceeded.";
            return Err(ApiError::ec2("ConcurrentSnapshotLimitExceeded", message));
        }
        if self.trouble.request_limits && self.is_just_taken(&volume.id) {
            let message = "The maximum rate of concurrent snapshots for this volume has been exceeded.";
            return Err(ApiError::ec2("SnapshotCreationPerVolumeRateExceeded", message));
        }
        let mut files = volume.files.clone();
        if volume.mounted {
            // The snapshot has only what the instance has written out (EBS user guide, "Create Amazon EBS snapshots").
            Arc::make_mut(&mut files).lose(&mut self.losses);
        }
        let snapshot = Snapshot {
            id: id.clone(),
            volume: volume.id.clone(),
            volume_size_gib: volume.size_gib,
            encrypted: volume.encrypted,
            description: request.description,
            state: SnapshotState::Pending,
            started_at: self.now,
            completes_at: None,
            changed_bytes: None,
            tags: request.tags,
            visible_at: self.visible_at(),
            lineage: volume.lineage.clone(),
            files,
            fails: take_one(&mut self.trouble.failing_snapshots),
            deleted: false,
        };
        let base = self.base(&volume.lineage);
        self.ebs.snapshots.insert(id.clone(), snapshot.clone());
        if let Some(volume) = self.ebs.volumes.get_mut(&volume.id) {
            volume.lineage.push(id.clone());
        }
        let instance = volume.attachment.map(|attachment| attachment.instance);
        self.give_order(VolumeOrder::Copy { snapshot: id, volume: volume.id, base, instance });
        Ok(snapshot)
    }

    /// Whether the last snapshot of the volume is too recent. No document says whether one that is completed counts, so
    /// it does here.
    fn is_just_taken(&self, volume: &str) -> bool {
        let since = |snapshot: &Snapshot| Duration::try_from(self.now.duration_since(snapshot.started_at)).ok();
        let mut taken = self.ebs.snapshots.values().filter(|snapshot| snapshot.volume == volume);
        taken.any(|snapshot| since(snapshot).is_some_and(|since| since < BETWEEN_SNAPSHOTS))
    }

    /// Returns the latest existing snapshot that shares blocks with a volume. Only the difference to it has to be
    /// copied (fact 4).
    fn base(&self, lineage: &[String]) -> Option<String> {
        let usable = |id: &&String| self.ebs.snapshots.get(*id).is_some_and(|s| s.state != SnapshotState::Error);
        lineage.iter().rev().find(usable).cloned()
    }

    /// Continues a snapshot once its bytes are safe and the number of bytes to copy is known.
    pub(super) fn snapshot_measured(&mut self, id: &str, outcome: Result<u64, String>) {
        let timings = self.settings.timings;
        let now = self.now;
        let Some(snapshot) = self.ebs.snapshots.get_mut(id) else { return };
        let changed = match outcome {
            Ok(changed) => changed,
            Err(cause) => return self.fail_snapshot(id, &cause),
        };
        snapshot.changed_bytes = Some(changed);
        if snapshot.state != SnapshotState::Pending {
            return;
        }
        let copy = Duration::from_secs_f64(changed as f64 / timings.snapshot_bytes_per_second.max(1) as f64);
        let duration = (timings.snapshot_base + copy).max(self.copied_before(id) + copy);
        if let Some(snapshot) = self.ebs.snapshots.get_mut(id) {
            snapshot.completes_at = now.saturating_add(duration).ok();
        }
        self.after(duration, Timer::SnapshotDone { snapshot: id.to_owned() });
    }

    /// Returns how long earlier snapshots of the same volume are still being copied. No document says how pending
    /// snapshots of a volume share its throughput. A later one refers to blocks of the earlier one, so it is copied
    /// after that here.
    fn copied_before(&self, id: &str) -> Duration {
        let of = self.ebs.snapshots.get(id).map(|snapshot| snapshot.volume.as_str());
        let pending = self.ebs.snapshots.values();
        let pending = pending.filter(|other| other.id != id && Some(other.volume.as_str()) == of);
        let ends = pending.filter(|other| other.state == SnapshotState::Pending).filter_map(|other| other.completes_at);
        let left = ends.map(|end| Duration::try_from(end.duration_since(self.now)).unwrap_or_default());
        left.max().unwrap_or_default()
    }

    pub(crate) fn snapshot_done(&mut self, id: &str) {
        let Some(snapshot) = self.ebs.snapshots.get_mut(id) else { return };
        if snapshot.deleted {
            self.remove_snapshot(id);
        } else if snapshot.state == SnapshotState::Pending && snapshot.fails {
            self.fail_snapshot(id, "The snapshot could not be created.");
        } else if snapshot.state == SnapshotState::Pending {
            snapshot.state = SnapshotState::Completed;
            self.emit_snapshot(id, "succeeded", "");
        }
    }

    pub(super) fn fail_snapshot(&mut self, id: &str, cause: &str) {
        let Some(snapshot) = self.ebs.snapshots.get_mut(id) else { return };
        snapshot.state = SnapshotState::Error;
        snapshot.completes_at = None;
        if snapshot.deleted {
            self.remove_snapshot(id);
        } else {
            self.emit_snapshot(id, "failed", cause);
        }
    }
}
