//! A whole fleet under notice at once, on a virtual clock: how many of its workspaces have a snapshot begun before
//! their instances go, and how long it takes until all are safe, against what EC2's request limits allow.

use spotsweep_simulation::mass_interruption::{Fleet, weather};

use crate::row::{Row, Target};
use crate::setup::Setup;

/// The storm of the target, and a tenth of it.
const FLEETS: [Fleet; 2] = [Fleet { instances: 100, trials_each: 4 }, Fleet { instances: 1000, trials_each: 4 }];

/// Share of what the limits allow that is aimed at.
const AIMED_AT: f64 = 0.95;

pub(crate) async fn rows(_setup: &Setup) -> Vec<Row> {
    let mut rows = Vec::new();
    for fleet in FLEETS {
        let name = format!("storm/{}x{}", fleet.instances, fleet.trials_each);
        let weathered = weather(fleet).unwrap_or_else(|error| unreachable!("{name}: {error}"));
        let row =
            |what: &str, unit, ours: f64, limit: f64| Row::new(format!("{name} {what}"), unit, &[ours]).limit(limit);
        let begun = weathered.begun_in_time as f64;
        rows.extend([
            row("snapshots begun in time", "workspaces", begun, weathered.allowed_in_time)
                .target(Target::RatioAtLeast(AIMED_AT)),
            row("all volumes off their instances", "s", weathered.parked_seconds, 120.0),
            row("all final snapshots begun", "s", weathered.saved_seconds, weathered.allowed_seconds.max(120.0)),
            Row::new(format!("{name} failed invocations"), "invocations", &[f64::from(weathered.failed)]),
        ]);
    }
    rows
}
