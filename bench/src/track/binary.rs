//! Measures the real `batch-job-state`, warm, with one event after another. It runs against the local stack's DynamoDB,
//! and against a table in memory that answers at once, so that only the function's own time remains.
//!
//! The limit is the time of the calls to DynamoDB alone: from the request until the answer. Calls that are made side by
//! side count once.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_protocol::functions::CLAIM;
use spotsweep_tests::course::{Course, kind};
use spotsweep_tests::local::{Invocation, Outcome, Sandbox, Stack, Table, service_time};

use super::Own;
use crate::row::{Row, median};
use crate::setup::Setup;

/// The trials of a run, and the number of runs against each table.
const TRIALS: u32 = 50;
const REPEATS: usize = 5;

/// The first events, which warm up the process and are not measured.
const WARM_UP: usize = 10;

/// The measurements of one event.
struct Handled {
    kind: String,
    seconds: f64,
    service_seconds: f64,
    calls: f64,
    sent: f64,
    received: f64,
}

/// The figures of one run.
#[derive(Default)]
struct Run {
    handled: Vec<Handled>,
    cpu_ms: f64,
    log_bytes: f64,
}

pub(super) async fn rows(setup: &Setup) -> Vec<Row> {
    let stack = Stack::start_in(&setup.scratch.join("track"), &setup.binaries, &[]).await;
    let (mut there, mut at_once) = (Vec::new(), Vec::new());
    for turn in 0..setup.repeats(REPEATS) {
        let course = Course::new(&format!("track-{turn}"), TRIALS).await;
        let store = DynamoStore::new(&stack.config(), stack.table.clone(), RETENTION_DAYS);
        there.push(run(setup, &course, &store, &stack.endpoint, &stack.table).await);
        let table = Table::serve().await;
        let store = DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS);
        at_once.push(run(setup, &course, &store, table.endpoint(), "table").await);
    }
    stack.stop().await;
    let mut rows = speed("local stack", &there);
    rows.extend(speed("table in memory", &at_once));
    rows.extend(calls(&at_once));
    rows
}

/// Returns the function's own share of an event in one run.
pub(super) async fn own(setup: &Setup) -> Own {
    let course = Course::new("own", TRIALS).await;
    let table = Table::serve().await;
    let store = DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS);
    let run = run(setup, &course, &store, table.endpoint(), "table").await;
    let own: f64 = run.handled.iter().map(|event| event.seconds - event.service_seconds).sum();
    Own { seconds: own / run.handled.len() as f64, log_bytes: run.log_bytes }
}

fn speed(of: &str, runs: &[Run]) -> Vec<Row> {
    let each = |value: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(value).collect() };
    let count = |run: &Run| run.handled.len() as f64;
    let seconds = |run: &Run| run.handled.iter().map(|event| event.seconds).sum::<f64>();
    let service = |run: &Run| run.handled.iter().map(|event| event.service_seconds).sum::<f64>();
    let per_second: Vec<f64> = runs.iter().map(|run| count(run) / seconds(run)).collect();
    let event_ms: Vec<f64> = runs.iter().map(|run| seconds(run) / count(run) * 1000.0).collect();
    let service_ms: Vec<f64> = runs.iter().map(|run| service(run) / count(run) * 1000.0).collect();
    vec![
        Row::new(format!("track/{of}/events"), "1/s", &per_second),
        Row::new(format!("track/{of}/an event"), "ms", &event_ms).limit(median(&service_ms)),
        Row::new(format!("track/{of}/own CPU an event"), "ms", &each(|run| run.cpu_ms)),
        Row::new(format!("track/{of}/log an event"), "B", &each(|run| run.log_bytes)),
    ]
}

/// Returns the calls by kind of event, and the bytes in both directions.
fn calls(runs: &[Run]) -> Vec<Row> {
    let mut kinds: BTreeMap<&str, Vec<&Handled>> = BTreeMap::new();
    for event in runs.iter().flat_map(|run| &run.handled) {
        kinds.entry(&event.kind).or_default().push(event);
    }
    let rows = kinds.into_iter().flat_map(|(kind, events)| {
        let all = |of: fn(&Handled) -> f64| -> Vec<f64> { events.iter().map(|event| of(event)).collect() };
        [
            Row::new(format!("track/{kind}/AWS calls"), "calls", &all(|event| event.calls)),
            Row::new(format!("track/{kind}/both ways"), "B", &all(|event| event.sent + event.received)),
            Row::new(
                format!("track/{kind}/own time"),
                "ms",
                &all(|event| (event.seconds - event.service_seconds) * 1000.0),
            ),
        ]
    });
    rows.collect()
}

/// Sends the events of a course's trials to a fresh process. The array job's end is left out, because it would settle
/// the sweep, which is another function's work.
async fn run(setup: &Setup, course: &Course, store: &DynamoStore, endpoint: &str, table: &str) -> Run {
    course.begin(store).await;
    let sandbox = function(setup, endpoint, table);
    let mut process = sandbox.start(None).await;
    let events: Vec<&Value> = course.events.iter().filter(|event| kind(event) != "array job SUCCEEDED").collect();
    let (warm_up, measured) = events.split_at(WARM_UP.min(events.len()));
    for event in warm_up {
        answered(event, &process.invoke(event).await);
    }
    let (cpu, log) = (process.usage().cpu, log_bytes(&sandbox));
    let mut run = Run::default();
    for event in measured {
        run.handled.push(answered(event, &process.invoke(event).await));
    }
    let count = run.handled.len() as f64;
    run.cpu_ms = (process.usage().cpu - cpu).as_secs_f64() * 1000.0 / count;
    run.log_bytes = (log_bytes(&sandbox) - log) as f64 / count;
    process.stop().await;
    run
}

fn function(setup: &Setup, endpoint: &str, table: &str) -> Sandbox {
    // The log has Lambda's form with `LogFormat: JSON` (infra/control-plane.yaml).
    let variables = [
        ("SPOTSWEEP_TABLE", table),
        ("SPOTSWEEP_BUCKET", "bucket"),
        ("SPOTSWEEP_CLAIM_FUNCTION", CLAIM),
        ("SPOTSWEEP_TRIAL_ROLE", "arn:aws:iam::000000000000:role/trial"),
        ("SPOTSWEEP_PARAMETERS", "arn:aws:ssm:us-east-1:000000000000:parameter"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_LEVEL", "INFO"),
    ];
    Sandbox {
        binary: setup.binaries.join("batch-job-state"),
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        endpoint: endpoint.to_owned(),
        // A trial without a workspace only needs the table.
        batch: endpoint.to_owned(),
        log: log(setup),
    }
}

fn log(setup: &Setup) -> PathBuf {
    setup.scratch.join("track.log")
}

fn log_bytes(sandbox: &Sandbox) -> u64 {
    fs::metadata(&sandbox.log).map_or(0, |log| log.len())
}

fn answered(event: &Value, done: &Invocation) -> Handled {
    assert!(matches!(done.outcome, Outcome::Answered(_)), "{}: {:?}", kind(event), done.outcome);
    Handled {
        kind: kind(event),
        seconds: (done.ended - done.began).as_secs_f64(),
        service_seconds: service_time(&done.traffic).as_secs_f64(),
        calls: done.traffic.len() as f64,
        sent: done.traffic.iter().map(|call| call.sent).sum::<u64>() as f64,
        received: done.traffic.iter().map(|call| call.received).sum::<u64>() as f64,
    }
}
