//! `spotsweep replay`: recorded spot capacity, and what each way to survive reclaims makes of it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use spotsweep_simulation::replay::{
    Curves, Decisions, Parameters, Plan, ReplayError, Report, Windows, decisions, read, replay,
};

use crate::{out, show};
use spotsweep_protocol::failure::Failure;

/// `spotsweep replay`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
DIR holds a folder per window, and each of these a <zone>.json per zone, with its spot capacity and prices over the
same time. A window ends with its record: trials that are not done by then count with what they have saved, and the
makespan of such a window with its whole length. docs/replay.md tells the model and what came of it.

Examples:
  spotsweep replay --traces spot-traces --zones us-east-1a,us-east-1c --trials 20 --hours 10
  spotsweep replay --traces spot-traces --zones us-east-1a,us-east-1c --trials 20 --hours 10 --windows 0,2 \\
      --checkpoint-gib 1 --json")]
pub(crate) struct Replay {
    /// The folder with the windows
    #[arg(long, value_name = "DIR")]
    traces: PathBuf,
    /// Availability zones of one region
    #[arg(long, value_name = "ZONE,…", value_delimiter = ',', required = true)]
    zones: Vec<String>,
    /// Trials of the sweep
    #[arg(long, value_name = "N")]
    trials: u32,
    /// Hours that each trial trains when nothing disturbs it
    #[arg(long, value_name = "H")]
    hours: f64,
    /// Only these windows, by number [default: all]
    #[arg(long, value_name = "NUMBER,…")]
    windows: Option<Windows>,
    /// A file with learning curves of trials. Then only spotsweep runs, with and without interruptions as decisions
    #[arg(long, value_name = "FILE")]
    curves: Option<PathBuf>,
    /// Print one document of JSON instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    parameters: Parameters,
}

/// Replays, and prints the table or the document.
pub(super) fn run(args: Replay) -> Result<ExitCode, Failure> {
    let windows = read(&args.traces, &args.windows.unwrap_or_default()).map_err(refused)?;
    let plan = Plan { zones: args.zones, trials: args.trials, hours: args.hours, parameters: args.parameters };
    if let Some(curves) = &args.curves {
        let found = decisions(&plan, &Curves::read(curves).map_err(refused)?, &windows).map_err(refused)?;
        out::results(|out| match args.json {
            true => writeln!(out, "{}", found.json()),
            false => print_decisions(&found, &plan, out),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = replay(&plan, &windows).map_err(refused)?;
    out::results(|out| match args.json {
        true => writeln!(out, "{}", report.json()),
        false => print(&report, &plan, out),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for wrongly is a mistake of the caller.
fn refused(error: ReplayError) -> Failure {
    match error {
        asked @ ReplayError::Asked(_) => Failure::usage(asked.to_string()),
        other @ (ReplayError::Folder { .. } | ReplayError::Trace(..)) => {
            Failure::usage("--traces cannot be used").caused_by(other)
        }
        other @ (ReplayError::Run { .. } | ReplayError::Threads(_)) => {
            Failure::new("the replay came to nothing").caused_by(other)
        }
    }
}

fn print_plan(windows: usize, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let zones = plan.zones.join(", ");
    writeln!(out, "\nwindows: {windows}; zones: {zones}; in each window {} trials of {} h", plan.trials, plan.hours)
}

fn print_decisions(found: &Decisions, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    show::table(out, &found.table())?;
    let windows = found.windows.len();
    print_plan(windows, plan, out)?;
    writeln!(out, "both find the same best value in {} of {windows} windows", found.same_best())
}

fn print(report: &Report, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    show::table(out, &report.table())?;
    let windows = report.windows.len();
    print_plan(windows, plan, out)?;
    for figures in report.policies.iter().filter(|figures| figures.finished_windows < windows) {
        let (name, done) = (figures.policy.name(), figures.finished_windows);
        writeln!(
            out,
            "{name}: all trials done in {done} of {windows} windows; the others count with their whole length"
        )?;
    }
    Ok(())
}
