//! What `trial-claim` answers to the requests before the command.

use std::time::Duration;

use spotsweep_protocol::claim::{Access, Grant, Reply};
use spotsweep_protocol::stop::StopReason;

use crate::patience::waiting_pause;

/// How an attempt claims its trial.
#[derive(Debug, Clone)]
pub struct Claiming {
    /// What is wrong with the instance: there is no grant then, and the attempt leaves once the instance takes no other
    /// one.
    pub defect: Option<String>,
    /// When it waits no longer, since the attempt began.
    pub until: Duration,
}

/// What the answer to a claim means.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// The trial and its workspace are here.
    Granted(Box<Grant>),
    /// The claim comes again after `pause`.
    Waits {
        /// What the workspace waits for.
        reason: String,
        /// Until then.
        pause: Duration,
    },
    /// The attempt does not get the trial.
    Denied(Denied),
}

/// Why an attempt does not get its trial, or not its workspace.
#[derive(Debug, Clone, PartialEq)]
pub enum Denied {
    /// Nothing can be trained on this instance.
    Unfit(String),
    /// The workspace cannot come to this instance.
    Unavailable(String),
    /// It has waited as long as it may, for this.
    TooLate(String),
    /// The trial is another attempt's, or over.
    Refused(StopReason),
    /// The answer belongs to another request.
    Unfitting(Box<Reply>),
}

impl Claiming {
    /// What the answer to a claim means that came `at` this time.
    pub fn answered(&self, reply: Reply, at: Duration) -> Claimed {
        let denied = match (reply, &self.defect) {
            (Reply::Granted(grant), None) => return Claimed::Granted(Box::new(grant)),
            (Reply::Granted(_), Some(defect)) => Denied::Unfit(defect.clone()),
            (Reply::Unavailable { reason }, Some(_)) => Denied::Unfit(reason),
            (Reply::Waiting { reason, retry_after_ms }, _) => {
                let pause = waiting_pause(retry_after_ms);
                if at + pause <= self.until {
                    return Claimed::Waits { reason, pause };
                }
                Denied::TooLate(reason)
            }
            (reply, _) => Denied::of(reply),
        };
        Claimed::Denied(denied)
    }
}

/// The credentials that a granted attempt has asked for.
///
/// # Errors
/// Where a newer attempt has come in between.
pub fn access(reply: Reply) -> Result<Access, Denied> {
    match reply {
        Reply::Access(access) => Ok(access),
        reply => Err(Denied::of(reply)),
    }
}

/// Whether the control plane knows that the workspace is mounted, so that the training may start: until then it keeps the
/// copy that the workspace was moved from.
///
/// # Errors
/// Where it is not this attempt's any more.
pub fn mounted(reply: Reply) -> Result<(), Denied> {
    match reply {
        Reply::Accepted {} => Ok(()),
        reply => Err(Denied::of(reply)),
    }
}

impl Denied {
    fn of(reply: Reply) -> Self {
        match reply {
            Reply::Unavailable { reason } => Self::Unavailable(reason),
            Reply::Refused { reason } => Self::Refused(reason),
            other => Self::Unfitting(Box::new(other)),
        }
    }
}
