//! Builds the functions and the runner as they are deployed: with the release profile.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Context, Failure};
use crate::local::checkout::Checkout;
use crate::local::group::Group;

/// What runs in Lambda and in the trial's container.
const PACKAGES: [&str; 6] =
    ["sweep-upload", "batch-job-state", "trial-claim", "sweep-settled", "reconcile", "spotsweep-runner"];

/// `cargo build --release` of what gets deployed, and the folder it lies in; cargo's own output
/// goes to standard error. The command and the emulator need no release build, which spares a
/// newcomer minutes of link-time optimisation.
pub(crate) async fn build(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--release", "--target-dir"])
        .arg(&checkout.target)
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]))
        .current_dir(&checkout.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    // What `cargo run` tells this program about itself would have build scripts (ring's) run anew.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
            command.env_remove(name);
        }
    }
    let mut group =
        Group::start(&mut command).context(|| "cannot start cargo, which builds the functions; is Rust installed?")?;
    let status = group.wait().await.context(|| "cannot follow cargo")?;
    if status.success() {
        return Ok(checkout.target.join("release"));
    }
    Err(Failure::new(format!("building the functions and the runner failed ({status}); cargo's messages are above")))
}
