//! What the AWS executor does after a throttled call.

use std::error::Error;
use std::time::Duration;

use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::throttle::{Limit, SnapshotRetries, submit_pauses};
use spotsweep_control_plane::workspace::{Call, EC2_TRIES, Fact, Refusal, RefusalKind, TrialRef};

use super::answer::NoAnswer;

/// The tries of one command.
pub enum Retries {
    /// CreateSnapshot. A throttle that does not pass is a refusal.
    Snapshot {
        /// Whose workspace.
        of: TrialRef,
        /// The snapshot's operation.
        operation: u32,
        /// The pauses that are left.
        retries: SnapshotRetries,
    },
    /// Calls that are repeated with these pauses. A throttle that does not pass fails the command.
    Paused(Box<dyn Iterator<Item = Duration> + Send>),
}

impl Retries {
    /// Before the first try.
    pub fn of(command: &Command) -> Self {
        match command {
            Command::Workspace { of, call: Call::TakeSnapshot { operation, saved_early, .. }, turn } => {
                Self::Snapshot {
                    of: of.clone(),
                    operation: *operation,
                    retries: SnapshotRetries::new(*saved_early, *turn),
                }
            }
            Command::SubmitPart(_) => Self::Paused(Box::new(submit_pauses())),
            // The SDK's standard retries wait 1, 2, 4, 8 s, each times a random share, of which this is the mean.
            _another => Self::Paused(Box::new((0..EC2_TRIES - 1).map(|tried| Duration::from_millis(500 << tried)))),
        }
    }

    /// The pause before the next try of a throttled command; none where this was the last.
    pub fn pause(&mut self, limit: Limit) -> Option<Duration> {
        match self {
            Self::Snapshot { retries, .. } => retries.pause(limit),
            Self::Paused(pauses) => pauses.next(),
        }
    }

    /// The outcome of a command that was throttled in its last try.
    ///
    /// # Errors
    /// The throttle itself, where it is no refusal.
    pub fn last(self, error: Box<dyn Error + Send + Sync>) -> Result<Vec<Outcome>, Box<dyn Error + Send + Sync>> {
        match (self, error.downcast_ref()) {
            (Self::Snapshot { of, operation, .. }, Some(NoAnswer::Throttled { code, message, .. })) => {
                let kind = RefusalKind::Snapshot { operation };
                let lasts = kind.lasts(code);
                let refusal = Refusal { kind, code: (*code).to_owned(), message: message.clone(), lasts };
                Ok(vec![Outcome::Workspace(of, Fact::Refused(refusal))])
            }
            _another => Err(error),
        }
    }
}

/// The limit that a failed command has met, where it was throttled.
pub fn limit(error: &(dyn Error + Send + Sync + 'static)) -> Option<Limit> {
    match error.downcast_ref() {
        Some(NoAnswer::Throttled { limit, .. }) => Some(*limit),
        Some(NoAnswer::Unclear(_)) | None => None,
    }
}
