//! Asks a deployment about a sweep before it is submitted.

use spotsweep_protocol::failure::Failure;
use spotsweep_sweep_file::SweepFile;

use super::super::doctor::stack::Deployment;
use super::data::DataCost;
use super::last_sweep::LastSweep;
use super::prices::Prices;
use crate::out;
use crate::target::{self, Target};

/// What is known. A file may be valid even if nothing is known.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) prices: Option<Prices>,
    pub(super) last: Last,
    pub(super) data: Vec<DataCost>,
}

/// Whether the same code has run before.
#[derive(Debug, Default)]
pub(super) enum Last {
    /// A trial of it has succeeded.
    Known(LastSweep),
    /// None of the newest sweeps has run it.
    None,
    /// No deployment could be asked.
    #[default]
    Unknown,
}

impl Asked {
    /// Asks the named deployment, or else the local stack's.
    pub(super) async fn of(stack: Option<String>, file: &SweepFile) -> Self {
        let opened = open(stack).await;
        let Some((target, deployment)) = known("prices, and earlier sweeps of this code, are", opened) else {
            return Self::default();
        };
        let prices = Prices::find(&target, &deployment, file.settings.queue.clone()).await;
        let last = LastSweep::find(&target, &deployment, file).await;
        let last = match known("earlier sweeps of this code are", last) {
            Some(Some(last)) => Last::Known(last),
            Some(None) => Last::None,
            None => Last::Unknown,
        };
        let data = known("data sets are", DataCost::find(&target.config, file).await).unwrap_or_default();
        Self { prices: known("prices are", prices), last, data }
    }
}

async fn open(stack: Option<String>) -> Result<(Target, Deployment), Failure> {
    let target = target::stack(stack).await?;
    let deployment = Deployment::open(&target).await?;
    Ok((target, deployment))
}

fn known<T>(what: &str, found: Result<T, Failure>) -> Option<T> {
    found.map_err(|failure| out::note(format_args!("{what} not known: {failure}"))).ok()
}
