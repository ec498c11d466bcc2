//! The command line: one file per command.

pub(crate) mod acceptance;
pub(crate) mod cancel;
#[cfg(feature = "local")]
mod cloudformation;
mod code;
pub(crate) mod completions;
pub(crate) mod cost;
#[cfg(feature = "local")]
mod demo;
#[cfg(feature = "local")]
mod deploy;
#[cfg(feature = "local")]
mod destroy;
pub(crate) mod doctor;
mod expand;
pub(crate) mod explain;
pub(crate) mod export;
#[cfg(feature = "local")]
mod init;
#[cfg(feature = "local")]
mod local;
pub(crate) mod logs;
mod ls;
pub(crate) mod pull;
pub(crate) mod redrive;
pub(crate) mod report;
pub(crate) mod retry;
mod secret;
mod status;
mod submit;
mod suggest;
#[cfg(feature = "local")]
mod try_out;
mod validate;
pub(crate) mod watch;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use acceptance::Acceptance;
use cancel::Cancel;
use code::Code;
use completions::Completions;
use cost::Cost;
#[cfg(feature = "local")]
use demo::Demo;
#[cfg(feature = "local")]
use deploy::Deploy;
#[cfg(feature = "local")]
use destroy::Destroy;
use doctor::Doctor;
use expand::Expand;
use explain::Explain;
use export::Export;
#[cfg(feature = "local")]
use init::Init;
#[cfg(feature = "local")]
use local::Local;
use logs::Logs;
use ls::Ls;
use pull::Pull;
use redrive::Redrive;
use report::Report;
use retry::Retry;
use secret::Secret;
use status::Status;
use submit::Submit;
use suggest::Suggest;
#[cfg(feature = "local")]
use try_out::TryOut;
use validate::Validate;
use watch::Watch;

use spotsweep_protocol::failure::Failure;

/// The version, with the commit that a release was built from. `.ci/wheel` sets the variable.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("SPOTSWEEP_COMMIT").unwrap_or("built from a checkout");
    format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
});

/// Hyperparameter sweeps on AWS Batch Spot: drop a file, get one trial per parameter set.
#[derive(Debug, Parser)]
#[command(name = "spotsweep", version = VERSION.as_str(), arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  spotsweep demo                          train 24 digit classifiers on this machine, no AWS needed
  spotsweep init                          write a sweep file for the script of this folder
  spotsweep try sweep.yaml                show whether it survives interruptions, on this machine
  spotsweep deploy                        create or update a deployment in your AWS account
  spotsweep validate sweep.yaml           every mistake of a sweep file, with how to fix it
  spotsweep expand sweep.yaml --limit 5   the first five trials that it stands for
  spotsweep submit sweep.yaml             drop it into the bucket and wait for the plan
  spotsweep watch                         follow it to its end
  spotsweep status digits-1a2b3c4d5e6f    how its trials are doing
  spotsweep explain digits-1a2b3c4d5e6f 7 what happened to one of them
  spotsweep logs digits-1a2b3c4d5e6f 7    what it prints
  spotsweep report digits-1a2b3c4d5e6f --open
  spotsweep pull digits-1a2b3c4d5e6f --best
  spotsweep doctor --stack spotsweep      whether the deployment is sound

Exit codes: 0 ok, 1 failed or invalid, 2 wrong usage. Results go to standard output, everything else to standard \
error. Ctrl-C leaves nothing half done. NO_COLOR turns colours off.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole sweep on this machine: local stack up, file dropped, trials trained, results collected
    #[cfg(feature = "local")]
    Demo(Demo),
    /// Write a sweep file for a training script, from its options
    #[cfg(feature = "local")]
    Init(Init),
    /// Try a training script: one trial on this machine, interrupted at several moments
    #[cfg(feature = "local")]
    Try(TryOut),
    /// Keep the local stack running in the background
    #[cfg(feature = "local")]
    #[command(subcommand)]
    Local(Local),
    /// Create or update the deployment in an AWS account
    #[cfg(feature = "local")]
    Deploy(Deploy),
    /// Remove the deployment from an AWS account
    #[cfg(feature = "local")]
    Destroy(Destroy),
    /// Drop a sweep file into the bucket and wait for its plan
    Submit(Submit),
    /// Send folders of code, list and delete them
    #[command(subcommand)]
    Code(Code),
    /// Store secrets for sweeps, list and delete them
    #[command(subcommand)]
    Secret(Secret),
    /// List the sweeps
    Ls(Ls),
    /// Show how one sweep's trials are doing
    Status(Status),
    /// Follow a sweep to its end: trials, zones, interruptions, the best so far, what it waits for
    Watch(Watch),
    /// Tell what happened to one trial, and why
    Explain(Explain),
    /// Show the parameters that the next trial of a Bayesian search would get, and why
    Suggest(Suggest),
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
    /// Interrupt small trials, and judge whether AWS behaves as this product assumes
    Acceptance(Acceptance),
    /// Hand events that ended in a dead-letter queue to their functions again
    Redrive(Redrive),
    /// Check a sweep file without any stack
    Validate(Validate),
    /// Print the trials that a sweep file stands for
    Expand(Expand),
    /// Print a shell's completion script
    Completions(Completions),
}

