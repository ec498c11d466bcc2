//! Limits for an attempt without reports: the longest time between two reports, and how long they may be missing.

use std::time::Duration;

/// The longest time between two reports of a working runner, whatever its training does.
pub const REPORT_WITHIN: Duration = Duration::from_secs(300);

/// The time without reports of an attempt after which AWS is asked about its instance. Two reports in a row may be lost
/// before that.
pub const SILENT_AFTER: Duration = Duration::from_secs(900);
