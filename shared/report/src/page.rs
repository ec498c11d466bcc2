//! `report.html`: a sweep on one page, made only from what is stored.
//!
//! ```text
//! Sources (records, trials.jsonl, curves, costs, logs) → Report::of → Report → render → one file
//! ```
//! The page needs no network. Style, scripts and data are inside it, so it works from a disk, from a presigned link and
//! as an attachment. All functions are pure and get the time as an argument. What a person wrote (parameter names, log
//! lines, the sweep file) is in the page only as JSON, and is shown only as text.
//!
//! A sweep may have 100 000 trials, which is too many for a page. So the constants below limit what the page contains,
//! and the page says what it leaves out and where that is.
//!
//! [`render`] is the only user of the page's scripts, so a binary that does not call it does not contain them.

mod attempts;
mod columns;
mod cost;
pub mod curves;
mod failures;
pub mod importance;
mod model;
mod of;
mod render;
mod search;
mod sets;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use model::Report;
pub(crate) use render::cut;
pub use render::render;

use crate::cost::Cost;
use crate::diagnosis::Diagnosis;
use curves::Curve;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::Trial;

/// Most trials with a row of their own. The best ones have one.
pub const MAX_ROWS: usize = 2_000;
/// Most trials from which the parameters' importance is computed. They are evenly spaced over a larger sweep.
pub const MAX_SAMPLE: usize = 5_000;
/// Most parameters with a column of their own. The most important ones have one.
pub const MAX_COLUMNS: usize = 100;
/// Most metrics with curves. The metric that ranks comes first.
pub const MAX_CHARTED_METRICS: usize = 8;
/// Most points of all curves together, except that each may have [`curves::MIN_POINTS`].
pub const MAX_POINTS: usize = 200_000;
/// Most failed trials whose last log lines are shown.
pub const MAX_FAILURES: usize = 50;
/// Most log lines of a failed trial.
pub const MAX_LOG_LINES: usize = 20;
/// Most bytes of the sweep file.
pub const MAX_FILE_BYTES: usize = 100_000;

/// Everything that a page is made from. Something unknown is left empty, and the page says so.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The sweep.
    pub sweep: &'a Sweep,
    /// The sweep's plan.
    pub plan: &'a Plan,
    /// The trials' records. A trial without a record is waiting.
    pub trials: &'a [Trial],
    /// `trials.jsonl`.
    pub parameters: &'a [u8],
    /// The sweep file's text.
    pub file: Option<&'a str>,
    /// Curves by trial and metric; see [`Report::charted`] and [`curves::read`].
    pub curves: &'a BTreeMap<u32, BTreeMap<String, Curve>>,
    /// Costs by trial. A trial that is not in it has no price.
    pub costs: &'a BTreeMap<u32, Cost>,
    /// The costs of functions, table and events, in USD.
    pub control_plane_usd: Option<f64>,
    /// Diagnoses by failed trial.
    pub diagnoses: &'a BTreeMap<u32, Diagnosis>,
    /// What a person should know before trusting the results.
    pub warnings: &'a [String],
    /// When the page is made.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;
