//! `replay` computes what a sweep costs on recorded Spot capacity under each policy.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_studies::replay::{
    Curves, Decisions, Parameters, Plan, ReplayError, Report, Windows, decisions, read, replay,
};
use spotsweep_studies::table;

/// Replay recorded spot capacity and prices: what a sweep costs this way and others
#[derive(Debug, Parser)]
#[command(after_help = "\
DIR holds a folder per window, and each of these a <zone>.json per zone, with its spot capacity and prices over the
same time. A window ends with its record: trials that are not done by then count with what they have saved, and the
makespan of such a window with its whole length. docs/replay.md describes the model and its results.

Examples:
  replay --traces spot-traces --zones us-east-1a,us-east-1c --trials 20 --hours 10
  replay --traces spot-traces --zones us-east-1a,us-east-1c --trials 20 --hours 10 --windows 0,2 \\
      --checkpoint-gib 1 --json")]
struct Arguments {
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

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// Runs the replay, and prints the table or the document.
fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { traces, zones, trials, hours, windows, curves, json, parameters } = arguments;
    let windows = read(&traces, &windows.unwrap_or_default()).map_err(refused)?;
    let plan = Plan { zones, trials, hours, parameters };
    let mut out = io::stdout().lock();
    let written = match &curves {
        Some(curves) => {
            let found = decisions(&plan, &Curves::read(curves).map_err(refused)?, &windows).map_err(refused)?;
            if json { writeln!(out, "{}", found.json()) } else { print_decisions(&found, &plan, &mut out) }
        }
        None => {
            let report = replay(&plan, &windows).map_err(refused)?;
            if json { writeln!(out, "{}", report.json()) } else { print(&report, &plan, &mut out) }
        }
    };
    written.context(|| "cannot write to standard output")
}

/// Returns the failure for an error. A wrong argument is a mistake of the caller.
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
    table::write(&found.table(), out)?;
    let windows = found.windows.len();
    print_plan(windows, plan, out)?;
    writeln!(out, "both find the same best value in {} of {windows} windows", found.same_best())
}

fn print(report: &Report, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    table::write(&report.table(), out)?;
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_accepted_and_what_is_not() {
        Arguments::command().debug_assert();
        let parsed = |line: &str| Arguments::try_parse_from(format!("replay --traces t --hours 1.5 {line}").split(' '));
        assert!(parsed("--zones a,b --trials 2 --windows 0,2 --checkpoint-gib 1 --json").is_ok());
        for line in [
            "--trials 2",
            "--zones a --trials 2 --checkpoint-gib 0",
            "--zones a --trials 2 --windows 0,,2",
            "--zones a",
        ] {
            assert!(parsed(line).is_err_and(|error| error.exit_code() == 2), "{line}");
        }
    }
}
