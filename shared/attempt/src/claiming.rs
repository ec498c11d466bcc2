//! The answers of `trial-claim` to the requests before the command starts.

use std::time::Duration;

use spotsweep_protocol::claim::{Access, Grant, Reply};
use spotsweep_protocol::stop::StopReason;

use crate::patience::waiting_pause;

/// How an attempt claims its trial.
#[derive(Debug, Clone)]
pub struct Claiming {
    /// The defect of the instance. The attempt then gets no grant, and leaves when the instance takes no other
    /// attempt.
    pub defect: Option<String>,
    /// The latest time to wait for a grant, counted from the beginning of the attempt.
    pub until: Duration,
}

/// The meaning of the answer to a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// The attempt has the trial and its workspace.
    Granted(Box<Grant>),
    /// The runner repeats the claim after `pause`.
    Waits {
        /// What the workspace waits for.
        reason: String,
        /// Time until the next claim.
        pause: Duration,
    },
    /// The attempt does not get the trial.
    Denied(Denied),
}

/// Why an attempt does not get its trial or its workspace.
#[derive(Debug, Clone, PartialEq)]
pub enum Denied {
    /// Nothing can be trained on this instance.
    Unfit(String),
    /// The workspace cannot be attached to this instance.
    Unavailable(String),
    /// The attempt has waited for this until its limit.
    TooLate(String),
    /// Another attempt has the trial, or the trial is over.
    Refused(StopReason),
    /// The answer belongs to another request.
    Unfitting(Box<Reply>),
}

impl Claiming {
    /// The meaning of an answer that came `at` this time after the beginning of the attempt.
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

/// The credentials that a granted attempt has requested.
///
/// # Errors
/// If a newer attempt has claimed the trial meanwhile.
pub fn access(reply: Reply) -> Result<Access, Denied> {
    match reply {
        Reply::Access(access) => Ok(access),
        reply => Err(Denied::of(reply)),
    }
}

/// Whether the control plane has recorded the mount of the workspace, so that the training may start. Until then it
/// keeps the copy from which the workspace was moved.
///
/// # Errors
/// If this attempt does not have the workspace any more.
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
