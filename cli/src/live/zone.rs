//! What runs in each zone.

use std::collections::{BTreeMap, BTreeSet};

use spotsweep_records::trial::{JobStatus, Trial};

/// What runs in a zone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Zone {
    /// Number of containers.
    pub(crate) running: u64,
    /// Attempts whose container does not run yet.
    pub(crate) starting: u64,
    /// The EC2 instances of these containers.
    pub(crate) instances: BTreeSet<String>,
}

/// Running attempts, by the zones that they have reported.
pub(super) fn zones(trials: &[Trial]) -> BTreeMap<String, Zone> {
    let mut zones: BTreeMap<String, Zone> = BTreeMap::new();
    for trial in trials {
        let is_running = match trial.status {
            JobStatus::Running => true,
            JobStatus::Starting => false,
            JobStatus::Submitted
            | JobStatus::Pending
            | JobStatus::Runnable
            | JobStatus::Succeeded
            | JobStatus::Failed => continue,
        };
        let Some(attempt) = trial.attempts.get(&(trial.ended + 1)) else { continue };
        let Some(name) = &attempt.zone else { continue };
        let zone = zones.entry(name.clone()).or_default();
        *(if is_running { &mut zone.running } else { &mut zone.starting }) += 1;
        zone.instances.extend(attempt.instance.clone());
    }
    zones
}
