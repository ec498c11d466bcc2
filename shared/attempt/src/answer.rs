//! What `trial-claim` answers to what an attempt reports.

use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;

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
}

impl Answer {
    /// An error with a reply that answers something else.
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
