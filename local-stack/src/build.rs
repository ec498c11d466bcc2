//! Builds the functions, the runner and the program that makes containers, in the profile of the running command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use tokio::process::Command;

use crate::group::Group;
use crate::installation::{ARCHITECTURE, Installation, Programs};
use crate::release::programs;
use spotsweep_protocol::failure::{Context, Failure};

/// Runs `cargo build` for the functions and the other programs, and returns the folder with the binaries. Cargo's own
/// output goes to standard error.
///
/// Profile, target folder and selected packages are those of `cargo run` and of the tests. Cargo picks the features of
/// shared dependencies by the packages, so another selection would compile them a second time.
///
/// If `SPOTSWEEP_BUILT` is set, nothing is built: `tests/run` has built everything before it starts its tests, and each
/// test's cargo would wait for the others. Nothing is built of an installed command either.
pub(crate) async fn build(installation: &Installation) -> Result<PathBuf, Failure> {
    let (target, folder) = match &installation.programs {
        Programs::Installed(release) => return programs(release, ARCHITECTURE, &installation.shared),
        Programs::Built { folder, .. } if std::env::var_os("SPOTSWEEP_BUILT").is_some() => return Ok(folder.clone()),
        Programs::Built { target, folder } => (target, folder),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--workspace", "--target-dir"])
        .arg(target)
        .args(["--profile", profile(folder)])
        .current_dir(&installation.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for binary in needed(installation)? {
        command.arg("--bin").arg(binary);
    }
    // Cargo runs build scripts (ring's) again when the variables that `cargo run` sets for this program differ.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    let mut group =
        Group::start(&mut command).context(|| "cannot start cargo, which builds the functions; is Rust installed?")?;
    let status = group.wait().await.context(|| "cannot follow cargo")?;
    if status.success() {
        return Ok(folder.clone());
    }
    Err(Failure::new(format!("building the functions and the runner failed ({status}); cargo's messages are above")))
}

/// Cargo's name of the profile that is built into a folder.
fn profile(folder: &Path) -> &str {
    match folder.file_name().and_then(|name| name.to_str()) {
        // Only this folder has another name than its profile.
        Some("debug") | None => "dev",
        Some(profile) => profile,
    }
}

/// The packages to build. Each function's package has the name of its folder.
fn needed(installation: &Installation) -> Result<Vec<OsString>, Failure> {
    let folder = installation.root.join("functions");
    let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries
        .into_iter()
        .map(|entry| entry.file_name())
        .chain(["spotsweep-runner".into(), "spotsweep-container".into()])
        .collect())
}
