//! Records decisions: which pairs of state and input a run has met, and which inputs a trial had.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spotsweep_control_plane::input::{Input, Subject};
use spotsweep_control_plane::store::View;

/// Number of decisions about an input in a stage: `(stage, input)`.
pub type Coverage = BTreeMap<(&'static str, &'static str), u64>;

/// Records decisions once `count` or `keep` is called.
#[derive(Debug, Default)]
pub struct DecisionLog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    coverage: Option<Coverage>,
    inputs: Option<Vec<Input>>,
}

impl DecisionLog {
    /// From now on counts the pairs of a workspace's stage and an input.
    pub fn count(&self) {
        self.lock().coverage.get_or_insert_default();
    }

    /// The pairs counted so far.
    pub fn coverage(&self) -> Coverage {
        self.lock().coverage.clone().unwrap_or_default()
    }

    /// From now on keeps every input.
    pub fn keep(&self) {
        self.lock().inputs.get_or_insert_default();
    }

    /// Removes and returns the inputs kept so far.
    pub fn take(&self) -> Vec<Input> {
        self.lock().inputs.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn record(&self, view: &View, input: &Input) {
        let mut kept = self.lock();
        if kept.coverage.is_none() && kept.inputs.is_none() {
            return;
        }
        let about = input.about();
        let is_of_trial = matches!(about.subject, Some(Subject::Trial(..) | Subject::Comparison(..)));
        if let Some(coverage) = kept.coverage.as_mut().filter(|_| is_of_trial) {
            let workspace = view.trial.as_ref().and_then(|held| held.record.workspace.as_ref());
            let stage = workspace.map_or("absent", |workspace| workspace.stage.name());
            *coverage.entry((stage, about.name)).or_default() += 1;
        }
        if let Some(inputs) = &mut kept.inputs {
            inputs.push(input.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
