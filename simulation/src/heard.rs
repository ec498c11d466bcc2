//! What was decided, for whoever wants to know: which pairs of state and event a run has met, and what a trial lived
//! through.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spotsweep_control_plane::event::{Event, Subject};
use spotsweep_control_plane::store::View;

/// How often an event was decided in a state: `(stage, event)`.
pub type Coverage = BTreeMap<(&'static str, &'static str), u64>;

/// Listens to decisions; does nothing until it is asked to.
#[derive(Debug, Default)]
pub struct Heard {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    coverage: Option<Coverage>,
    events: Option<Vec<Event>>,
}

impl Heard {
    /// From now on counts pairs of a workspace's stage and an event.
    pub fn count(&self) {
        self.lock().coverage.get_or_insert_default();
    }

    /// The pairs so far.
    pub fn coverage(&self) -> Coverage {
        self.lock().coverage.clone().unwrap_or_default()
    }

    /// From now on keeps every event.
    pub fn keep(&self) {
        self.lock().events.get_or_insert_default();
    }

    /// The events since this was last asked.
    pub fn take(&self) -> Vec<Event> {
        self.lock().events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn hear(&self, view: &View, event: &Event) {
        let mut kept = self.lock();
        if kept.coverage.is_none() && kept.events.is_none() {
            return;
        }
        let is_of_trial = matches!(event.subject(), Some(Subject::Trial(..)));
        if let Some(coverage) = kept.coverage.as_mut().filter(|_| is_of_trial) {
            let workspace = view.trial.as_ref().and_then(|held| held.record.workspace.as_ref());
            let stage = workspace.map_or("absent", |workspace| workspace.stage.name());
            *coverage.entry((stage, event.name())).or_default() += 1;
        }
        if let Some(events) = &mut kept.events {
            events.push(event.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
