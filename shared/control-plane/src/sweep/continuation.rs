//! What a sweep goes on from: snapshots that are kept of other trials.

use std::sync::Arc;

use super::{Plan, Sweep};
use crate::workspace::Origin;
use spotsweep_protocol::ids::SweepId;

/// Snapshots that a plan names.
pub fn named(plan: &Plan) -> &[String] {
    match plan.workspace.as_ref().map(|workspace| &workspace.origin) {
        Some(Origin::Snapshots { snapshots }) => snapshots,
        Some(Origin::Snapshot { snapshot }) => std::slice::from_ref(snapshot),
        Some(Origin::Blank | Origin::Adopted { .. }) | None => &[],
    }
}

/// Some of the snapshots that a sweep names, and how many of them are kept for it.
#[derive(Debug, Clone)]
pub struct Continuation {
    /// The sweep.
    pub sweep: SweepId,
    /// The place of the first of them in the sweep's plan.
    pub first: u32,
    /// They themselves.
    pub snapshots: Arc<[String]>,
    /// How many of them are kept for the sweep.
    pub kept: usize,
}

/// Snapshots between two commits of the sweep: what an invocation that dies leaves is repeated from the last one. Each
/// takes about five calls of the table, so these take some seconds.
const PAGE: usize = 100;

impl Continuation {
    /// Those that a sweep keeps next, from the one at that place of its plan on.
    pub fn page(sweep: &Sweep, first: u32) -> Self {
        let named = sweep.plan.as_ref().map_or(&[][..], named);
        let snapshots = named.iter().skip(first as usize).take(PAGE).cloned().collect();
        Self { sweep: sweep.id.clone(), first, snapshots, kept: 0 }
    }

    /// The place of the snapshot after them.
    pub fn after(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.snapshots.len()).unwrap_or(u32::MAX))
    }

    /// The snapshot that is next; `None` where all are kept.
    pub fn next(&self) -> Option<&str> {
        self.snapshots.get(self.kept).map(String::as_str)
    }

    /// The same with one more that is kept.
    #[must_use]
    pub fn with_next(&self) -> Self {
        Self { kept: self.kept + 1, ..self.clone() }
    }
}
