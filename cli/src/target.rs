//! Which control plane a command talks to: the one that is named, else the local stack, else that of a running demo.

use aws_config::SdkConfig;

use crate::failure::Failure;
use crate::local::checkout::Checkout;
use crate::local::deploy::STACK;
use crate::local::state::{Desk, State};
use crate::sdk;

/// Which control plane to read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Table {
    /// The control plane's table; without it the local stack is used where one is running
    #[arg(long = "table", env = "SPOTSWEEP_TABLE", value_name = "TABLE")]
    pub(crate) name: Option<String>,
}

/// A bucket, a table or a stack, and how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Endpoint and credentials.
    pub(crate) config: SdkConfig,
    /// The same for Batch and CloudWatch Logs, which the local stack has at an endpoint of their own.
    pub(crate) batch: SdkConfig,
    /// Its name.
    pub(crate) name: String,
}

/// The bucket to drop files into.
pub(crate) async fn bucket(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, |state| state.bucket, "--bucket or SPOTSWEEP_BUCKET").await
}

/// The table to read from.
pub(crate) async fn table(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, |state| state.table, "--table or SPOTSWEEP_TABLE").await
}

/// The CloudFormation stack of the control plane.
pub(crate) async fn stack(named: Option<String>) -> Result<Target, Failure> {
    named_or_local(named, |_| STACK.to_owned(), "--stack or SPOTSWEEP_STACK").await
}

async fn named_or_local(
    named: Option<String>,
    pick: impl FnOnce(State) -> String,
    how: &str,
) -> Result<Target, Failure> {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        let config = sdk::from_environment().await;
        return Ok(Target { batch: config.clone(), config, name });
    }
    // An installed binary without its source tree has no local stack, and needs none.
    let running = match Checkout::locate() {
        Ok(checkout) => match Desk::new(&checkout.local()).running()? {
            None => Desk::of_demo(&checkout.local()).running()?,
            up => up,
        },
        Err(_) => None,
    };
    match running {
        Some(state) => {
            let (config, batch) = (sdk::local(&state.endpoint), sdk::local(&state.emulator));
            Ok(Target { config, batch, name: pick(state) })
        }
        None => Err(Failure::usage(format!(
            "no control plane is named and no local stack is running: give {how}, or start one with `spotsweep local up`"
        ))),
    }
}
