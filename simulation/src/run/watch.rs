//! What must always hold, looked at after every happening; and what is measured on the way.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep::handle::{HandleError, chain};
use spotsweep::trial::{JobStatus, Trial};
use spotsweep::workspace::TrialRef;
use spotsweep_emulator::world::World;
use spotsweep_emulator::world::ebs::VolumeState;

use super::agent::newest;
use crate::harness::Harness;

/// The Name tag of a volume that stays when its sweep has ended.
pub const BY_HAND: &str = "dl-datasets-checkpoints";

/// One attempt that went on with a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The trial.
    pub trial: u32,
    /// The attempt.
    pub attempt: u32,
    /// Availability zone.
    pub zone: String,
    /// Epochs behind it.
    pub epoch: u32,
    /// From the container's start until the workspace was mounted.
    pub waited_seconds: f64,
    /// Whether the workspace came from another zone.
    pub moved: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Watch {
    /// Every mounted attempt.
    pub resumes: Vec<Resume>,
    /// The newest sealed epoch of each trial.
    sealed: BTreeMap<TrialRef, u32>,
    /// The volumes that a runner has verified, of each trial.
    verified: BTreeMap<TrialRef, BTreeSet<String>>,
    /// Who has the workspace mounted.
    holders: BTreeMap<TrialRef, (String, u32)>,
    wrong: Vec<String>,
}

impl Watch {
    /// An invocation failed: all but what must never be is part of life.
    pub(super) fn heard(&mut self, error: &HandleError) {
        if let HandleError::Illegal(_) | HandleError::Steps = error {
            self.wrong.push(chain(error));
        }
    }

    /// Invariant 2: at most one attempt holds a trial's workspace.
    pub(super) fn mounted(&mut self, trial: &TrialRef, job: &str, attempt: u32) -> Result<(), String> {
        let held = self.holders.insert(trial.clone(), (job.to_owned(), attempt));
        held.map_or(Ok(()), |held| Err(format!("{trial}: attempt {attempt} mounts what {held:?} has mounted")))
    }

    pub(super) fn stopped(&mut self, trial: &TrialRef) {
        self.holders.remove(trial);
    }

    pub(super) fn sealed(&mut self, trial: &TrialRef, epoch: u32) {
        let held = self.sealed.entry(trial.clone()).or_default();
        *held = epoch.max(*held);
    }

    /// The runner has verified the volume and is about to say so.
    pub(super) fn verified(&mut self, trial: &TrialRef, volume: &str) {
        self.verified.entry(trial.clone()).or_default().insert(volume.to_owned());
    }

    pub(super) fn resumed(&mut self, trial: &TrialRef, attempt: u32, zone: &str, epoch: u32, waited: f64) {
        let before = self.resumes.iter().rev().find(|resume| resume.trial == trial.index);
        if let Some(before) = before.filter(|before| before.epoch > epoch) {
            self.wrong.push(format!("progress was lost: {before:?}, then attempt {attempt} from epoch {epoch}"));
        }
        let moved = before.is_some_and(|before| before.zone != zone);
        let zone = zone.to_owned();
        self.resumes.push(Resume { trial: trial.index, attempt, zone, epoch, waited_seconds: waited, moved });
    }

    /// Invariants 1 and 2, and that nothing illegal has been decided.
    pub(super) fn check(&self, harness: &Harness) -> Result<(), String> {
        if let Some(wrong) = self.wrong.first() {
            return Err(wrong.clone());
        }
        let world = harness.cloud.world();
        let mut wrong = None;
        harness.store.each_trial(|trial| {
            if !trial.is_over() && wrong.is_none() {
                wrong = self.check_trial(&world, trial).err();
            }
        });
        wrong.map_or(Ok(()), Err)
    }

    /// The source of a migration is deleted only after its copy is mounted and verified: so what was sealed always
    /// lies on a volume that some runner has held against its seal.
    fn check_trial(&self, world: &World, trial: &Trial) -> Result<(), String> {
        let of = trial.of();
        let sealed = self.sealed.get(&of).copied().unwrap_or(0);
        if sealed == 0 {
            return Ok(());
        }
        let verified = self.verified.get(&of).into_iter().flatten();
        let there = verified.filter(|id| {
            let state = world.volume(id).map(|volume| volume.state);
            matches!(state, Some(VolumeState::Available | VolumeState::InUse))
        });
        let kept = there.filter_map(|id| newest(trial.index, world.files_of_volume(id).iter())).max().unwrap_or(0);
        if kept < sealed {
            return Err(format!("{of}: epoch {sealed} was sealed, and verified volumes hold only {kept}"));
        }
        Ok(())
    }

    /// Invariant 4, and that every trial has succeeded with all of its epochs.
    pub(super) fn check_end(&self, harness: &Harness) -> Result<(), String> {
        let mut left = harness.cloud.world().leftovers();
        left.volumes.retain(|volume| volume.tags.get("Name").map(String::as_str) != Some(BY_HAND));
        if !left.is_empty() {
            return Err(format!("left over: {left:?}"));
        }
        let (_, trials) = harness.store.state();
        match trials.iter().find(|trial| trial.status != JobStatus::Succeeded) {
            Some(trial) => {
                Err(format!("trial {} has not succeeded: {:?} {:?}", trial.index, trial.status, trial.reason))
            }
            None => Ok(()),
        }
    }

    /// The trials that are not done, for an error.
    pub(super) fn open(&self, harness: &Harness) -> String {
        let (sweeps, trials) = harness.store.state();
        let open = trials.iter().filter(|trial| !trial.is_over() || !trial.is_clean());
        let show = |trial: &Trial| format!("{:?} after {}: {:#?}", trial.status, trial.ended, trial.workspace);
        let open: Vec<String> = open.map(show).collect();
        format!("sweep {:?}, trials {}", sweeps.iter().map(|sweep| &sweep.stage).collect::<Vec<_>>(), open.join("\n"))
    }
}
