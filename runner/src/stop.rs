//! How the command is to stop, on its way from the machine to what supervises the command.

use spotsweep_attempt::{Cause, Stop};
use spotsweep_protocol::stop::StopReason;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;
use crate::stack_dump;

/// A request to stop the command, as of the last event.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) stop: Stop,
    /// When the command is killed, where something else than the first request says that.
    pub(crate) ends: Option<Instant>,
}

/// Comes back when the command is to stop.
pub(crate) async fn asked(mut orders: watch::Receiver<Option<Order>>) -> Stop {
    let order = orders.wait_for(Option::is_some).await.ok().and_then(|order| order.clone());
    match order {
        Some(order) => order.stop,
        // The attempt is over.
        None => std::future::pending().await,
    }
}

/// Says where the container's end leaves less than the configured grace.
pub(crate) fn announce(stop: &Stop, config: &Config) {
    let wanted = config.terms.grace.filter(|wanted| *wanted > stop.grace && stop.sealing_first.is_some());
    if let Some(wanted) = wanted {
        say(&format!(
            "the container is killed {:.0?} after the signal: of SPOTSWEEP_GRACE_SECONDS={}, {:.1?} are left",
            config.terms.stop_after,
            wanted.as_secs_f64(),
            stop.grace
        ));
    }
}

/// Whether the command's processes are to dump their stacks first. Not where the signal for that asks them to stop.
pub(crate) fn wants_stacks(stop: &Stop) -> bool {
    matches!(stop.cause, Cause::Stalled { .. }) && stop.signal != stack_dump::SIGNAL
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Interrupted(reason) | Cause::StoppedEarly(reason) => Self::Interrupted(reason),
            Cause::Fenced(reason) => Self::Refused(reason),
            // The job's own end says why.
            Cause::TimedOut { seconds } => Self::Interrupted(StopReason::TimedOut { seconds }.to_string()),
            Cause::Stalled { seconds, .. } => Self::stalled(seconds),
        }
    }
}
