//! Puts a fleet under notice at once, with EC2's request limits: each workspace is saved, and no request is wasted.
#![allow(missing_docs, clippy::unwrap_used)]

use spotsweep_studies::mass_interruption::{Fleet, interrupt};

/// The fleet is small enough for the limits: every workspace has a snapshot before its instance ends.
#[test]
fn a_small_fleet_is_saved_before_its_instances_go() {
    let outcome = interrupt(Fleet { instances: 10, trials_each: 4 }).unwrap();
    assert_eq!((outcome.workspaces, outcome.begun_in_time), (40, 40), "{outcome:?}");
}

/// The fleet requests 400 early and 400 final snapshots, and the limits allow 700 until the instances end.
#[test]
fn a_fleet_beyond_the_limits_uses_what_they_allow() {
    let outcome = interrupt(Fleet { instances: 100, trials_each: 4 }).unwrap();
    println!("{outcome:#?}");
    assert!(outcome.begun_in_time as f64 >= 0.95 * outcome.allowed_in_time, "{outcome:?}");
}
