//! Reads sweep files from disk, never more bytes of one than is allowed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use spotsweep_sweep_file::{Defaults, MAX_FILE_BYTES, Rejected, SweepFile, Warning, parse_with};

use crate::out;
use spotsweep_protocol::failure::Failure;
use spotsweep_protocol::words::counted;

/// Reads a file, and returns its content or all its problems. It fails if the file cannot be read, which is wrong
/// usage.
///
/// One byte more than allowed is read, so that the library itself refuses a file that is too large.
pub(crate) fn read(path: &Path, version: &str) -> Result<Result<SweepFile, Rejected>, Failure> {
    read_with(path, version, None)
}

/// Reads a file with a number of trials in place of the file's own.
pub(crate) fn read_with(
    path: &Path,
    version: &str,
    run_cap: Option<u64>,
) -> Result<Result<SweepFile, Rejected>, Failure> {
    let defaults = Defaults { run_cap, ..Defaults::default() };
    let unreadable = |error: io::Error| Failure::usage(format!("cannot read {}", path.display())).caused_by(error);
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES + 1;
    if path == Path::new("-") {
        io::stdin().take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
        return Ok(parse_with("<stdin>", version, &bytes, &defaults));
    }
    File::open(path).map_err(unreadable)?.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(parse_with(&path.display().to_string(), version, &bytes, &defaults))
}

/// Shows the warnings about a valid file.
pub(crate) fn warn(warnings: &[Warning]) {
    for warning in warnings {
        out::note(format_args!("{warning}\n"));
    }
}

/// Shows the problems to a person, after the warnings.
pub(crate) fn explain(rejected: &Rejected) {
    let Rejected { problems, warnings } = rejected;
    warn(warnings);
    for problem in problems {
        out::note(format_args!("{problem}\n"));
    }
    out::note(format_args!("{}", counted(problems.len(), "problem")));
}
