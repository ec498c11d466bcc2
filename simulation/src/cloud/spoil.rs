//! What a planted defect does to calls.

use spotsweep_control_plane::workspace::{Call, Fact, NewVolume, TRIAL_TAG, TrialRef};
use spotsweep_world::ebs::SnapshotState;

use super::Cloud;
use crate::injected_bug::InjectedBug;

impl Cloud {
    /// The planted defect does its work: answers in place of a call, or changes it.
    pub(super) fn spoil(&self, trial: &TrialRef, call: &mut Call) -> Option<Fact> {
        match (self.injected_bug()?, call) {
            (InjectedBug::KeepEverything, Call::DeleteVolume(id) | Call::DeleteSnapshot(id)) => {
                Some(Fact::Deleted(id.clone()))
            }
            (InjectedBug::DeleteSourceEarly, Call::CreateVolume(NewVolume { snapshot: Some(from), .. })) => {
                let mut world = self.world();
                let source = world.snapshot_of(from).map(|snapshot| snapshot.volume.clone()).unwrap_or_default();
                // Already gone where the call is repeated.
                let _ = world.delete_volume(&source);
                None
            }
            (InjectedBug::CopyOldSnapshot, Call::CreateVolume(NewVolume { snapshot: Some(from), .. })) => {
                let world = self.world();
                let ours = world.snapshots().filter(|snapshot| {
                    snapshot.tags.0.get(TRIAL_TAG) == Some(&trial.index.to_string())
                        && snapshot.state == SnapshotState::Completed
                });
                if let Some(oldest) = ours.min_by_key(|snapshot| snapshot.started_at) {
                    from.clone_from(&oldest.id);
                }
                None
            }
            _elsewhere => None,
        }
    }
}
