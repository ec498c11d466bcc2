//! A trial's standing, with the same name on every page and in every command.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{JobStatus, Reason, Trial};
use crate::workspace::{Keep, Workspace};
use spotsweep_protocol::stop::StopReason;

/// What a trial does, or how it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// No attempt is under way, and another one will start.
    Waiting,
    /// An attempt has an instance, but its container does not run yet.
    Starting,
    /// An attempt's container runs.
    Running,
    /// The training ended with exit code 0.
    Succeeded,
    /// The training ended otherwise, or the trial was ended, and no further attempt starts.
    Failed,
    /// A person ended it with `spotsweep cancel`.
    Cancelled,
    /// Early stopping ended the trial because others are better, or it never started because the target was reached.
    Stopped,
}

impl Standing {
    /// Returns the standing as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        }
    }
}

impl Trial {
    /// Whether the trial has ended for good.
    pub fn is_over(&self) -> bool {
        self.status.is_terminal()
    }

    /// Whether no volume or snapshot of the trial is left except what is kept on purpose.
    pub fn is_clean(&self) -> bool {
        self.workspace.as_ref().is_none_or(Workspace::is_clean)
    }

    /// Whether the trial has ended for good and is clean. Its record then changes only when its kept workspace is
    /// deleted.
    pub fn is_done(&self) -> bool {
        self.is_over() && self.is_clean()
    }

    /// Returns the trial's standing, from Batch's state and the reason of the end.
    pub fn standing(&self) -> Standing {
        match self.status {
            JobStatus::Submitted | JobStatus::Pending | JobStatus::Runnable => Standing::Waiting,
            JobStatus::Starting => Standing::Starting,
            JobStatus::Running => Standing::Running,
            JobStatus::Succeeded | JobStatus::Failed if self.stopped.is_some() => Standing::Stopped,
            JobStatus::Succeeded => Standing::Succeeded,
            JobStatus::Failed if self.cancelled_by().is_some() => Standing::Cancelled,
            JobStatus::Failed if self.was_ended_by_target() => Standing::Stopped,
            JobStatus::Failed => Standing::Failed,
        }
    }

    /// Whether Batch has reported that the attempt's container has started.
    pub fn has_started(&self, attempt: u32) -> bool {
        self.attempts.get(&attempt).is_some_and(|attempt| attempt.started_at.is_some())
    }

    fn was_ended_by_target(&self) -> bool {
        matches!(self.reason.as_ref().and_then(Reason::stopped), Some(StopReason::Target { .. }))
    }

    /// Returns the name of the person who cancelled the trial. Batch keeps the name with the job, because a terminated
    /// job has the reason that TerminateJob got
    /// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJob.html>).
    pub fn cancelled_by(&self) -> Option<&str> {
        match self.reason.as_ref().and_then(Reason::stopped) {
            Some(StopReason::Cancelled { by, .. }) => Some(by),
            Some(_) | None => None,
        }
    }

    /// Returns until when the workspace is kept if the trial ends now; `None` if the workspace is deleted at once.
    pub fn keeps_until(&self, keep: Keep, now: Timestamp) -> Option<Timestamp> {
        let seconds = match self.standing() {
            Standing::Waiting | Standing::Starting | Standing::Running | Standing::Stopped => 0,
            Standing::Succeeded => keep.succeeded_seconds,
            Standing::Cancelled if self.is_discarded() => 0,
            Standing::Failed | Standing::Cancelled => keep.failed_seconds,
        };
        let until = now.checked_add(SignedDuration::from_secs(seconds.into())).ok();
        until.filter(|_| seconds > 0)
    }

    /// Whether the person who cancelled the trial asked to delete its workspace.
    pub fn is_discarded(&self) -> bool {
        let reason = self.reason.as_ref().and_then(Reason::stopped);
        matches!(reason, Some(StopReason::Cancelled { discard: true, .. }))
    }

    /// Whether the trial failed for a reason outside of its training, which says nothing about its parameters.
    pub fn has_foreign_reason(&self) -> bool {
        match self.reason.as_ref().and_then(Reason::stopped) {
            Some(
                StopReason::Budget { .. }
                | StopReason::FailingFast { .. }
                | StopReason::Target { .. }
                | StopReason::Cancelled { .. }
                | StopReason::NeverStarts { .. }
                | StopReason::UnfitInstance { .. }
                | StopReason::Workspace { .. }
                | StopReason::JobLost
                | StopReason::Resubmission { .. }
                | StopReason::Withdrawn,
            ) => true,
            Some(
                StopReason::Fenced { .. }
                | StopReason::AttemptEnded { .. }
                | StopReason::NotClaimed { .. }
                | StopReason::OtherRunner { .. }
                | StopReason::NoSecret
                | StopReason::Unproven
                | StopReason::TrialEnded
                | StopReason::NotFound { .. }
                | StopReason::Stalled { .. }
                | StopReason::TimedOut { .. }
                | StopReason::StoppedEarly { .. }
                | StopReason::Other,
            )
            | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spotsweep_protocol::ids::{JobId, SweepId};

    #[test]
    fn only_a_cancellation_is_cancelled() {
        let cancelled = StopReason::Cancelled { by: "jo".to_owned(), discard: false }.for_batch();
        let cases = [
            (JobStatus::Failed, cancelled.as_str(), Standing::Cancelled),
            (JobStatus::Failed, "Essential container in task exited", Standing::Failed),
            (JobStatus::Failed, "spotsweep: budget reached: 5 USD", Standing::Failed),
            (JobStatus::Failed, "cancelled by jo", Standing::Failed),
            (JobStatus::Running, cancelled.as_str(), Standing::Running),
            (JobStatus::Succeeded, cancelled.as_str(), Standing::Succeeded),
            (JobStatus::Runnable, "", Standing::Waiting),
        ];
        for (status, reason, expected) in cases {
            let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 0, JobId::from("j".to_owned()));
            (trial.status, trial.reason) = (status, Some(reason.into()));
            assert_eq!(trial.standing(), expected, "{status:?} {reason}");
        }
    }
}
