//! The answers of `trial-claim` to an attempt's reports.

use std::time::Duration;

use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;

use crate::patience::waiting_pause;

/// The answer to a report, a release or an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The report is accepted.
    Accepted,
    /// The trial is stopped early, with the reason for the log.
    Stop(String),
    /// Another attempt has the trial.
    Refused(StopReason),
    /// The instance caused the failure that the attempt reports.
    Unavailable(String),
    /// It is not known yet whether the instance caused the failure. The runner reports the end again.
    Waiting {
        /// What is not known yet, for the log.
        reason: String,
        /// The pause before the next report of the end.
        pause: Duration,
    },
}

impl Answer {
    /// The answer to a report of the end.
    ///
    /// # Errors
    /// Returns a reply that belongs to another request.
    pub fn to_end(reply: Reply) -> Result<Self, Box<Reply>> {
        match reply {
            Reply::Waiting { reason, retry_after_ms } => {
                Ok(Self::Waiting { reason, pause: waiting_pause(retry_after_ms) })
            }
            other => Self::of(other),
        }
    }

    /// The answer to any other report.
    ///
    /// # Errors
    /// Returns a reply that belongs to another request.
    pub fn of(reply: Reply) -> Result<Self, Box<Reply>> {
        match reply {
            Reply::Accepted {} => Ok(Self::Accepted),
            Reply::Stop { why } => Ok(Self::Stop(why)),
            Reply::Refused { reason } => Ok(Self::Refused(reason)),
            Reply::Unavailable { reason } => Ok(Self::Unavailable(reason)),
            other @ (Reply::Granted(_) | Reply::Waiting { .. } | Reply::Access(_)) => Err(Box::new(other)),
        }
    }
}
