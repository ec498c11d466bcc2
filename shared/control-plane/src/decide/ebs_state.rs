//! EBS events about a volume or snapshot, which are passed on to its trial.

use super::{Decision, workspace};
use crate::event::ResourceChange;
use crate::store::View;
use spotsweep_records::workspace::Fact;

pub(super) fn changed(view: &View, id: &str, change: &ResourceChange) -> Decision {
    let of = id.to_owned();
    let fact = match change {
        ResourceChange::VolumeMade => Fact::VolumeReported { id: of, failure: None },
        ResourceChange::VolumeFailed(cause) => Fact::VolumeReported { id: of, failure: Some(cause.clone()) },
        ResourceChange::VolumeDeleted => Fact::Deleted(of),
        ResourceChange::SnapshotEnded(state) => Fact::Snapshot { operation: None, id: of, state: *state },
    };
    workspace::pass_on(view, id, &fact)
}
