//! Unfit instances. ECS does not detect them, so Batch would place one trial after the other there (fact 60).
//!
//! The runner checks its instance before the training starts, and reports a defect with its claim, which has to pass
//! the gate like any other claim. The instance on which Batch has placed that attempt is drained, whatever place the
//! request names. The attempt is a false start.

use super::trial_claim::waiting;
use super::{Context, Decision, workspace};
use crate::event::TrialRequest;
use crate::outcome::Drained;
use crate::store::View;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::Reason;

/// Lets the attempt leave, once its instance is drained. If ECS refuses that, Batch may start the trial there again.
/// The reason is then on record, and the number of false starts is limited.
pub(super) fn drained(view: &View, request: &TrialRequest, drained: &Drained, context: Context<'_>) -> Decision {
    let (Some(sweep), Some(held)) = (&view.sweep, &view.trial) else {
        return Decision::illegal("an instance of a trial that is not stored");
    };
    let reason = held.record.attempts.get(&request.attempt).and_then(|attempt| attempt.reason.as_ref());
    let Some(StopReason::UnfitInstance { cause }) = reason.and_then(Reason::stopped) else {
        return Decision::illegal(format!("attempt {} has not said what is wrong with its instance", request.attempt));
    };
    let leave = |cause: &str| Reply::Unavailable { reason: cause.to_owned() };
    match drained {
        Drained::Yes(instance) => Decision::advance(format!("{instance} takes no further trial")).reply(leave(cause)),
        Drained::NotPlaced => {
            let reason = "AWS Batch does not show on which instance the attempt runs".to_owned();
            Decision::ignore(reason.clone()).reply(waiting(reason, context.settings.poll))
        }
        Drained::Refused(refusal) => {
            let cause = format!("{cause}; ECS does not drain it: {refusal}");
            let reply = leave(&cause);
            let mut trial = held.record.clone();
            trial.attempt(request.attempt).reason = Some(StopReason::UnfitInstance { cause: cause.clone() }.into());
            workspace::changed(&sweep.record, Some(&held.record), trial, cause, context).reply(reply)
        }
    }
}
