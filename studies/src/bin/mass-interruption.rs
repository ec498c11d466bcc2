//! `mass-interruption` puts all instances of a fleet under notice at once. It counts the workspaces whose snapshot is
//! begun before their instances end, and measures the time until all are saved. It compares both with EC2's request
//! limits.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use spotsweep_studies::mass_interruption::{Fleet, FleetOutcome, interrupt};
use spotsweep_studies::table::{self, Table};

/// The trials on each instance.
const TRIALS_EACH: u32 = 4;

/// The least share of the snapshots that the limits allow.
const LEAST_SHARE: f64 = 0.95;

/// Put all instances of a fleet under notice at once, on a virtual clock
///
/// The exit code is 1 if a fleet has fewer snapshots in time than 95 % of what EC2's request limits allow.
#[derive(Debug, Parser)]
struct Arguments {
    /// Instances of each fleet, with four trials each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 100, 1000])]
    instances: Vec<u32>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether each fleet has enough snapshots in time.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let header = [
        "instances",
        "workspaces",
        "allowed by limits",
        "snapshots in time",
        "volumes off instances s",
        "final snapshots begun s",
        "by limits s",
        "failed invocations",
    ];
    let mut rows: Table = vec![header.map(str::to_owned).into()];
    let mut has_enough = true;
    for &instances in &arguments.instances {
        let outcome = interrupt(Fleet { instances, trials_each: TRIALS_EACH })?;
        has_enough &= outcome.begun_in_time as f64 >= LEAST_SHARE * outcome.allowed_in_time;
        rows.push(row(instances, &outcome));
    }
    table::write(&rows, &mut io::stdout().lock()).map_err(|error| error.to_string())?;
    Ok(has_enough)
}

fn row(instances: u32, outcome: &FleetOutcome) -> Vec<String> {
    vec![
        instances.to_string(),
        outcome.workspaces.to_string(),
        format!("{:.0}", outcome.allowed_in_time),
        outcome.begun_in_time.to_string(),
        format!("{:.0}", outcome.parked_seconds),
        format!("{:.0}", outcome.saved_seconds),
        format!("{:.0}", outcome.allowed_seconds),
        outcome.failed.to_string(),
    ]
}
