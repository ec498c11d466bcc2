//! What `trial-claim` answers to what an attempt reports.

use std::time::Duration;

use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;

use crate::patience::waiting_pause;

/// The answer to a report, a release or an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is taken.
    Accepted,
    /// The trial is stopped early, with the reason for the log.
    Stop(String),
    /// The trial is another attempt's.
    Refused(StopReason),
    /// The instance is to blame for the end.
    Unavailable(String),
    /// Whether it is to blame is not known yet: the end is to be reported again.
    Waiting {
        /// What is not known, for the log.
        reason: String,
        /// When it is to be reported again, from now on.
        pause: Duration,
    },
}

impl Answer {
    /// The answer to a report of the end.
    ///
    /// # Errors
    /// A reply that answers something else.
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
    /// A reply that answers something else.
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
