//! The error type of the programs that people run: what was being done, and why it failed.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::cause::causes;

/// Exit code of a command that ran and failed, and of an invalid sweep file.
pub const FAILED: u8 = 1;
/// Exit code of wrong usage, the same as clap's; also of a file that cannot be read.
pub const USAGE: u8 = 2;

/// A failed action with its causes. `Display` prints each cause on its own line.
#[derive(Debug)]
pub struct Failure {
    what: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    exit: u8,
}

impl Failure {
    /// Returns a failure with exit code 1.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None, exit: FAILED }
    }

    /// Returns a failure of usage, with exit code 2.
    pub fn usage(what: impl Into<String>) -> Self {
        Self { exit: USAGE, ..Self::new(what) }
    }

    /// Adds the cause.
    pub fn caused_by(self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// The command's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        let beneath = self.cause.as_deref().map(|cause| causes(cause)).unwrap_or_default();
        beneath.iter().try_for_each(|cause| write!(formatter, "\n  caused by: {cause}"))
    }
}

impl Error for Failure {}

/// Adds what was being done to an error.
pub trait Context<T> {
    /// Wraps the error. `what` is only called if there is one.
    fn context<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for Result<T, E> {
    fn context<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(what()).caused_by(error))
    }
}
