//! The exit codes of a job that the runner chooses. They follow `sysexits.h`, because training scripts rarely use
//! those.

/// The runner could not upload the outputs (`EX_IOERR`).
pub const UPLOAD: u8 = 74;
/// The attempt was interrupted, and another one continues the trial (`EX_TEMPFAIL`). Batch starts it, because
/// `sweep-upload` submits a retry strategy for this code. A command never ends the job with it.
pub const INTERRUPTED: u8 = 75;
/// This attempt does not have the trial (`EX_NOPERM`).
pub const REFUSED: u8 = 77;

/// The job's exit code if the command has failed with a code that has another meaning here.
const FAILED: u8 = 1;

/// The job's exit code after the command has ended with `code`, which is at most 255 from `wait`. `INTERRUPTED` is
/// replaced, because Batch would start the failed command again until no attempt is left.
pub fn of_command(code: i32) -> u8 {
    match u8::try_from(code).unwrap_or(u8::MAX) {
        INTERRUPTED => FAILED,
        code => code,
    }
}
