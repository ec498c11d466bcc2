//! `simulate`: many seeds, each an interrupted sweep with a mixture of trouble of its own.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use serde_json::json;
use spotsweep_simulation::run::Simulation;

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
}

/// What all threads have done.
#[derive(Default)]
struct Totals {
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
        "steps": totals.steps.load(Ordering::Relaxed), "seconds": started.elapsed().as_secs_f64(),
    });
    let mut out = std::io::stdout();
    if arguments.json {
        writeln!(out, "{summary}")?;
    } else {
        writeln!(out, "{} seeds from {}: {violations} violations", arguments.seeds, arguments.first_seed)?;
    }
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn work(arguments: &Arguments, totals: &Totals) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
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
        let outcome = runtime.block_on(simulation.run());
        totals.steps.fetch_add(simulation.steps(), Ordering::Relaxed);
        let mut out = std::io::stdout().lock();
        for line in simulation.log() {
            writeln!(out, "{line}")?;
        }
        if let Err(problem) = outcome {
            totals.violations.fetch_add(1, Ordering::Relaxed);
            writeln!(out, "seed {seed}, after {:?}: {problem}", simulation.elapsed())?;
        }
    }
}
