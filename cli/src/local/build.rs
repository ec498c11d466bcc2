//! Builds the functions and the runner with the profile that this binary was built with.

use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Context, Failure};
use crate::local::checkout::Checkout;
use crate::local::group::Group;

/// `cargo build` of every binary of the workspace; cargo's own output goes to standard error.
///
/// The whole workspace, as `cargo run --bin spotsweep` in its root selects it too: one feature
/// selection, so nothing is compiled twice.
pub(crate) async fn build(checkout: &Checkout) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--workspace", "--bins", "--target-dir"])
        .arg(&checkout.target)
        .args(checkout.profile_flags())
        .current_dir(&checkout.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut group =
        Group::start(&mut command).context(|| "cannot start cargo, which builds the functions; is Rust installed?")?;
    let status = group.wait().await.context(|| "cannot follow cargo")?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("building the functions and the runner failed ({status}); cargo's messages are above")))
}
