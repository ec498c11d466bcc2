//! The only places that write: results to standard output, everything for people to standard error.

use std::fmt::Arguments;
use std::io::{self, BufWriter, ErrorKind, Write};

use spotsweep_protocol::failure::{Context, Failure};

/// Writes results to standard output. A reader that has seen enough (`| head`) is not an error.
pub(crate) fn results(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    stream(write).map(|_| ())
}

/// As [`results`], for what goes on: false when nobody reads any more.
pub(crate) fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // What is still buffered has no reader either: drop it without another try.
            let _ = stdout.into_parts();
            Ok(false)
        }
        written => written.map(|()| true).context(|| "cannot write to standard output"),
    }
}

/// Writes one line for people to standard error. A closed standard error must never end the
/// command half-way (`eprintln!` would panic), so a failed write is dropped.
pub(crate) fn note(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
