//! What the run records about checkpoints.

use spotsweep_records::workspace::TrialRef;
use spotsweep_world::ebs::View;

use super::{Seen, Watch};
use crate::run::Habits;
use crate::run::training::content::Loaded;
use crate::run::training::load::{
    CHECKPOINTS, Start, is_pointer_cut, named_step, newest_of_one_save, newest_whole, start,
};

impl Watch {
    /// The runner has sealed while the command runs. The files in `written` survive the instance, unless a save that the
    /// script `sees` overwrites them.
    pub(in crate::run) fn sealed_running(&mut self, habits: &Habits, trial: &TrialRef, written: &View, sees: &View) {
        let step = |view| match start(habits, trial.index, view) {
            Start::From(loaded) if loaded.is_intact => loaded.step,
            Start::From(_) | Start::Fails(_) | Start::Fresh => 0,
        };
        let mut held = written.clone();
        held.files.retain(|path, file| sees.files.get(path) == Some(file));
        self.at_least(trial, step(&held).min(step(sees)));
    }

    /// The command has ended and has `left` these files. The next attempt must start from their newest complete
    /// checkpoint.
    pub(in crate::run) fn sealed_at_end(&mut self, habits: &Habits, trial: &TrialRef, left: &View) {
        let step = match start(habits, trial.index, left) {
            Start::From(loaded) if loaded.is_intact => Some(loaded.step),
            // A checkpoint without its pointer is not complete.
            Start::From(_) | Start::Fails(_) if !is_pointer_cut(habits, left) => {
                newest_whole(habits, trial.index, left, CHECKPOINTS)
            }
            Start::From(_) | Start::Fails(_) | Start::Fresh => None,
        };
        self.at_least(trial, step.unwrap_or(0));
    }

    /// The next attempt must start from this step or a later one.
    pub(in crate::run) fn at_least(&mut self, trial: &TrialRef, step: u32) {
        if step > 0 {
            self.in_doubt.remove(trial);
        }
        let sealed = self.sealed.entry(trial.clone()).or_default();
        *sealed = step.max(*sealed);
    }

    /// The command was cut off while it may have written over a file that has no format. The file may be complete, but
    /// only the simulation knows that.
    pub(in crate::run) fn cut_off(&mut self, trial: &TrialRef) {
        self.in_doubt.insert(trial.clone());
    }

    /// A later sweep goes on from what is kept of the first trial.
    pub(in crate::run) fn goes_on_from_first(&mut self) {
        self.is_start_in_doubt = self.in_doubt.iter().any(|trial| trial.index == 0);
    }

    /// The runner has quarantined or otherwise changed checkpoints.
    pub(in crate::run) fn put_aside(&mut self, habits: &Habits, trial: &TrialRef, before: &View, after: &View) {
        if self.in_doubt.contains(trial) || std::mem::take(&mut self.is_start_in_doubt) {
            return;
        }
        let newest = newest_of_one_save(habits, trial.index, before);
        let left = newest_whole(habits, trial.index, after, CHECKPOINTS);
        // A script that loads what its pointer names would not start from a newer checkpoint.
        let is_named = named_step(habits, before).is_none_or(|named| newest <= Some(named));
        if newest > left && is_named {
            let what = format!("{trial}: {newest:?} was complete, {left:?} is left");
            self.is_wrong(Seen::PutAside, what);
        }
    }

    /// A training has ended after a stop signal without a save, although there was time for it.
    pub(in crate::run) fn unsaved(&mut self, trial: &TrialRef, attempt: u32, (step, saves): (u32, u32)) {
        let what = format!("{trial}: attempt {attempt} ends after step {step}, and saves step {saves} at the signal");
        self.is_wrong(Seen::Unsaved, what);
    }

    /// A complete checkpoint was quarantined because the script always fails. The trial may now start from an earlier
    /// one.
    pub(in crate::run) fn made_look_bad(&mut self, trial: &TrialRef) {
        self.before_rollback.insert(trial.clone(), self.sealed.remove(trial).unwrap_or(0));
    }

    /// That rollback was undone. The trial starts from where it would have started without it, even if the rollback
    /// went to a checkpoint of a later step, which the script's pointer did not name yet.
    pub(in crate::run) fn took_back(&mut self, trial: &TrialRef) {
        if let Some(step) = self.before_rollback.remove(trial) {
            self.sealed.insert(trial.clone(), step);
        }
    }

    /// A training starts from a checkpoint.
    pub(in crate::run) fn loaded(&mut self, trial: &TrialRef, loaded: Loaded) {
        if !loaded.is_intact {
            self.is_wrong(Seen::Mixed, format!("{trial}: step {} was never saved like this", loaded.step));
        }
    }

    /// A training has ended by itself after `step` steps.
    pub(in crate::run) fn finished(&mut self, trial: &TrialRef, step: u32) {
        self.finished.insert(trial.clone(), step);
    }

    /// The completed steps of a trial that has ended by itself.
    pub(in crate::run) fn steps_of(&self, trial: &TrialRef) -> u32 {
        self.finished.get(trial).copied().unwrap_or(0)
    }
}
