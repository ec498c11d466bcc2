//! `spotsweep validate`: the verdict on a sweep file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::{dropped, out, sweep_file};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;

/// `spotsweep validate`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks what `submit` and the bucket check of a file: its name, its size and what is in it. What a deployment has (queues, \
snapshots) only `submit` can check.

Exit codes: 0 valid, 1 invalid, 2 wrong usage or unreadable file.

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

/// Exit code 0 for a valid file, 1 for an invalid one.
pub(crate) fn run(args: &Validate) -> Result<ExitCode, Failure> {
    let read = sweep_file::read(&args.file, "")?;
    // As much as is known of the upload without a bucket.
    let read = match (dropped::problems_of_name(&args.file), read) {
        (named, read) if named.is_empty() || args.file == Path::new("-") => read,
        (named, read) => Err(named.into_iter().chain(read.err().into_iter().flatten()).collect()),
    };
    let trials = read.as_ref().map_or(0, |file| file.trial_count());
    let problems = read.as_ref().err().map_or(&[][..], Vec::as_slice);
    let warnings = read.as_ref().map_or(&[][..], |file| file.warnings.as_slice());
    if args.json {
        let is_valid = problems.is_empty();
        let verdict = json!({ "valid": is_valid, "trials": trials, "problems": problems, "warnings": warnings });
        out::results(|to| writeln!(to, "{verdict}"))?;
    } else if problems.is_empty() {
        sweep_file::warn(warnings);
        out::results(|to| writeln!(to, "{}: valid, {}", args.file.display(), counted(trials, "trial")))?;
    } else {
        sweep_file::explain(problems);
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
