//! `simulate` runs many seeds, each an interrupted sweep with its own mixture of faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use mimalloc::MiMalloc;
use serde_json::json;
use spotsweep_simulation::calls::Call;
use spotsweep_simulation::decision_log::Coverage;
use spotsweep_simulation::run::{Mixture, Simulation};
use spotsweep_simulation::shrink::{Shrunk, shrink};

/// Runs interrupted sweeps on a virtual clock, and looks after every step whether anything is lost.
#[derive(Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Ends with one line of JSON.
    #[arg(long)]
    json: bool,
    /// Prints what every invocation did; for one seed.
    #[arg(long)]
    log: bool,
    /// Prints how often each event met each stage of a workspace, and which function made which calls.
    #[arg(long)]
    coverage: bool,
}

/// Half of a run is making and dropping JSON, so this allocator makes it faster.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Number of failing seeds that are shrunk and printed as a scenario; the others are only named.
const MOST_SHRUNK: u64 = 3;

/// Totals of all threads.
#[derive(Default)]
struct Totals {
    most_calls: Mutex<BTreeMap<String, usize>>,
    calls: AtomicU64,
    coverage: Mutex<Coverage>,
    used: Mutex<BTreeSet<(String, Call)>>,
    next: AtomicU64,
    violations: AtomicU64,
    steps: AtomicU64,
}

fn main() -> std::io::Result<ExitCode> {
    let arguments = Arguments::parse();
    let started = Instant::now();
    let totals = Totals::default();
    let threads = std::thread::available_parallelism()?;
    std::thread::scope(|scope| -> std::io::Result<()> {
        let workers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(|| work(&arguments, &totals))).collect();
        for worker in workers {
            worker.join().map_err(|_| std::io::Error::other("a simulation panicked"))??;
        }
        Ok(())
    })?;
    let violations = totals.violations.load(Ordering::Relaxed);
    let summary = json!({
        "seeds": arguments.seeds, "first_seed": arguments.first_seed, "violations": violations,
        "steps": totals.steps.load(Ordering::Relaxed), "calls": totals.calls.load(Ordering::Relaxed),
        "most_calls": *totals.most_calls.lock().unwrap_or_else(PoisonError::into_inner), "seconds": started.elapsed().as_secs_f64(),
    });
    let mut out = std::io::stdout();
    if arguments.coverage {
        let coverage = totals.coverage.lock().unwrap_or_else(PoisonError::into_inner);
        for ((stage, event), count) in &*coverage {
            writeln!(out, "{count:>12}  {stage:<18} {event}")?;
        }
        writeln!(out, "{} pairs of stage and event", coverage.len())?;
        for (function, call) in &*totals.used.lock().unwrap_or_else(PoisonError::into_inner) {
            writeln!(out, "{function:<18} {}", call.action)?;
        }
    }
    if arguments.json {
        writeln!(out, "{summary}")?;
    } else {
        writeln!(out, "{} seeds from {}: {violations} violations", arguments.seeds, arguments.first_seed)?;
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn work(arguments: &Arguments, totals: &Totals) -> std::io::Result<()> {
    loop {
        let number = totals.next.fetch_add(1, Ordering::Relaxed);
        if number >= arguments.seeds {
            return Ok(());
        }
        let seed = arguments.first_seed + number;
        let mut simulation = Simulation::of_seed(seed);
        if arguments.log {
            simulation.keep_log();
        }
        if arguments.coverage {
            simulation.harness.store.decision_log.count();
            simulation.watch.used = Some(BTreeSet::new());
        }
        let outcome = simulation.run();
        totals.steps.fetch_add(simulation.steps(), Ordering::Relaxed);
        let mut out = std::io::stdout().lock();
        for line in simulation.log() {
            writeln!(out, "{line}")?;
        }
        if let Err(problem) = outcome {
            let before = totals.violations.fetch_add(1, Ordering::Relaxed);
            writeln!(out, "seed {seed}, after {:?}: {problem}", simulation.elapsed())?;
            writeln!(out, "# {:?}", Mixture::of_seed(seed).chaos)?;
            if let Some(shrunk) = (before < MOST_SHRUNK && !arguments.log).then(|| shrink(seed, None)).flatten() {
                let Shrunk { problem, strokes, left, scenario } = shrunk;
                writeln!(out, "# of {strokes} strokes of bad luck {left} are enough: {problem}\n{scenario}")?;
            }
        }
        drop(out);
        totals.calls.fetch_add(simulation.watch.calls, Ordering::Relaxed);
        let mut most = totals.most_calls.lock().unwrap_or_else(PoisonError::into_inner);
        for (function, calls) in &simulation.watch.most_calls {
            let held = most.entry(function.clone()).or_default();
            *held = calls.max(held).to_owned();
        }
        drop(most);
        if arguments.coverage {
            let mut all = totals.coverage.lock().unwrap_or_else(PoisonError::into_inner);
            for (pair, count) in simulation.harness.store.decision_log.coverage() {
                *all.entry(pair).or_default() += count;
            }
            let used = simulation.watch.used.take().unwrap_or_default();
            totals.used.lock().unwrap_or_else(PoisonError::into_inner).extend(used);
        }
    }
}