/// Runs a command, and returns its exit code.
pub(crate) async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        #[cfg(feature = "local")]
        Command::Demo(args) => demo::run(args).await,
        #[cfg(feature = "local")]
        Command::Init(args) => init::run(args).await,
        #[cfg(feature = "local")]
        Command::Try(args) => try_out::run(args).await,
        #[cfg(feature = "local")]
        Command::Local(args) => local::run(args).await,
        #[cfg(feature = "local")]
        Command::Deploy(args) => deploy::run(args).await,
        #[cfg(feature = "local")]
        Command::Destroy(args) => destroy::run(args).await,
        Command::Submit(args) => submit::run(args).await,
        Command::Code(args) => code::run(args).await,
        Command::Secret(args) => secret::run(args).await,
        Command::Ls(args) => ls::run(args).await,
        Command::Status(args) => status::run(args).await,
        Command::Watch(args) => watch::run(args).await,
        Command::Explain(args) => explain::run(args).await,
        Command::Suggest(args) => suggest::run(args).await,
        Command::Logs(args) => logs::run(args).await,
        Command::Report(args) => report::run(args).await,
        Command::Cost(args) => cost::run(args).await,
        Command::Pull(args) => pull::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Retry(args) => retry::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Acceptance(args) => acceptance::run(args).await,
        Command::Redrive(args) => redrive::run(args).await,
        Command::Validate(args) => validate::run(args).await,
        Command::Expand(args) => expand::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

#[cfg(all(test, feature = "local"))]
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
            "destroy --stack s --with-data --yes",
            "deploy --stack s --parameter MaxVcpus=64 --parameter AlarmMail= --from f --dry-run --yes",
            "local down",
            "local reclaim",
            "local reclaim digits-0123456789ab --trial 7 --notice 2.5",
            "demo --code . --sweep a.yaml",
            "local env",
            "local serve",
            "submit a.yaml --bucket b --env A=1 --env B --yes",
            "code push",
            "code push train --yes --bucket b",
            "code ls",
            "code rm 0a --yes",
            "secret set KEY --bucket b",
            "secret ls",
            "secret rm KEY --yes",
            "ls --json --table t",
            "status digits-0123456789ab --json",
            "watch digits-0123456789ab --once --json --table t",
            "watch digits-0123456789ab --plain",
            "watch",
            "watch digits --once",
            "demo --reclaims 12 --seed 1 --trace w",
            "demo --block-devices",
            "explain digits-0123456789ab 7 --json --kept out",
            "explain digits-0123456789ab 7 --table t",
            "acceptance --stack s --max-usd 0.5 --queue q --job-definition d",
            "redrive",
            "redrive --failed --dry-run --json --stack s",
            "validate - --json",
            "expand a.yaml --limit 3 --format csv",
        ];
        for line in accepted {
            let parsed = Args::try_parse_from(format!("spotsweep {line}").split(' '));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
        let refused = [
            "deploy --parameter MaxVcpus",
            "destroy --stack",
            "acceptance --max-usd nan",
            "demo --timeout 0",
            "demo --reclaims -1",
            "explain digits-0123456789ab",
            "explain digits-0123456789ab 7 --kept out --table t",
            "demo --job-definition other",
            "local",
            "local reclaim --notice -1",
            "local reclaim --trial x",
            "submit",
            "status",
            "watch digits-0123456789ab --plain --json",
            "redrive --failed --undelivered",
            "validate",
            "expand a.yaml --limit -1",
            "expand a.yaml --format xml",
        ];
        for line in refused {
            let parsed = Args::try_parse_from(format!("spotsweep {line}").split(' '));
            assert!(parsed.as_ref().is_err_and(|error| error.exit_code() == 2), "{line}: {parsed:?}");
        }
    }
}
