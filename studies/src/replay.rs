//! The replay: recorded spot capacity and prices, and what each way to survive reclaims makes of them.
//!
//! Every policy runs the same sweep in the same emulated Batch and EC2, one World after another: a zone whose record
//! goes from available to not takes all its instances back with the two-minute notice, and gives no new ones until
//! the record says so. `spotsweep` is the real `handle` with its store and its runner's protocol. Training itself is a
//! number of seconds. A window ends with its record: trials that are not done by then are told as unfinished, and
//! count with what they have saved.

mod agent;
mod curves;
mod decisions;
mod figures;
mod ledger;
mod parameters;
mod policy;
mod stage;
mod windows;

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use spotsweep_world::trace::{Trace, TraceError};

pub use curves::Curves;
pub use decisions::{Course, Decisions, decisions};
pub use figures::{Figures, Report};
pub use parameters::Parameters;
pub use policy::Policy;
pub use windows::Windows;

use curves::Study;
use ledger::Outcome;
use stage::Stage;

/// What is replayed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Availability zones of one region.
    pub zones: Vec<String>,
    /// Trials of the sweep.
    pub trials: u32,
    /// Hours that each trains when nothing disturbs it.
    pub hours: f64,
    /// The model.
    pub parameters: Parameters,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The folder of windows can't be read.
    #[error("cannot read {}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A window is no trace.
    #[error("{0} cannot be used")]
    Trace(String, #[source] TraceError),
    /// What was asked for is not there, or makes no sense.
    #[error("{0}")]
    Asked(String),
    /// A trial came to what the model does not know.
    #[error("{window}, {policy}: {problem}")]
    Run {
        /// Which window.
        window: String,
        /// Whose run.
        policy: &'static str,
        /// What.
        problem: String,
    },
    /// No thread or runtime could be had.
    #[error("cannot run the windows")]
    Threads(#[source] std::io::Error),
}

/// Replays windows: every policy in each of them. The same input gives the same answer, however many threads there are.
///
/// # Errors
/// [`ReplayError`], which says what to give instead.
pub fn replay(plan: &Plan, windows: &[(String, Trace)]) -> Result<Report, ReplayError> {
    check(plan, windows)?;
    let runs = windows.iter().flat_map(|window| Policy::ALL.map(|policy| Run { window, policy, study: None }));
    let runs: Vec<Run<'_>> = runs.collect();
    let outcomes = run_all(plan, &runs)?;
    let names = windows.iter().map(|(name, _)| name.clone()).collect();
    Ok(Report::new(plan, names, runs.iter().map(|run| run.policy).zip(outcomes)))
}

/// One policy in one window.
struct Run<'a> {
    window: &'a (String, Trace),
    policy: Policy,
    /// What its trials report, where that matters.
    study: Option<Study>,
}

/// The runs' outcomes, in their order.
fn run_all(plan: &Plan, runs: &[Run<'_>]) -> Result<Vec<Outcome>, ReplayError> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_err(ReplayError::Threads)?.get().min(runs.len());
    let mut done: Vec<(usize, Outcome)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(plan, runs, &next))).collect();
        let finished = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        finished.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten().collect())
    })?;
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Takes runs until none is left.
fn work(plan: &Plan, runs: &[Run<'_>], next: &AtomicUsize) -> Result<Vec<(usize, Outcome)>, ReplayError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(ReplayError::Threads)?;
    let mut done = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(Run { window: (window, trace), policy, study }) = runs.get(number) else { return Ok(done) };
        let stage = Stage::new(plan, *policy, study.as_ref(), trace);
        let outcome = runtime.block_on(async { stage?.run().await });
        let failed = |problem| ReplayError::Run { window: window.clone(), policy: policy.name(), problem };
        done.push((number, outcome.map_err(failed)?));
    }
}

/// Most trials of one replay: beyond it the windows, not the policies, decide everything.
const MOST_TRIALS: u32 = 500;

/// Longest trial: windows have some days.
const MOST_HOURS: f64 = 1000.0;

/// gp3's largest (EBS user guide, "General Purpose SSD volumes").
const LARGEST_VOLUME_GIB: u32 = 65_536;

fn check(plan: &Plan, windows: &[(String, Trace)]) -> Result<(), ReplayError> {
    let asked = |problem: String| Err(ReplayError::Asked(problem));
    if !(1..=MOST_TRIALS).contains(&plan.trials) {
        return asked(format!("--trials is {}: give 1 to {MOST_TRIALS}", plan.trials));
    }
    if !(plan.hours > 0.0 && plan.hours <= MOST_HOURS) {
        return asked(format!("--hours is {}: give a number above 0, of at most {MOST_HOURS}", plan.hours));
    }
    let gib = stage::volume_gib(plan);
    if gib > LARGEST_VOLUME_GIB {
        return asked(format!(
            "dataset and two checkpoints need a volume of {gib} GiB: gp3 has {LARGEST_VOLUME_GIB} at most; \
             lower --dataset-gib or --checkpoint-gib"
        ));
    }
    if windows.is_empty() {
        return asked("no window is left to replay: leave --windows out, or name one that is there".into());
    }
    let mut zones = plan.zones.clone();
    zones.sort();
    zones.dedup();
    if plan.zones.is_empty() || zones.len() < plan.zones.len() {
        return asked("--zones must name at least one zone, each once, such as us-east-1a,us-east-1c".into());
    }
    let region = |zone: &str| zone.trim_end_matches(|c: char| c.is_ascii_lowercase()).to_owned();
    if let Some(other) = zones.iter().find(|zone| region(zone) != region(&zones[0])) {
        return asked(format!(
            "{} and {other} are not of one region: a volume's snapshot stays in its region",
            zones[0]
        ));
    }
    windows.iter().try_for_each(|(window, trace)| {
        plan.zones.iter().try_for_each(|zone| {
            let there = trace.zones().collect::<Vec<_>>().join(", ");
            if !trace.zones().any(|known| known == zone) {
                return asked(format!("{window} has no zone {zone}; there are {there}"));
            }
            if trace.dollars(zone, trace.duration(), trace.duration()).is_none() {
                return asked(format!("{window} has no spot_price for {zone}: without one nothing can be charged"));
            }
            Ok(())
        })
    })
}

/// Reads the windows of a folder that were asked for.
///
/// # Errors
/// [`ReplayError`], which lists what is there.
pub fn read(folder: &Path, wanted: &Windows) -> Result<Vec<(String, Trace)>, ReplayError> {
    windows::read(folder, wanted)
}
