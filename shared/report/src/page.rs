//! `report.html`: a sweep on one page, from the stored records alone.
//!
//! ```text
//! Sources (records, trials.jsonl, curves, costs, logs) → Report::of → Report → render → one file
//! ```
//! The page needs no network: style, scripts and data are inside it, so that it works from a disk, from
//! a presigned link and as an attachment. Everything here is pure; time passes in. Whatever a person wrote (parameter
//! names, log lines, the sweep file) reaches the page as JSON only, and there as text only.
//!
//! A sweep may have 100 000 trials, a page not: the constants below bound what it takes in, and the page says
//! what it leaves out and where that lies.
//!
//! [`render`] is the only user of the page's scripts: a binary that does not refer to it does not hold them.

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

/// Trials with a row of their own, from the best.
pub const MAX_ROWS: usize = 2_000;
/// Trials that the parameters' importance is taken from: evenly spaced over the sweep where it has more.
pub const MAX_SAMPLE: usize = 5_000;
/// Parameters with a column of their own, the most important first.
pub const MAX_COLUMNS: usize = 100;
/// Metrics with curves, the one that ranks first.
pub const MAX_CHARTED_METRICS: usize = 8;
/// Points of all curves together, as long as each has [`curves::MIN_POINTS`].
pub const MAX_POINTS: usize = 200_000;
/// Failed trials whose last log lines are shown.
pub const MAX_FAILURES: usize = 50;
/// Last log lines of a failed trial.
pub const MAX_LOG_LINES: usize = 20;
/// Bytes of the sweep file that are shown.
pub const MAX_FILE_BYTES: usize = 100_000;

/// Everything that a page is made from. What is not known is left empty, and the page says so.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The sweep.
    pub sweep: &'a Sweep,
    /// What is run.
    pub plan: &'a Plan,
    /// The trials' records; one that has none yet is waiting.
    pub trials: &'a [Trial],
    /// `trials.jsonl`.
    pub parameters: &'a [u8],
    /// The sweep file's text.
    pub file: Option<&'a str>,
    /// By trial and metric; see [`Report::charted`] and [`curves::read`].
    pub curves: &'a BTreeMap<u32, BTreeMap<String, Curve>>,
    /// By trial; one that is not in here has no price.
    pub costs: &'a BTreeMap<u32, Cost>,
    /// Functions, table, events, in USD.
    pub control_plane_usd: Option<f64>,
    /// By failed trial.
    pub diagnoses: &'a BTreeMap<u32, Diagnosis>,
    /// What a person should know before trusting the results.
    pub warnings: &'a [String],
    /// When the page is made.
    pub now: Timestamp,
}

#[cfg(test)]
mod tests;
