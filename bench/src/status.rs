//! Measures what a person waits for in a sweep of 10 000 trials: `spotsweep status --json`, and one refresh of
//! `spotsweep watch`. Half of the trials have ended, and half train after an interruption.
//!
//! The table is in memory and answers at once. The limit is the time of its answers alone.

use std::time::Duration;

use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_control_plane::store::{Audit, Change, Record, Store, View};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;
use spotsweep_tests::local::{Call, Observed, Table, service_time};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::cost::stage::{Plan, Stage};
use crate::row::{Row, median};
use crate::setup::Setup;

const TRIALS: u32 = 10_000;
const REPEATS: usize = 5;

/// The period in which the bench checks whether a watcher has looked again, and the longest time for that.
const POLL: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The measurements of one look.
struct Look {
    seconds: f64,
    service_seconds: f64,
    calls: f64,
    received: f64,
    reads: f64,
    cpu_ms: f64,
}

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let (table, sweep) = filled().await;
    let (mut looks, mut refreshes) = (Vec::new(), Vec::new());
    for _ in 0..setup.repeats(REPEATS) {
        looks.push(status(setup, &table, &sweep).await);
        refreshes.push(refresh(setup, &table, &sweep).await);
    }
    let mut rows = figures("status", &looks);
    rows.extend(figures("refresh of watch", &refreshes));
    rows
}

fn figures(of: &str, looks: &[Look]) -> Vec<Row> {
    let each = |value: fn(&Look) -> f64| -> Vec<f64> { looks.iter().map(value).collect() };
    let row = |what: &str, unit, value| Row::new(format!("status/{of}/{what}"), unit, &each(value));
    let service = median(&each(|look| look.service_seconds * 1000.0));
    vec![
        row("time", "ms", |look| look.seconds * 1000.0).limit(service),
        row("own CPU", "ms", |look| look.cpu_ms),
        row("AWS calls", "calls", |look| look.calls),
        row("read units", "units", |look| look.reads),
        row("received", "KiB", |look| look.received / 1024.0),
    ]
}

/// Returns the table of a sweep that is half done.
async fn filled() -> (Table, SweepId) {
    let (mut sweep, running, ended) = records().await;
    let plan = sweep.plan.as_mut().expect("a running sweep has a plan");
    plan.trials = TRIALS;
    plan.parts[0].trials = TRIALS;
    let array = plan.parts[0].job.clone().expect("its job is submitted");
    let table = Table::serve().await;
    let store = DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS);
    commit(&store, Record::Sweep(Box::new(sweep.clone()))).await;
    for index in 0..TRIALS {
        let trial = if index.is_multiple_of(2) { &running } else { &ended };
        let job = JobId::from(format!("{array}:{index}"));
        commit(&store, Record::Trial(Box::new(Trial { index, job, ..trial.clone() }))).await;
    }
    (table, sweep.id)
}

/// Returns a sweep's own record, a trial that trains after an interruption, and one that has ended, as the control
/// plane writes them.
async fn records() -> (Sweep, Trial, Trial) {
    let training = Duration::from_secs(3600);
    let plan = Plan { trials: 2, training, interruptions: 1, line: Duration::from_secs(60) };
    let mut stage = Stage::new(plan).await;
    stage.run_until(|stage| stage.all_train() && stage.saved.iter().all(|saved| *saved > training * 3 / 4)).await;
    let (reader, id) = (stage.reader(), stage.sweep.clone());
    let sweep = reader.sweep(&id).await.expect("the table can be read").expect("the sweep is stored");
    let running = reader.trial(&id, 0).await.expect("the table can be read").expect("the trial runs");
    stage.run_until(Stage::is_over).await;
    let ended = reader.trial(&id, 0).await.expect("the table can be read").expect("the trial has ended");
    (sweep, running, ended)
}

async fn commit(store: &DynamoStore, record: Record) {
    let at = jiff::Timestamp::now();
    let state = record.state();
    let audit = Audit { at, event: "report".into(), answer: String::new(), state, commands: Vec::new() };
    let change = Change { record, due: Some(at), figures_only: false, reserved: Vec::new() };
    store.commit(&View::default(), &change, &audit).await.expect("the table takes the record");
}

fn command(setup: &Setup, arguments: &[&str]) -> Command {
    let mut command = Command::new(setup.binaries.join("spotsweep"));
    command.args(arguments).args(["--table", "table"]);
    command
}

async fn status(setup: &Setup, table: &Table, sweep: &SweepId) -> Look {
    table.take();
    let command = command(setup, &["status", sweep.as_str(), "--json"]);
    let process = Observed::start(command, table.endpoint(), table.endpoint()).await;
    let began = process.began;
    let (output, calls, usage) = process.end().await;
    let took = began.elapsed();
    let status: serde_json::Value = serde_json::from_slice(&output).expect("the status is JSON");
    let count = |of: &str| status[of].as_u64();
    let half = Some(u64::from(TRIALS) / 2);
    assert_eq!((count("running"), count("succeeded")), (half, half), "every trial is shown");
    Look::of(took, &calls, usage.cpu, table.take().reads)
}

/// Measures the second look of a watcher, after it has shown the first one. Each look begins with the sweep's own
/// record, which the command also reads once before.
async fn refresh(setup: &Setup, table: &Table, sweep: &SweepId) -> Look {
    let command = command(setup, &["watch", sweep.as_str(), "--json"]);
    let mut process = Observed::start(command, table.endpoint(), table.endpoint()).await;
    process.discard_output();
    let mut calls = until_look(&mut process, 3).await;
    let first = calls.pop().expect("the call that begins the look");
    let cpu = process.usage().cpu;
    table.take();
    let mut calls = until_look(&mut process, 1).await;
    let (cpu, reads) = (process.usage().cpu - cpu, table.take().reads);
    process.kill().await;
    // This call belongs to the next look.
    calls.pop();
    calls.insert(0, first);
    let ended = calls.iter().map(|call| call.ended).max().expect("a look has calls");
    Look::of(ended - calls[0].began, &calls, cpu, reads)
}

/// Returns the calls until `looks` looks have begun, including the one that begins the last of them.
async fn until_look(process: &mut Observed, looks: usize) -> Vec<Call> {
    let deadline = Instant::now() + LONGEST_WAIT;
    let mut calls = Vec::new();
    while calls.iter().filter(|call: &&Call| call.name.ends_with(".GetItem")).count() < looks {
        assert!(Instant::now() < deadline, "the watcher looks again");
        sleep(POLL).await;
        calls.extend(process.calls());
    }
    calls
}

impl Look {
    fn of(took: Duration, calls: &[Call], cpu: Duration, reads: f64) -> Self {
        Self {
            seconds: took.as_secs_f64(),
            service_seconds: service_time(calls).as_secs_f64(),
            calls: calls.len() as f64,
            received: calls.iter().map(|call| call.received).sum::<u64>() as f64,
            reads,
            cpu_ms: cpu.as_secs_f64() * 1000.0,
        }
    }
}
