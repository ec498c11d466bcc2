//! An attempt without reports: how often its runner reports at least, and for how long reports may be missing.

use std::time::Duration;

/// Longest time between two reports of a runner that works, whatever its training does.
pub const REPORT_WITHIN: Duration = Duration::from_secs(300);

/// How long the reports of an attempt may be missing until AWS is asked about its instance: two reports in a row may be
/// lost.
pub const SILENT_AFTER: Duration = Duration::from_secs(900);
