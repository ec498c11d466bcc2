//! Measures our code alone, in this process: the state is in memory and there are no effects.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;
use spotsweep_control_plane::event::{self, Event};
use spotsweep_control_plane::handle::handle;
use spotsweep_simulation::nouns;
use spotsweep_tests::course::{Course, Idle, kind, ready};

use crate::row::{Row, median};
use crate::setup::Setup;

const TRIALS: u32 = 1000;
const REPEATS: usize = 9;

pub(super) async fn rows(setup: &Setup) -> Vec<Row> {
    let (mut per_second, mut allocations, mut allocated, mut parsing) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut events = Vec::new();
    for _ in 0..setup.repeats(REPEATS) {
        let course = Course::new("track", TRIALS).await;
        let raw: Vec<Vec<u8>> = course.events.iter().map(|event| event.to_string().into_bytes()).collect();
        let begun = Instant::now();
        let counted = allocation_counter::measure(|| raw.iter().for_each(|raw| handled(&course, raw)));
        let seconds = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        raw.iter().for_each(|raw| drop(parsed(raw)));
        parsing.push(begun.elapsed().as_secs_f64() / seconds * 100.0);
        let count = raw.len() as f64;
        per_second.push(count / seconds);
        allocations.push(counted.count_total as f64 / count);
        allocated.push(counted.bytes_total as f64 / count);
        events = course.events;
    }
    let mut rows = vec![
        Row::new("track/memory/events", "1/s", &per_second),
        Row::new("track/memory/of that JSON", "%", &parsing),
        Row::new("track/memory/allocations an event", "", &allocations),
        Row::new("track/memory/allocated an event", "B", &allocated),
    ];
    rows.extend(by_kind(&events).await);
    rows
}

/// Returns the allocations by kind of event. It takes the median over the sweep, because maps grow now and then.
async fn by_kind(events: &[Value]) -> Vec<Row> {
    let course = Course::new("track", TRIALS).await;
    let mut counted: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for event in events {
        let raw = event.to_string().into_bytes();
        let count = allocation_counter::measure(|| handled(&course, &raw)).count_total;
        counted.entry(kind(event)).or_default().push(count as f64);
    }
    let row = |(kind, counts): (&String, &Vec<f64>)| {
        Row::new(format!("track/memory/allocations, {kind}"), "", &[median(counts)])
    };
    counted.iter().map(row).collect()
}

fn parsed(raw: &[u8]) -> Event {
    event::parse(serde_json::from_slice(raw).expect("it was JSON")).expect("the event parses")
}

fn handled(course: &Course, raw: &[u8]) {
    let harness = &course.harness;
    let handling = handle(&harness.store, &Idle, nouns::ALL, harness.settings(), parsed(raw), harness.now);
    ready(handling).expect("the event is handled");
    harness.calls.take();
}
