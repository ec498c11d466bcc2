//! The only functions that write: results to standard output, and everything for people to standard error.
//!
//! Most of it contains text that others have written: files, names, a training's messages. So both streams pass through
//! a [`Gate`], which writes an escape for each character that is invisible or that a terminal would obey.
//! `cli/clippy.toml` forbids every other way to the streams.

mod gate;

use std::fmt::Arguments;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use gate::Gate;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::visible::escaped;

/// Writes results to standard output: text or JSON. If the reader stops reading (`| head`), that is no error.
pub(crate) fn results(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    stream(write).map(|_| ())
}

/// Writes a part of results, as [`results`] does. Returns false if there is no reader any more.
pub(crate) fn stream(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    to_stdout(|stdout| {
        let mut gate = Gate::new(stdout);
        write(&mut gate).and_then(|()| gate.finish())
    })
}

/// Writes the bytes of a file: unchanged to a file or a pipe, and as [`results`] to a terminal.
pub(crate) fn file(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if results_are_on_terminal() { results(write) } else { to_stdout(|stdout| write(stdout)).map(|_| ()) }
}

/// Writes a training's own output unchanged. Returns false if there is no reader any more.
pub(crate) fn training(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    to_stdout(|stdout| write(stdout))
}

#[expect(clippy::disallowed_methods)]
fn to_stdout(write: impl FnOnce(&mut BufWriter<io::StdoutLock<'static>>) -> io::Result<()>) -> Result<bool, Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // There is no reader for the buffered rest either, so it is dropped.
            let _ = stdout.into_parts();
            Ok(false)
        }
        written => written.map(|()| true).context(|| "cannot write to standard output"),
    }
}

/// Writes one line for people to standard error. A closed standard error must not end the command (`eprintln!` would
/// panic), so a failed write is ignored.
#[expect(clippy::disallowed_methods)]
pub(crate) fn note(line: Arguments<'_>) {
    let mut gate = Gate::new(io::stderr().lock());
    let _ = writeln!(gate, "{line}").and_then(|()| gate.finish());
}

/// Prints clap's text: help, or what is wrong with the arguments. It keeps its styles if there is nothing to escape:
/// help shows variables of the environment, and a mistake is quoted.
#[expect(clippy::disallowed_methods)]
pub(crate) fn usage(said: &clap::Error) {
    let plain = said.render().to_string();
    if plain.lines().all(|line| escaped(line) == line) {
        let _ = said.print();
    } else if said.use_stderr() {
        note(format_args!("{}", plain.trim_end()));
    } else {
        let _ = results(|to| to.write_all(plain.as_bytes()));
    }
}

/// Whether standard output is a terminal.
#[expect(clippy::disallowed_methods)]
pub(crate) fn results_are_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
#[expect(clippy::disallowed_methods)]
pub(crate) fn notes_are_on_terminal() -> bool {
    io::stderr().is_terminal()
}
