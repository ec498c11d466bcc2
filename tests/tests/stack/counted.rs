//! Counts AWS calls, units of the table, bytes and allocations, and compares them with their ceilings. Unlike seconds,
//! they are the same on every machine. So a change that increases them fails here, and one that decreases them must
//! lower the ceiling. The bench measures seconds (`cargo run --release --bin bench`).
#![allow(clippy::print_stdout)]

mod comparison;
mod suggestion;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use spotsweep_aws::{DynamoStore, RETENTION_DAYS, Reader};
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::handle;
use spotsweep_protocol::claim::{ClaimRequest, Machine, Request, Seal};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::secret::Secret;
use spotsweep_simulation::nouns;
use spotsweep_tests::ceilings::Ceilings;
use spotsweep_tests::course::{Course, Idle, Unpublished, kind, ready};
use spotsweep_tests::local::{Account, Outcome, Stack, Table, Units};

/// Lease of the deployed functions.
const LEASE_SECONDS: u64 = 120;

/// Number of trials, calls of their submission, and bytes of these calls' requests.
const SUBMISSIONS: [(u32, f64, f64); 3] = [(24, 12.0, 20_900.0), (1000, 12.0, 90_000.0), (10_000, 12.0, 800_000.0)];

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_takes_the_same_calls_however_many_trials_it_has() {
    let stack = Stack::start("counted").await;
    let account = Account::open(&stack, "counted").await;
    let mut ceilings = Ceilings::default();
    for (trials, calls, bytes) in SUBMISSIONS {
        let text = format!(
            "method: grid\nmetric: {{name: loss, goal: minimize}}\nparameters:\n  learning_rate: {{value: 0.0001}}\n  \
             seed: {{distribution: int_uniform, min: 1, max: {trials}}}\n"
        );
        let dropped = account.drop_file(&format!("grid-{trials}"), &text).await;
        let done = account.function("sweep-upload", &dropped, LEASE_SECONDS).invoke(&dropped.event, None).await;
        assert!(matches!(done.outcome, Outcome::Answered(_)), "{:?}", done.outcome);
        account.assert_submitted_once(&dropped, 1).await;
        ceilings.hold(&format!("calls for {trials} trials"), done.calls.len() as f64, calls);
        let sent: u64 = done.traffic.iter().map(|call| call.sent).sum();
        ceilings.hold(&format!("bytes sent for {trials} trials"), sent as f64, bytes);
    }
    account.close().await;
    stack.stop().await;
}

