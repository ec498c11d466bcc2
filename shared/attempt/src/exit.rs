//! Exit codes of a job that the runner itself decides. They follow `sysexits.h`, so that they rarely meet a training
//! script's.

/// Outputs could not be collected (`EX_IOERR`).
pub const UPLOAD: u8 = 74;
/// The attempt was interrupted, the trial goes on elsewhere (`EX_TEMPFAIL`): the retry strategy that `sweep-upload`
/// submits has Batch start the next attempt. A command never ends the job with it.
pub const INTERRUPTED: u8 = 75;
/// The trial is not this attempt's (`EX_NOPERM`).
pub const REFUSED: u8 = 77;

/// What a job ends with whose command has failed with a code that means something else.
const FAILED: u8 = 1;

/// The job's exit code where the command has ended with `code`, which `wait` never gives larger than a byte. That of an
/// interruption would have AWS Batch start the failed command again, until no attempt is left.
pub fn of_command(code: i32) -> u8 {
    match u8::try_from(code).unwrap_or(u8::MAX) {
        INTERRUPTED => FAILED,
        code => code,
    }
}
