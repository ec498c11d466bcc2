//! A fleet under notice at once, with EC2's request limits: no workspace is forgotten, and no request is wasted.

use spotsweep_simulation::mass_interruption::{Fleet, weather};

/// Few enough for the limits: every workspace has a snapshot before its instance goes.
#[test]
fn a_small_fleet_is_saved_before_its_instances_go() {
    let weathered = weather(Fleet { instances: 10, trials_each: 4 }).unwrap();
    assert_eq!((weathered.workspaces, weathered.begun_in_time), (40, 40), "{weathered:?}");
}

/// 400 early and 400 final snapshots are asked for, and the limits allow 700 until the instances go.
#[test]
fn a_fleet_beyond_the_limits_uses_what_they_allow() {
    let weathered = weather(Fleet { instances: 100, trials_each: 4 }).unwrap();
    println!("{weathered:#?}");
    assert!(weathered.begun_in_time as f64 >= 0.95 * weathered.allowed_in_time, "{weathered:?}");
}
