//! How many trials a sweep can have: the largest one settles within the limits of the table and of Lambda.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod continued;
mod table;

use std::time::Duration;

use allocation_counter::measure;
use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_control_plane::store::{Audit, Change, Record, Store, View};
use spotsweep_records::sweep::notification::SOURCE;
use spotsweep_records::sweep::pages::PAGE_TRIALS;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::invocation::Invoked;
use spotsweep_simulation::limits::SECONDS;
use spotsweep_simulation::run::{Chaos, Simulation};
use spotsweep_sweep_file::{MAX_TRIALS, trials};

/// Bytes that a function needs besides the memory that an event allocates: code, clients and their buffers.
const BESIDES: u64 = 64 << 20;

/// MB of memory with which Lambda gives a whole CPU
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>).
const ONE_CPU: u64 = 1769;

/// What the events of a sweep have used.
#[derive(Debug, Default)]
struct Took {
    /// Most bytes that one invocation allocated at once.
    bytes: u64,
    /// Longest time that one invocation computed, with its function's share of a CPU.
    seconds: f64,
    /// Most read units that one invocation used.
    units: f64,
    /// Read units of all invocations.
    all_units: f64,
    /// Keys of the objects that were put, in order.
    put: Vec<String>,
}

impl Took {
    fn pages(&self) -> usize {
        self.put.iter().filter(|key| key.contains("/pages/")).count()
    }
}

/// A sweep in this stage, and one of its trials that has ended. The trial ran in the simulation, and was interrupted
/// there.
fn records(stage: Stage, count: u32) -> (Sweep, Trial) {
    let chaos = Chaos { reclaim_every: Some(Duration::from_secs(120)), most_reclaims: 3, ..Chaos::none() };
    let file = "trials: [{lr: 0.1, units: 64, depth: 3, name: wide}]\nmetric: {name: loss, goal: minimize}\n";
    let mut simulation = Simulation::new(7, &account(), chaos, file);
    simulation.epochs = 30;
    simulation.run().unwrap();
    let (mut sweeps, mut ran) = simulation.harness.store.state();
    let (sweep, trial) = (sweeps.remove(0), ran.remove(0));
    assert!(trial.attempts.len() > 1, "{trial:?}");
    let mut parts = Plan::cut(count);
    for part in &mut parts {
        part.job = Some("job".to_owned());
        part.ended = (stage == Stage::Settling).then_some(JobStatus::Succeeded);
    }
    let plan = Plan { trials: count, parts, ..sweep.plan.clone().unwrap() };
    (Sweep { stage, plan: Some(plan), spent: None, ..sweep }, trial)
}

fn account() -> Account {
    Account { instance_type: "c7g.medium", max_vcpus: 1, workspace_gib: 20, ..Account::default() }
}

/// Stores such a sweep with so many ended trials in the table.
async fn sweep(stage: Stage, count: u32, ended: u32) -> Harness {
    let (sweep, trial) = records(stage, count);
    let harness = Harness::with(1, &account());
    let (mut lines, mut index) = (Vec::new(), trials::Index::default());
    for at in 0..count {
        if at < ended {
            put(&harness.store, Record::Trial(Box::new(Trial { index: at, ..trial.clone() }))).await;
        }
        let line = json!({ "index": at, "parameters": { "lr": 0.1, "units": at, "depth": 3, "name": "wide" } });
        let line = format!("{line}\n").into_bytes();
        index.push(&line);
        lines.extend(line);
    }
    harness.cloud.put(&trials::lines_key(&sweep.id), lines);
    harness.cloud.put(&trials::index_key(&sweep.id), index.finish());
    put(&harness.store, Record::Sweep(Box::new(sweep))).await;
    harness
}

async fn put(store: &impl Store, record: Record) {
    let at = Timestamp::UNIX_EPOCH;
    let (state, commands) = (record.state(), Vec::new());
    let change = Change { record, due: None, figures_only: false, reserved: Vec::new() };
    let audit = Audit { at, event: "put".into(), answer: String::new(), state, commands };
    store.commit(&View::default(), &change, &audit).await.unwrap();
}

