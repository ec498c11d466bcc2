//! `spotsweep validate`: judges a sweep file.

mod asked;
mod collected;
mod data;
mod last_sweep;
mod prices;
mod quote;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;
use spotsweep_sweep_file::Rejected;

use self::asked::Asked;
use self::quote::Quote;
use crate::{code_folder, dropped, out, sweep_file};

/// `spotsweep validate`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks what `submit` and the bucket check of a file: its name, its size and what is in it. What a deployment has (queues, \
snapshots) only `submit` can check. Only --quote asks a deployment: for prices, \
and for the last sweep of the same command, code and job definition.

Exit codes: 0 valid, 1 invalid, or with --quote a long training without checkpoints, 2 wrong usage or unreadable file.

Examples:
  spotsweep validate sweep.yaml
  spotsweep validate sweep.yaml --quote --hours 6
  spotsweep validate sweep.yaml --json")]
pub(crate) struct Validate {
    /// The sweep file; - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the verdict as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what a trial and the sweep are expected to cost at today's Spot prices of the deployment's queue, the hours
    /// billed with checkpoints and without, the most that kept workspaces cost, and what collected files cost
    #[arg(long)]
    pub(crate) quote: bool,
    /// Hours that one trial trains [default: the file's `timeout`; without one, what the trials of the last sweep of this
    /// code took; else 1, 4 and 10]
    #[arg(long, value_name = "HOURS", requires = "quote", value_parser = hours)]
    pub(crate) hours: Option<f64>,
    /// The deployment that is asked for prices and earlier sweeps; without it the local stack's, where one is running
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK")]
    pub(crate) stack: Option<String>,
}

fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse().ok().filter(|hours| (0.01..=10_000.0).contains(hours));
    hours.ok_or_else(|| "write a number of hours, from 0.01 to 10000".to_owned())
}

/// Runs the command. The exit code is 0 for a valid file, and 1 for an invalid one.
pub(crate) async fn run(args: Validate) -> Result<ExitCode, Failure> {
    let read = sweep_file::read(&args.file, "")?;
    // Of the upload only the name can be checked, because the bucket is not known.
    let read = match (dropped::problems_of_name(&args.file), read) {
        (named, read) if named.is_empty() || args.file == Path::new("-") => read,
        (named, Ok(file)) => Err(Rejected { problems: named, warnings: file.warnings }),
        (named, Err(Rejected { problems, warnings })) => {
            Err(Rejected { problems: named.into_iter().chain(problems).collect(), warnings })
        }
    };
    let trials = read.as_ref().map_or(0, |file| file.trial_count());
    let (problems, warnings) = match &read {
        Ok(file) => (&[][..], file.warnings.as_slice()),
        Err(rejected) => (rejected.problems.as_slice(), rejected.warnings.as_slice()),
    };
    let quote = match read.as_ref().ok().filter(|_| args.quote) {
        Some(file) => Some(Quote::of(file, args.hours, Asked::of(args.stack, file).await)),
        None => None,
    };
    if args.json {
        let is_valid = problems.is_empty();
        let mut verdict = json!({ "valid": is_valid, "trials": trials, "problems": problems, "warnings": warnings });
        if let Some(quote) = &quote {
            verdict["expected"] = json!(quote.rows);
            verdict["hours"] = json!(quote.hours);
            verdict["kept"] = json!(quote.kept);
            verdict["collected"] = json!(quote.collected);
            verdict["data"] = json!(quote.data);
            verdict["prices"] = json!(quote.prices);
            verdict["usd"] = json!(quote.usd());
        }
        out::results(|to| writeln!(to, "{verdict}"))?;
    } else if let Err(rejected) = &read {
        sweep_file::explain(rejected);
    } else {
        sweep_file::warn(warnings);
        out::results(|to| writeln!(to, "{}: valid, {}", args.file.display(), counted(trials, "trial")))?;
        if let Some(folder) = read.as_ref().ok().and_then(|file| file.settings.code.as_ref()?.folder()) {
            code_folder::look(&args.file, folder)?;
        }
        if let Some(quote) = &quote {
            quote.print()?;
        }
    }
    let is_sound = problems.is_empty() && quote.is_none_or(|quote| !quote.is_problem());
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
