//! How many trials a sweep may have: the largest one settles within the limits of the table and of Lambda.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use allocation_counter::measure;
use serde_json::{Value, json};
use spotsweep_control_plane::store::{Audit, Change, Record, Store as _, View};
use spotsweep_control_plane::sweep::{Plan, Stage, Sweep};
use spotsweep_control_plane::trial::Trial;
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::invocation::Invoked;
use spotsweep_simulation::run::{Chaos, Simulation};
use spotsweep_sweep_file::{MAX_TRIALS, trials};

/// Bytes that a function needs besides what an event makes it allocate: its code, its clients and their buffers.
const BESIDES: u64 = 64 << 20;

/// What settling a sweep took.
#[derive(Debug, Default)]
struct Settled {
    /// The most bytes that one invocation held.
    bytes: u64,
    /// The most read units that one invocation used.
    units: f64,
    invocations: usize,
}

/// A sweep whose trials have all ended, each like one that ran in the simulation.
async fn ended(count: u32) -> Harness {
    let account = Account { instance_type: "c7g.medium", max_vcpus: 1, workspace_gib: 20, ..Account::default() };
    let file = "trials: [{lr: 0.1, units: 64, depth: 3, name: wide}]\nmetric: {name: loss, goal: minimize}\n";
    let mut simulation = Simulation::new(7, &account, Chaos::none(), file);
    simulation.run().unwrap();
    let (sweeps, ran) = simulation.harness.store.state();
    let harness = Harness::with(1, &account);
    let plan = sweeps[0].plan.clone().unwrap();
    let mut parts = Plan::cut(count);
    for part in &mut parts {
        (part.job, part.ended) = (Some("job".to_owned()), Some(ran[0].status));
    }
    let plan = Plan { trials: count, parts, ..plan };
    let sweep = Sweep { stage: Stage::Settling, plan: Some(plan), spent: None, ..sweeps[0].clone() };
    let (mut lines, mut index) = (Vec::new(), trials::Index::default());
    for at in 0..count {
        put(&harness, Record::Trial(Box::new(Trial { index: at, ..ran[0].clone() }))).await;
        let line = json!({ "index": at, "parameters": { "lr": 0.1, "units": at, "depth": 3, "name": "wide" } });
        let line = format!("{line}\n").into_bytes();
        index.push(&line);
        lines.extend(line);
    }
    harness.cloud.put(&trials::lines_key(&sweep.id), lines);
    harness.cloud.put(&trials::index_key(&sweep.id), index.finish());
    put(&harness, Record::Sweep(Box::new(sweep))).await;
    harness
}

async fn put(harness: &Harness, record: Record) {
    let due = matches!(record, Record::Sweep(_)).then_some(harness.now);
    let change = Change { record, due, figures_only: false, reserved: Vec::new() };
    let audit = Audit {
        at: harness.now,
        event: "put".into(),
        answer: String::new(),
        state: change.record.state(),
        commands: Vec::new(),
    };
    harness.store.commit(&View::default(), &change, &audit).await.unwrap();
}

/// Settles it, or says which limit it exceeds.
fn settle(harness: &Harness) -> Result<Settled, String> {
    let mut settled = Settled::default();
    let mut events = vec![harness.reconcile()];
    while let Some(event) = events.pop() {
        let function = harness.permissions.function_of(&event).unwrap();
        let memory = harness.permissions.functions[function].memory << 20;
        let mut invoked = Invoked::default();
        let bytes = measure(|| invoked = harness.invoke(&event)).bytes_max;
        settled.bytes = settled.bytes.max(bytes);
        settled.units = settled.units.max(invoked.used.read());
        settled.invocations += 1;
        if let Some(limit) = invoked.exceeded {
            return Err(limit);
        }
        invoked.answer.expect("an answer").map_err(|error| error.to_string())?;
        if bytes + BESIDES > memory {
            return Err(format!("{function} holds {} MB of its {} MB", bytes >> 20, memory >> 20));
        }
        events.extend(harness.announced());
    }
    let (sweeps, _) = harness.store.state();
    match &sweeps[0].stage {
        Stage::Settled => Ok(settled),
        stage => Err(format!("it is still {}", stage.name())),
    }
}

#[tokio::test]
async fn the_largest_sweep_settles() {
    let count = u32::try_from(MAX_TRIALS).unwrap();
    let harness = ended(count).await;
    let settled = settle(&harness).unwrap();
    let (sweeps, _) = harness.store.state();
    let summary = harness.cloud.get(&format!("{}summary.json", sweeps[0].id.results_prefix())).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["succeeded"], count, "{settled:?}");
    // What docs/simulation.md states.
    println!("{settled:?}");
}