/// For each kind of event: calls on the table, units written and read, and bytes both ways.
const EVENTS: [(&str, f64, f64, f64, f64); 6] = [
    ("array job PENDING", 1.0, 0.0, 1.0, 1120.0),
    ("array job SUCCEEDED", 2.0, 2.0, 1.0, 2500.0),
    ("trial RUNNABLE", 2.0, 0.0, 2.0, 1300.0),
    ("trial RUNNING", 3.0, 1.0, 2.0, 3000.0),
    ("trial STARTING", 3.0, 2.0, 2.0, 2100.0),
    ("trial SUCCEEDED", 3.0, 2.0, 2.0, 3600.0),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_batch_takes_few_calls_and_units() {
    let (course, table) = (Course::new("counted", 20).await, Table::serve().await);
    let store = Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
    course.begin(&store).await;
    table.take();
    let mut most: BTreeMap<String, Units> = BTreeMap::new();
    for raw in &course.events {
        let event = event::parse(raw.clone()).unwrap();
        handle(&store, &Idle, nouns::ALL, course.harness.settings(), event, course.harness.now).await.unwrap();
        let (used, known) = (table.take(), most.entry(kind(raw)).or_default());
        // Any number of calls may read. The event with the most calls, writes and bytes stands for its kind.
        if (used.calls, used.writes(), used.sent) > (known.calls, known.writes(), known.sent) {
            *known = used;
        }
    }
    assert!(most.keys().eq(EVENTS.map(|(kind, ..)| kind).iter()), "kinds of events: {:?}", most.keys());
    let mut ceilings = Ceilings::default();
    for (kind, calls, writes, reads, bytes) in EVENTS {
        let used = most[kind];
        hold(&mut ceilings, kind, figures(&used), [calls, writes, reads, bytes]);
    }
    report(&course, &mut ceilings).await;
    look(&course, &table, &mut ceilings).await;
}

/// Most invocations are of this kind: a report of a runner whose training runs.
async fn report(course: &Course, ceilings: &mut Ceilings) {
    let table = Table::serve().await;
    let store = &Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
    course.begin(store).await;
    for raw in course.events.iter().filter(|raw| raw["detail"]["status"] != "SUCCEEDED") {
        let event = event::parse(raw.clone()).unwrap();
        handle(store, &Idle, nouns::ALL, course.harness.settings(), event, course.harness.now).await.unwrap();
    }
    let claim = event::parse(requested(course, Request::Claim(Machine::default()))).unwrap();
    handle(store, &Idle, nouns::ALL, course.harness.settings(), claim, course.harness.now).await.unwrap();
    for sequence in [1, 2] {
        table.take();
        let event = event::parse(requested(course, reported(sequence, Vec::new()))).unwrap();
        handle(store, &Idle, nouns::ALL, course.harness.settings(), event, course.harness.now).await.unwrap();
    }
    let used = table.take();
    hold(ceilings, "a report", figures(&used), [3.0, 1.0, 2.0, 4700.0]);
}

/// Figures of the table: calls, units written and read, bytes both ways.
type Figures = [f64; 4];

fn figures(used: &Units) -> Figures {
    [used.calls, used.writes(), used.reads, used.sent + used.received]
}

fn hold(ceilings: &mut Ceilings, what: &str, counted: Figures, most: Figures) {
    for (name, (counted, most)) in
        ["calls", "write units", "read units", "bytes"].into_iter().zip(counted.into_iter().zip(most))
    {
        ceilings.hold(&format!("{what}: {name}"), counted, most);
    }
}

/// Index of the trial that reports.
const TRIAL: u32 = 7;
/// Number of other trials that the store writes. It is a power of three, because hyperband leaves a third of the trials
/// at each rung. The rows of the rest are copies, because 10 000 writes through the SDK take minutes.
const WRITTEN: u32 = 81;

fn requested(course: &Course, request: Request) -> Value {
    let (sweep, job) = (course.sweep.id.to_string(), course.sweep.plan.as_ref().unwrap().job_of(TRIAL).unwrap());
    let (job, token, secret) = (job.to_string(), course.sweep.claim_token.clone(), Some(Secret::of([0x5a; 16])));
    json!(ClaimRequest { sweep, index: TRIAL, job, attempt: 1, token, secret, request })
}

fn reported(sequence: u64, rungs: Vec<Reached>) -> Request {
    let figure = Metric { min: 0.125, max: 2.25, ..Metric::of(0.25, Some(12.0), Source::Stated) };
    let metrics = ["accuracy", "loss"].map(|name| (name.to_owned(), figure)).into();
    let seal = Some(Seal { files: 1, bytes: 1 << 30, newest: Some("epoch-000012.pt".to_owned()) });
    Request::Report { sequence, metrics, seal, stalled_seconds: None, rungs }
}

/// Counts what `status` and each refresh of `watch` read.
async fn look(course: &Course, table: &Table, ceilings: &mut Ceilings) {
    let reader = Reader::new(&table.config(), "table".to_owned());
    table.take();
    assert!(reader.sweep(&course.sweep.id).await.unwrap().is_some());
    let trials = reader.trials(&course.sweep.id).await.unwrap().len();
    let used = table.take();
    assert_eq!(trials, 20);
    ceilings.hold("a look: calls", used.calls, 2.0);
    ceilings.hold("a look: bytes a trial", used.received / trials as f64, 580.0);
}

/// For each kind of event: allocations from its bytes to its commit in memory. Some of them are made by the table in
/// memory, which serializes a record to count its bytes.
const ALLOCATIONS: [(&str, f64); 6] = [
    ("array job PENDING", 290.0),
    ("array job SUCCEEDED", 335.0),
    ("trial RUNNABLE", 280.0),
    ("trial RUNNING", 320.0),
    ("trial STARTING", 310.0),
    ("trial SUCCEEDED", 365.0),
];

#[tokio::test]
async fn an_event_of_batch_takes_few_allocations() {
    let course = Course::new("counted", 200).await;
    let mut counted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in &course.events {
        let raw = event.to_string().into_bytes();
        let count = allocation_counter::measure(|| handled(&course, &raw)).count_total;
        counted.entry(kind(event)).or_default().push(count);
    }
    let mut ceilings = Ceilings::default();
    for (kind, most) in ALLOCATIONS {
        // The median counts, because maps sometimes grow.
        let mut counts = counted.remove(kind).unwrap();
        counts.sort_unstable();
        ceilings.hold(&format!("{kind}: allocations"), counts[counts.len() / 2] as f64, most);
    }
    assert!(counted.is_empty(), "other kinds of events: {:?}", counted.keys());
}

fn handled(course: &Course, raw: &[u8]) {
    let harness = &course.harness;
    let raw: Value = serde_json::from_slice(raw).unwrap();
    let event = event::parse(raw).unwrap();
    ready(handle(&harness.store, &Idle, nouns::ALL, harness.settings(), event, harness.now)).unwrap();
    harness.calls.take();
}
