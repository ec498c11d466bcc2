//! What was seen of checkpoints.

use spotsweep_records::workspace::TrialRef;
use spotsweep_world::ebs::View;

use super::{Seen, Watch};
use crate::run::Habits;
use crate::run::training::content::Loaded;
use crate::run::training::load::{CHECKPOINTS, Start, is_pointer_cut, named_step, newest_whole, start};

impl Watch {
    /// The runner has sealed while the command runs: what is `written` out then survives the instance. What the script
    /// `sees` may be a save that writes over it.
    pub(in crate::run) fn sealed_running(&mut self, habits: &Habits, trial: &TrialRef, written: &View, sees: &View) {
        let step = |view| match start(habits, trial.index, view) {
            Start::From(loaded) if loaded.is_intact => loaded.step,
            Start::From(_) | Start::Fails(_) | Start::Fresh => 0,
        };
        self.at_least(trial, step(written).min(step(sees)));
    }

    /// The command has ended and `left` this: the newest complete checkpoint of it is the next attempt's.
    pub(in crate::run) fn sealed_at_end(&mut self, habits: &Habits, trial: &TrialRef, left: &View) {
        let step = match start(habits, trial.index, left) {
            Start::From(loaded) if loaded.is_intact => Some(loaded.step),
            // Without the pointer that belongs to it a checkpoint is not complete.
            Start::From(_) | Start::Fails(_) if !is_pointer_cut(habits, left) => {
                newest_whole(habits, trial.index, left, CHECKPOINTS)
            }
            Start::From(_) | Start::Fails(_) | Start::Fresh => None,
        };
        self.at_least(trial, step.unwrap_or(0));
    }

    /// The next attempt starts from this step or a later one.
    pub(in crate::run) fn at_least(&mut self, trial: &TrialRef, step: u32) {
        let sealed = self.sealed.entry(trial.clone()).or_default();
        *sealed = step.max(*sealed);
    }

    /// The runner has put checkpoints aside, or has changed them in another way.
    pub(in crate::run) fn put_aside(&mut self, habits: &Habits, trial: &TrialRef, before: &View, after: &View) {
        let newest = |view| newest_whole(habits, trial.index, view, CHECKPOINTS);
        // A script that loads what its pointer names would not have started from a newer one.
        let is_named = named_step(habits, before).is_none_or(|named| newest(before) <= Some(named));
        if newest(before) > newest(after) && is_named {
            let what = format!("{trial}: {:?} was complete, {:?} is left", newest(before), newest(after));
            self.is_wrong(Seen::PutAside, what);
        }
    }

    /// A training has ended after a stop signal without the save for which there was time.
    pub(in crate::run) fn unsaved(&mut self, trial: &TrialRef, attempt: u32, (step, saves): (u32, u32)) {
        let what = format!("{trial}: attempt {attempt} ends after step {step}, and saves step {saves} at the signal");
        self.is_wrong(Seen::Unsaved, what);
    }

    /// A good checkpoint was put aside because the script fails whatever it starts from: the trial may start before it.
    pub(in crate::run) fn made_look_bad(&mut self, trial: &TrialRef) {
        self.sealed.remove(trial);
    }

    /// A training starts from a checkpoint.
    pub(in crate::run) fn loaded(&mut self, trial: &TrialRef, loaded: Loaded) {
        if !loaded.is_intact {
            self.is_wrong(Seen::Mixed, format!("{trial}: step {} was never saved like this", loaded.step));
        }
    }

    /// A training has ended by itself after `step`.
    pub(in crate::run) fn finished(&mut self, trial: &TrialRef, step: u32) {
        self.finished.insert(trial.clone(), step);
    }

    /// The steps behind a trial that has ended by itself.
    pub(in crate::run) fn steps_of(&self, trial: &TrialRef) -> u32 {
        self.finished.get(trial).copied().unwrap_or(0)
    }
}
