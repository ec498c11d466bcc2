//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::acceptance::Acceptance;
use crate::commands::cancel::Cancel;
use crate::commands::completions::Completions;
use crate::commands::cost::Cost;
use crate::commands::doctor::Doctor;
use crate::commands::export::Export;
use crate::commands::logs::Logs;
use crate::commands::pull::Pull;
use crate::commands::redrive::Redrive;
use crate::commands::replay::Replay;
use crate::commands::report::Report;
use crate::commands::retry::Retry;
use crate::commands::top::Top;
use crate::commands::watch::Watch;

/// Hyperparameter sweeps on AWS Batch Spot: drop a file, get one trial per parameter set.
#[derive(Debug, Parser)]
#[command(name = "spotsweep", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  spotsweep demo                          train 24 digit classifiers on this machine, no AWS needed
  spotsweep validate sweep.yaml           every mistake of a sweep file, with how to mend it
  spotsweep expand sweep.yaml --limit 5   the first five trials that it stands for
  spotsweep submit sweep.yaml             drop it into the bucket and wait for the plan
  spotsweep watch digits-1a2b3c4d5e6f     follow it to its end
  spotsweep status digits-1a2b3c4d5e6f    how its trials are doing
  spotsweep explain digits-1a2b3c4d5e6f 7 what happened to one of them
  spotsweep logs digits-1a2b3c4d5e6f 7    what it prints
  spotsweep report digits-1a2b3c4d5e6f --open
  spotsweep pull digits-1a2b3c4d5e6f --best
  spotsweep doctor --stack spotsweep      whether the deployment is sound

Exit codes: 0 ok, 1 failed or invalid, 2 wrong usage. Results go to standard output, everything else to standard \
error. Ctrl-C leaves nothing half done. NO_COLOR turns colours off.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole sweep on this machine: local stack up, file dropped, trials trained, results collected
    Demo(Demo),
    /// Keep the local stack running in the background
    #[command(subcommand)]
    Local(Local),
    /// Drop a sweep file into the bucket and wait for its plan
    Submit(Submit),
    /// List the sweeps
    Ls(Ls),
    /// Show how one sweep's trials are doing
    Status(Status),
    /// Follow a sweep to its end: trials, zones, interruptions, the best so far, what it waits for
    Watch(Watch),
    /// Show every sweep that is not over
    Top(Top),
    /// Tell what happened to one trial, and why
    Explain(Explain),
    /// Print what a trial has printed, and follow it
    Logs(Logs),
    /// Fetch a sweep's report page, show it, or make a link to it
    Report(Report),
    /// Show what a sweep has cost, and would have cost on demand
    Cost(Cost),
    /// Fetch models and everything else that trials have collected
    Pull(Pull),
    /// Write a sweep down for other programs: CSV, JSON, MLflow
    Export(Export),
    /// End a sweep, or some of its trials
    Cancel(Cancel),
    /// Run trials once more, as a new sweep
    Retry(Retry),
    /// Check a deployment: account, functions, bucket, queues, Batch
    Doctor(Doctor),
    /// Interrupt four small trials, and judge whether AWS behaves as this product assumes
    Acceptance(Acceptance),
    /// Hand events that ended in a dead-letter queue to their functions again
    Redrive(Redrive),
    /// Check a sweep file without any stack
    Validate(Validate),
    /// Print the trials that a sweep file stands for
    Expand(Expand),
    /// Replay recorded spot capacity and prices: what a sweep costs this way and others
    Replay(Box<Replay>),
    /// Print a shell's completion script
    Completions(Completions),
}

/// `spotsweep demo`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep demo
  spotsweep demo --sweep my-sweep.yaml --json
  spotsweep demo --reclaims 12 --seed 1         twelve spot reclaims of every kind meanwhile
  spotsweep demo --keep out                     also keep the bucket and the table's records")]
pub(crate) struct Demo {
    /// The sweep file [default: the bundled digits example; with reclaims, one that trains longer]
    #[arg(long, value_name = "FILE")]
    pub(crate) sweep: Option<PathBuf>,
    /// Print the sweep's summary as one line of JSON; everything else goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave a copy of the bucket and a dump of the table in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Where the models and results go, in a folder of the sweep's name
    #[arg(long, value_name = "DIR", default_value = "spotsweep-results")]
    pub(crate) results: PathBuf,
    /// Give up after this many seconds of training
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Take instances away N times while trials train on them: with notice, without, a whole zone, …
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) reclaims: u32,
    /// Which instances, when and how: the same seed makes the same plan
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Let zones lose and regain their capacity as in a recorded spot trace: a folder of <zone>.json files
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Do not drain instances on a notice, as AWS's default is: Batch may start a trial again on the one that is taken
    #[arg(long)]
    pub(crate) no_draining: bool,
    #[command(flatten)]
    pub(crate) stack: StackOptions,
}

/// How the local stack is made.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StackOptions {
    /// Job definition of sweeps that name none: train runs train.py, train-seed runs train_seed.py
    #[arg(long, value_name = "NAME", default_value = "train", value_parser = ["train", "train-seed"])]
    pub(crate) job_definition: String,
    /// Take the functions and the runner from DIR instead of building them
    #[arg(long, value_name = "DIR")]
    pub(crate) binaries: Option<PathBuf>,
    /// Make volumes real: ext4 on loop devices, mounted (needs root); else they are folders
    #[arg(long)]
    pub(crate) block_devices: bool,
}

