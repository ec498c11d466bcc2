//! How soon a sweep finds good parameters: our suggestions and what people use instead, on tasks with recorded answers
//! and a virtual clock (`search/main.py`).
//!
//! Ours is the crate's example `suggestions`, which reads what a claim reads: the trials so far. The peers run in an
//! environment of their own (`search/requirements.txt`). A run is kept in `<target>/bench/search.jsonl` and is made
//! once, so an interrupted measurement goes on where it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;

use crate::row::{Row, Target};
use crate::setup::{Setup, environment};

/// Runs of each task: for a quick look, and for the table in the docs. Slow peers have fewer.
const SEEDS: [&str; 2] = ["1", "10"];

/// What must hold: of which method, after how many trials, at most which mean regret.
const REGRETS: [(&str, &str, f64); 3] = [("ours", "100", 0.073), ("ours", "200", 0.055), ("ours-64", "200", 0.090)];

/// At most this share of the time of 200 random trials, until half of the runs of our suggestions with hyperband have
/// found random's best.
const MOST_TIME: f64 = 0.06;

/// A suggestion of 200 finished and 100 pending trials takes at most two seconds: of CPU time as many as that many MB of
/// a function's memory get, of the 1769 that stand for one CPU.
const MEMORY_MB: f64 = 512.0;
const MOST_MS: f64 = 2000.0 * MEMORY_MB / 1769.0;

/// What it may use of the memory.
const MOST_MIB: f64 = 64.0;

/// What suggestions of one size take (`search/cost.py`).
#[derive(Deserialize)]
struct Cost {
    finished: usize,
    pending: usize,
    /// Numbers before the next trial that are not known.
    gap: usize,
    ms: f64,
    memory: f64,
}

/// One method, as the script summarises its runs.
#[derive(Deserialize)]
struct Summary {
    method: String,
    runs: usize,
    regret: BTreeMap<String, f64>,
    share: f64,
    hits: f64,
    at_hit: Option<f64>,
    ask: f64,
}

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("search");
    let python = environment(&setup.folder.join("search-python"), &scripts.join("requirements.txt")).await;
    let program = program(setup).await;
    let script = |name: &str| {
        let mut command = Command::new(&python);
        // One thread each: the peers' libraries are slower with more on matrices of this size.
        command.env("OMP_NUM_THREADS", "1").arg(scripts.join(name));
        command
    };
    let costs: Vec<Cost> = lines(script("cost.py").arg(&program)).await;
    let [quick, whole] = SEEDS;
    let mut searches = script("main.py");
    searches.args(["--seeds", if setup.quick { quick } else { whole }]).arg("--program").arg(&program);
    searches.arg("--results").arg(setup.folder.join("search.jsonl"));
    let summaries: Vec<Summary> = lines(&mut searches).await;
    costs.iter().flat_map(of_cost).chain(summaries.iter().flat_map(of)).collect()
}

/// What a script prints: one line of JSON for each.
async fn lines<T: DeserializeOwned>(command: &mut Command) -> Vec<T> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().await.expect("the interpreter starts");
    assert!(output.status.success(), "the script ends well");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("the script prints what is read here")).collect()
}

/// Builds the example. It needs none of the SDKs.
async fn program(setup: &Setup) -> PathBuf {
    let target = setup.folder.parent().expect("the results lie in the target folder");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--quiet", "--package", "spotsweep-search", "--example", "suggestions"]);
    command.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(command.status().await.is_ok_and(|status| status.success()), "the example can be built");
    target.join("release/examples/suggestions")
}

fn of_cost(cost: &Cost) -> [Row; 2] {
    let name = format!("search/{} finished, {} pending, {} unknown", cost.finished, cost.pending, cost.gap);
    let time = Row::new(format!("{name}: own CPU"), "ms", &[cost.ms]);
    let memory = Row::new(format!("{name}: memory"), "MiB", &[cost.memory]).target(Target::AtMost(MOST_MIB));
    let is_goal = cost.finished <= 200;
    [if is_goal { time.target(Target::AtMost(MOST_MS)) } else { time }, memory]
}

fn of(summary: &Summary) -> Vec<Row> {
    let row = |what: &str, unit, value: f64| {
        let row = Row::new(format!("search/{}/{what}", summary.method), unit, &[value]);
        Row { repeats: summary.runs, ..row }
    };
    let mut rows: Vec<Row> = summary
        .regret
        .iter()
        .map(|(count, regret)| {
            let goal = REGRETS.iter().find(|(method, after, _)| *method == summary.method && after == count);
            let row = row(&format!("after {count}"), "regret", *regret);
            goal.map_or(row.clone(), |(.., most)| row.target(Target::AtMost(*most)))
        })
        .collect();
    rows.push(row("time of 200 random trials", "share", summary.share));
    rows.push(row("runs that find random's best", "share", summary.hits));
    rows.extend(summary.at_hit.map(|at| {
        let row = row("time until then", "share", at);
        if summary.method == "ours-hyperband" { row.target(Target::AtMost(MOST_TIME)) } else { row }
    }));
    rows.push(row("a suggestion", "ms", summary.ask * 1e3));
    rows
}
