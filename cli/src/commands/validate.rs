//! `spotsweep validate`: the verdict on a sweep file.

use std::process::ExitCode;

use serde_json::json;

use crate::args::Validate;
use crate::failure::{FAILED, Failure};
use crate::{out, sweep_file};

/// Exit code 0 for a valid file, 1 for an invalid one.
pub(crate) fn run(args: &Validate) -> Result<ExitCode, Failure> {
    let read = sweep_file::read(&args.file, "")?;
    let trials = read.as_ref().map_or(0, |file| file.trial_count());
    let problems = read.as_ref().err().map_or(&[][..], Vec::as_slice);
    if args.json {
        let verdict = json!({ "valid": problems.is_empty(), "trials": trials, "problems": problems });
        out::results(|to| writeln!(to, "{verdict}"))?;
    } else if problems.is_empty() {
        out::results(|to| writeln!(to, "{}: valid, {trials} trials", args.file.display()))?;
    } else {
        sweep_file::explain(problems);
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
