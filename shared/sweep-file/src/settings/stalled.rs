//! `stalled:` under `spotsweep:`: the limit after which a stalled training is ended.

use schemars::JsonSchema;

use super::super::fields::written;
use super::super::problem::Report;
use super::super::quantity::seconds;
use super::super::tree::Node;
use super::Quantity;
use super::workspace::OffSchema;

/// The response to a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stalled {
    /// There is neither a warning nor an end.
    Off,
    /// Its attempt is ended.
    After {
        /// Seconds without a sign until the end, at least 60.
        seconds: u32,
    },
}

/// `off`, or a duration.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
pub(super) enum StalledSchema {
    Off(OffSchema),
    After(Quantity),
}

/// The smallest limit in seconds, because a training that only computes may show no sign for so long.
const LEAST: u32 = 60;

pub(super) fn read(node: &Node, report: &mut Report<'_>) -> Option<Stalled> {
    let limit = written(node, "stalled", report)?;
    if limit == "off" {
        return Some(Stalled::Off);
    }
    let parsed = seconds(&limit).and_then(|seconds| u32::try_from(seconds).ok());
    let valid = parsed.filter(|seconds| (LEAST..=i32::MAX as u32).contains(seconds));
    if valid.is_none() {
        let help = "write at least 60 seconds, for example 1800, 30m or 2h, or `off` for neither warning nor end";
        report.add(node.place, format!("`stalled` is not a duration, and not `off`: {limit}"), help);
    }
    valid.map(|seconds| Stalled::After { seconds })
}
