//! Runs programs such as cp, losetup and fsfreeze.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;

/// The longest run: copying the largest workspace that fits on a development machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns the path of a program, in the emulator's own PATH or in the administrators' folders.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Runs a program to its end, and returns its output.
pub(super) async fn run(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let shown = || {
        let words = arguments.iter().map(|word| word.to_string_lossy());
        format!("{program} {}", words.collect::<Vec<_>>().join(" "))
    };
    let path = find(program).ok_or_else(|| format!("{program} is not installed"))?;
    let running = Command::new(path).args(arguments).kill_on_drop(true).output();
    let ended = tokio::time::timeout(LIMIT, running).await;
    let output = ended.map_err(|_| format!("{}: no end after {LIMIT:?}", shown()))?;
    let output = output.map_err(|error| format!("{}: {error}", shown()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{}: {}: {}", shown(), output.status, String::from_utf8_lossy(&output.stderr).trim()))
}
