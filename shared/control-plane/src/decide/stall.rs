//! A stalled training: people are notified first, and then the stall is noted in the trial's record.

use jiff::{SignedDuration, Timestamp};

use super::{Context, Decision, workspace};
use crate::command::Command;
use crate::event::TrialRequest;
use crate::store::{Versioned, View};
use spotsweep_protocol::stall::StallRule;
use spotsweep_records::sweep::notification::{Notification, StalledAttempt};
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Stall, Trial};
use spotsweep_sweep_file::Stalled;

/// Returns the rule of the sweep file, or the default.
pub(super) fn rule(wanted: Option<Stalled>) -> StallRule {
    match wanted {
        None => StallRule::default(),
        Some(Stalled::Off) => StallRule::OFF,
        Some(Stalled::After { seconds }) => {
            let warn_seconds = seconds.min(StallRule::WARN_SECONDS);
            StallRule { warn_seconds: Some(warn_seconds), end_seconds: Some(seconds), is_last: false }
        }
    }
}

/// Returns the notification of a stall that a runner reports; `None` if people have been notified of it.
pub(super) fn notify(
    (sweep, plan): (&Sweep, &Plan),
    trial: &Trial,
    request: &TrialRequest,
    (sequence, seconds): (u64, u64),
    context: Context<'_>,
) -> Option<Command> {
    if trial.stalled().is_some_and(|known| known.attempt == request.attempt) {
        return None;
    }
    let ago = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let since = context.now.checked_sub(ago).unwrap_or(Timestamp::MIN);
    let of = StalledAttempt { index: request.index, attempt: request.attempt, sequence, since };
    let rule = trial.stall_rule(plan.stalls);
    Some(Command::Notify(Notification::stalled(sweep, of, seconds, rule)))
}

/// Notes the stall, once people are notified. If a newer report has come, that one decides whether the stall lasts.
pub(super) fn announced(view: &View, of: &StalledAttempt, context: Context<'_>) -> Decision {
    let (Some(Versioned { record: sweep, .. }), Some(Versioned { record: held, .. })) = (&view.sweep, &view.trial)
    else {
        return Decision::ignore("no such trial here");
    };
    let sequence = held.attempts.get(&of.attempt).and_then(|attempt| attempt.sequence);
    let is_under_way = held.claimed_by == Some(of.attempt) && held.ended < of.attempt && !held.is_over();
    if sequence != Some(of.sequence) || !is_under_way {
        return Decision::ignore("the attempt has reported something newer, or has ended");
    }
    let trial = Trial { stall: Some(Stall { attempt: of.attempt, since: of.since }), ..held.clone() };
    let what = format!("attempt {} is stalled since {}", of.attempt, of.since);
    workspace::changed(sweep, Some(held), trial, what, context)
}

#[cfg(test)]
mod tests;
