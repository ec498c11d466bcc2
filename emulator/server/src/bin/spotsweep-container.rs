//! Runs its command in a container: `spotsweep-container SETUP COMMAND…`, where SETUP is a [`Setup`] as JSON. The
//! emulator starts every job through this program.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use spotsweep_emulator::container::{Setup, enter};

/// Docker's exit codes if a container cannot be made, and if its command cannot be started.
const NO_CONTAINER: u8 = 125;
const NO_COMMAND: u8 = 127;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let setup = arguments.next().and_then(|setup| serde_json::from_slice::<Setup>(setup.as_encoded_bytes()).ok());
    let (Some(setup), Some(program)) = (setup, arguments.next()) else {
        eprintln!("spotsweep-container: give a setup as JSON, and a command");
        return ExitCode::from(NO_CONTAINER);
    };
    if let Err(error) = enter(&setup) {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        eprintln!("spotsweep-container: {error}: {cause}");
        return ExitCode::from(NO_CONTAINER);
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("spotsweep-container: cannot start {}: {error}", program.display());
    ExitCode::from(NO_COMMAND)
}
