//! Builds the functions, the runner and the program that makes containers as the running command was built.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::{fs, io};

use tokio::process::Command;

use crate::checkout::Checkout;
use crate::group::Group;
use spotsweep_protocol::failure::{Context, Failure};

/// `cargo build` of the functions and the other programs, and the folder they lie in; cargo's own output
/// goes to standard error.
///
/// Profile, target folder and selected packages are those of `cargo run` and of the tests: cargo picks the
/// features of shared dependencies by the packages, so any other selection would compile them a second time.
///
/// Nothing is built where `SPOTSWEEP_BUILT` says that this was done, as `tests/run` does: its tests run side by side, and
/// cargo would build one after the other.
pub(crate) async fn build(checkout: &Checkout) -> Result<PathBuf, Failure> {
    if std::env::var_os("SPOTSWEEP_BUILT").is_some() {
        return Ok(checkout.binaries.clone());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--workspace", "--target-dir"])
        .arg(&checkout.target)
        .args(["--profile", checkout.profile()])
        .current_dir(&checkout.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for binary in needed(checkout)? {
        command.arg("--bin").arg(binary);
    }
    // What `cargo run` tells this program about itself would have build scripts (ring's) run again.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    let mut group =
        Group::start(&mut command).context(|| "cannot start cargo, which builds the functions; is Rust installed?")?;
    let status = group.wait().await.context(|| "cannot follow cargo")?;
    if status.success() {
        return Ok(checkout.binaries.clone());
    }
    Err(Failure::new(format!("building the functions and the runner failed ({status}); cargo's messages are above")))
}

/// Each function is called as its folder is.
fn needed(checkout: &Checkout) -> Result<Vec<OsString>, Failure> {
    let folder = checkout.root.join("functions");
    let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries
        .into_iter()
        .map(|entry| entry.file_name())
        .chain(["spotsweep-runner".into(), "spotsweep-container".into()])
        .collect())
}
