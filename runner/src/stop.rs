//! How the command has to stop: passed from the state machine to the code that supervises the command.

use spotsweep_attempt::{Cause, Stop};
use spotsweep_protocol::stop::StopReason;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;
use crate::stack_dump;

/// A request to stop the command, as the last event has changed it.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) stop: Stop,
    /// When the command is killed, if this differs from what the first request says.
    pub(crate) ends: Option<Instant>,
}

/// Returns when the command has to stop.
pub(crate) async fn asked(mut orders: watch::Receiver<Option<Order>>) -> Stop {
    let order = orders.wait_for(Option::is_some).await.ok().and_then(|order| order.clone());
    match order {
        Some(order) => order.stop,
        // The attempt is over.
        None => std::future::pending().await,
    }
}

/// Logs if the end of the container leaves less than the configured grace.
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

/// Whether the command's processes dump their stacks first: not if the signal for that is the stop signal.
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
