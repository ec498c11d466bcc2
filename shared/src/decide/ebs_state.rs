//! EBS tells of a volume or snapshot: the trial it belongs to goes on.

use super::Decision;
use crate::event::{Event, ResourceChange};
use crate::store::View;
use crate::workspace::Fact;

pub(super) fn told(view: &View, id: &str, change: ResourceChange) -> Decision {
    if view.referring.is_empty() {
        return Decision::ignore(format!("{id} belongs to no trial here"));
    }
    let id = || id.to_owned();
    let fact = match change {
        ResourceChange::VolumeMade(made) => Fact::VolumeTold { id: id(), made },
        ResourceChange::VolumeDeleted => Fact::Deleted(id()),
        ResourceChange::SnapshotEnded(state) => Fact::Snapshot { operation: None, id: id(), state },
    };
    let decision = Decision::advance(format!("{} belongs to {} trials", id(), view.referring.len()));
    view.referring
        .iter()
        .cloned()
        .fold(decision, |decision, trial| decision.next(Event::Workspace(trial, fact.clone())))
}