/// Delivers events and the events that follow, each so many times, until there are none. Fails if a limit is exceeded.
fn deliver(harness: &Harness, mut events: Vec<Value>, times: usize) -> Result<Took, String> {
    let mut took = Took::default();
    while let Some(event) = events.pop() {
        let function = harness.permissions.function_of(&event).unwrap();
        let memory = harness.permissions.functions[function].memory;
        let share = memory.min(ONE_CPU) as f64 / ONE_CPU as f64;
        for _time in 0..times {
            let mut invoked = Invoked::default();
            let begun = computed();
            let bytes = measure(|| invoked = harness.invoke(&event)).bytes_max;
            let seconds = (computed() - begun).as_secs_f64() / share;
            took.seconds = took.seconds.max(seconds);
            took.bytes = took.bytes.max(bytes);
            took.units = took.units.max(invoked.used.read());
            took.all_units += invoked.used.read();
            let puts = invoked.calls.iter().filter(|call| call.action == "PutObject");
            took.put.extend(puts.filter_map(|call| call.on.clone()));
            if let Some(limit) = invoked.exceeded {
                return Err(limit);
            }
            invoked.answer.expect("an answer").map_err(|error| error.to_string())?;
            if bytes + BESIDES > memory << 20 {
                return Err(format!("{function} holds {} MB of its {memory} MB", bytes >> 20));
            }
            if seconds + invoked.used.seconds() > SECONDS {
                return Err(format!("{function} computes for {seconds:.0} s of its {SECONDS} s"));
            }
        }
        events.extend(harness.announced());
    }
    Ok(took)
}

/// The event with which a pass begins.
fn begin(harness: &Harness, kind: &str) -> Vec<Value> {
    let (sweeps, _) = harness.store.state();
    vec![json!({
        "version": "0", "id": "own", "detail-type": kind, "source": SOURCE, "account": "000000000000",
        "time": harness.now.to_string(), "region": "us-east-1", "resources": [],
        "detail": { "sweep": sweeps[0].id.as_str() },
    })]
}

/// CPU time of this thread.
fn computed() -> Duration {
    let stated = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stated.split(' ').next().unwrap().parse().unwrap())
}

fn object(harness: &Harness, name: &str) -> Vec<u8> {
    let (sweeps, _) = harness.store.state();
    harness.cloud.get(&format!("{}{name}", sweeps[0].id.results_prefix())).expect(name)
}

/// What the page of the report shows.
fn report(harness: &Harness) -> Value {
    let page = String::from_utf8(object(harness, "report.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

fn summary(harness: &Harness) -> Value {
    let (sweeps, _) = harness.store.state();
    assert_eq!(sweeps[0].stage, Stage::Settled);
    serde_json::from_slice(&object(harness, "summary.json")).unwrap()
}

/// Prints the figures that `docs/simulation.md` states.
#[tokio::test]
async fn the_largest_sweep_settles() {
    let count = u32::try_from(MAX_TRIALS).unwrap();
    let harness = sweep(Stage::Settling, count, count).await;
    let took = deliver(&harness, begin(&harness, "Sweep Settling"), 1).unwrap();
    let summary = summary(&harness);
    assert_eq!(
        (&summary["succeeded"], &summary["attempts"]),
        (&count.into(), &json!(count as usize * harness.store.state().1[0].attempts.len()))
    );
    assert_eq!(object(&harness, "leaderboard.csv").split(|byte| *byte == b'\n').count() - 2, count as usize);
    let attempts = harness.store.state().1[0].attempts.len();
    let Took { bytes, seconds, units, all_units, .. } = took;
    println!("{attempts} attempts of each trial: in one invocation {} MB, {seconds:.1} s, {units} units", bytes >> 20);
    println!("in all {all_units} units");
}

#[tokio::test]
async fn events_that_come_twice_start_no_second_pass() {
    let count = 5 * PAGE_TRIALS;
    let harness = sweep(Stage::Settling, count, count).await;
    let took = deliver(&harness, begin(&harness, "Sweep Settling"), 2).unwrap();
    assert_eq!((took.pages(), &summary(&harness)["succeeded"]), (5, &count.into()), "{:?}", took.put);
}

/// The report and the cost of a running sweep include all its trials.
#[tokio::test]
async fn pages_that_have_ended_are_read_once() {
    let harness = sweep(Stage::Running, 3 * PAGE_TRIALS, 2 * PAGE_TRIALS + 10).await;
    let mut passes = Vec::new();
    for _pass in 0..2 {
        passes.push(deliver(&harness, begin(&harness, "Sweep Running"), 1).unwrap());
        let report = report(&harness);
        assert_eq!(report["counts"]["succeeded"], 2 * PAGE_TRIALS + 10);
    }
    assert_eq!((passes[0].pages(), passes[1].pages()), (3, 1));
    assert!(passes[1].all_units < passes[0].all_units / 10.0, "{passes:?}");
}