/// `spotsweep local`
#[derive(Debug, Subcommand)]
pub(crate) enum Local {
    /// Start the local stack and leave it running
    #[command(after_help = "Example:\n  spotsweep local up && eval \"$(spotsweep local env)\"")]
    Up(Up),
    /// Stop the local stack and everything that it started
    #[command(after_help = "Example:\n  spotsweep local down")]
    Down,
    /// Print the variables that let SDKs and tools reach the local stack
    #[command(after_help = "Example:\n  eval \"$(spotsweep local env)\"")]
    Env,
    /// Host the local stack until told to stop (what `up` starts in the background)
    #[command(hide = true)]
    Serve(Up),
}

/// `spotsweep local up`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Up {
    /// The folder that trials run in [default: examples/digits]
    #[arg(long, value_name = "DIR")]
    pub(crate) code: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stack: StackOptions,
}

/// `spotsweep submit`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --bucket the local stack is used where one is running.

Examples:
  spotsweep submit sweep.yaml
  spotsweep submit sweep.yaml --bucket my-sweeps")]
pub(crate) struct Submit {
    /// The sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The control plane's bucket
    #[arg(long, env = "SPOTSWEEP_BUCKET", value_name = "BUCKET")]
    pub(crate) bucket: Option<String>,
    /// Print the plan as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spotsweep ls`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  spotsweep ls --json")]
pub(crate) struct Ls {
    /// One line of JSON per sweep
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// `spotsweep status`
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  spotsweep status digits-1a2b3c4d5e6f")]
pub(crate) struct Status {
    /// The sweep's id, as `ls` and `submit` print it
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: String,
    /// Print everything as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// `spotsweep explain`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep explain digits-1a2b3c4d5e6f 7
  spotsweep explain digits-1a2b3c4d5e6f 7 --kept out    after spotsweep demo --keep out")]
pub(crate) struct Explain {
    /// The sweep's id, as `ls` and `submit` print it
    #[arg(value_name = "SWEEP")]
    pub(crate) sweep: String,
    /// The trial's index within the sweep, from 0
    #[arg(value_name = "INDEX")]
    pub(crate) index: u32,
    /// Print everything as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the copy of the table that `demo --keep DIR` made
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    pub(crate) kept: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: Table,
}

/// Which control plane to read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Table {
    /// The control plane's table; without it the local stack is used where one is running
    #[arg(long = "table", env = "SPOTSWEEP_TABLE", value_name = "TABLE")]
    pub(crate) name: Option<String>,
}

/// `spotsweep validate`
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 valid, 1 invalid, 2 wrong usage or unreadable file.

Examples:
  spotsweep validate sweep.yaml
  spotsweep validate sweep.yaml --json")]
pub(crate) struct Validate {
    /// The sweep file; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the verdict as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spotsweep expand`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep expand sweep.yaml
  spotsweep expand sweep.yaml --limit 10 --format table")]
pub(crate) struct Expand {
    /// The sweep file; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only the first N trials
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
    /// Stands for the upload's version, which seeds random sampling in files that fix no seed
    #[arg(long, value_name = "VERSION", default_value = "")]
    pub(crate) file_version: String,
}

/// How `expand` prints trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header
    Csv,
    /// Aligned columns
    Table,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_is_accepted_and_what_is_not() {
        let accepted = [
            "demo",
            "demo --sweep a.yaml --json --keep out --binaries b",
            "demo --job-definition train-seed --timeout 60",
            "local up --code . --binaries b",
            "local down",
            "local env",
            "local serve",
            "submit a.yaml --bucket b",
            "ls --json --table t",
            "status digits-0123456789ab --json",
            "watch digits-0123456789ab --once --json --table t",
            "watch digits-0123456789ab --plain",
            "top --once",
            "demo --reclaims 12 --seed 1 --trace w",
            "demo --block-devices",
            "explain digits-0123456789ab 7 --json --kept out",
            "explain digits-0123456789ab 7 --table t",
            "acceptance --recorded events.json --output out",
            "acceptance --stack s --max-usd 0.5 --queue q --job-definition d",
            "redrive",
            "redrive --failed --dry-run --json --stack s",
            "validate - --json",
            "expand a.yaml --limit 3 --format csv",
            "replay --traces t --zones a,b --trials 2 --hours 1.5 --windows 0,2 --checkpoint-gib 1 --json",
        ];
        for line in accepted {
            let parsed = Args::try_parse_from(format!("spotsweep {line}").split(' '));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
        let refused = [
            "deploy",
            "acceptance --max-usd nan",
            "acceptance --recorded events.json --max-usd 1",
            "demo --timeout 0",
            "demo --reclaims -1",
            "explain digits-0123456789ab",
            "explain digits-0123456789ab 7 --kept out --table t",
            "demo --job-definition other",
            "local",
            "submit",
            "status",
            "watch",
            "watch digits-0123456789ab --plain --json",
            "redrive --failed --undelivered",
            "validate",
            "expand a.yaml --limit -1",
            "replay --traces t --trials 2 --hours 1",
            "replay --traces t --zones a --trials 2 --hours 1 --checkpoint-gib 0",
            "replay --traces t --zones a --trials 2 --hours 1 --windows 0,,2",
            "expand a.yaml --format xml",
        ];
        for line in refused {
            let parsed = Args::try_parse_from(format!("spotsweep {line}").split(' '));
            assert!(parsed.as_ref().is_err_and(|error| error.exit_code() == 2), "{line}: {parsed:?}");
        }
    }
}
