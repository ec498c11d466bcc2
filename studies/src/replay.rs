//! The replay: recorded Spot capacity and prices, and the outcome of each policy against reclaims.
//!
//! Every policy runs the same sweep in the same emulated Batch and EC2, each in a World of its own. When a zone's
//! record changes from available to unavailable, EC2 takes all its instances with the two-minute notice. The zone
//! gives no new ones until the record changes back. `spotsweep` is the real `handle` with its store and its runner's
//! protocol. Training itself is a number of seconds. A window ends with its record. Trials that are not done by then
//! are unfinished, and count with what they have saved.

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

/// The plan of a replay.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The availability zones of one region.
    pub zones: Vec<String>,
    /// The trials of the sweep.
    pub trials: u32,
    /// The hours that each trial trains without interruptions.
    pub hours: f64,
    /// The parameters of the model.
    pub parameters: Parameters,
}

/// The reason why a replay has no result.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The folder of windows cannot be read.
    #[error("cannot read {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A window is not a valid trace.
    #[error("{0} cannot be used")]
    Trace(String, #[source] TraceError),
    /// The arguments name something that does not exist, or are invalid.
    #[error("{0}")]
    Asked(String),
    /// A trial has reached a state that the model does not have.
    #[error("{window}, {policy}: {problem}")]
    Run {
        /// The window.
        window: String,
        /// The policy.
        policy: &'static str,
        /// The state.
        problem: String,
    },
    /// The system gives no thread or runtime.
    #[error("cannot run the windows")]
    Threads(#[source] std::io::Error),
}

/// Replays windows with every policy in each of them. The same input gives the same result with any number of threads.
///
/// # Errors
/// Returns a [`ReplayError`] that states what to change.
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
    /// The learning curves of its trials, if interruptions are decisions.
    study: Option<Study>,
}

/// Returns the runs' outcomes, in the order of the runs.
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

/// Runs the next run until none is left.
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

/// The most trials of one replay. With more of them, the windows and not the policies decide everything.
const MOST_TRIALS: u32 = 500;

/// The longest trial in hours, because windows have a few days.
const MOST_HOURS: f64 = 1000.0;

/// The largest size of a gp3 volume (EBS user guide, "General Purpose SSD volumes").
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

/// Reads the selected windows of a folder.
///
/// # Errors
/// Returns a [`ReplayError`] that lists the existing windows.
pub fn read(folder: &Path, wanted: &Windows) -> Result<Vec<(String, Trace)>, ReplayError> {
    windows::read(folder, wanted)
}
