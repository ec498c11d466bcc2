//! Sweeps that continue from kept snapshots of other trials (`spotsweep retry --continue`). The snapshots must exist
//! for as long as such a sweep is open.
//!
//! Before its first submission the sweep is `Keeping`: each trial whose snapshot it names notes the sweep in its
//! record, one after the other. One invocation of `sweep-upload` handles a page of them, commits how far it is, and
//! puts the event on the bus that starts the next invocation. `reconcile` puts that event again if an invocation has
//! been killed. Nothing is submitted before all trials have noted the sweep. If a snapshot is deleted already, the file
//! is rejected.
//!
//! When the time of a kept snapshot has passed, each noted sweep is looked up before the snapshot is deleted. Both
//! steps are commits on the trial's unchanged record, so the later one always sees the earlier one.

use jiff::{SignedDuration, Timestamp};

use super::sweep_upload::{keep, reject};
use super::{Answer, Context, Decision, workspace};
use crate::command::Command;
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::continuation::Continuation;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::workspace::{Fact, TrialRef};

/// How much longer a snapshot is kept when an open sweep still needs it.
const RENEWED: SignedDuration = SignedDuration::from_hours(24);

/// Reads the next page. If the event comes twice, the page is read twice, and only one of the invocations can commit.
pub(super) fn next_page(view: &View) -> Decision {
    match view.sweep.as_ref().map(|held| (&held.record, &held.record.stage)) {
        Some((sweep, Stage::Keeping { next })) => {
            let (id, bucket) = (sweep.id.clone(), sweep.upload.bucket.clone());
            let read = Command::ReadSnapshots { sweep: id, bucket, first: *next };
            Decision::advance(format!("keeping what it goes on from, from snapshot {next} on")).then(read)
        }
        Some((_, stage)) => Decision::ignore(format!("already {}", stage.name())),
        None => Decision::ignore("no such sweep here"),
    }
}

pub(super) fn page_read(view: &View, of: &Continuation) -> Decision {
    keeping(view, of, |_| match of.next() {
        Some(_) => Decision::advance("a page of snapshots is read").next(Followup::Continues(of.clone())),
        None => Decision::illegal("snapshots.json has fewer snapshots than the plan"),
    })
}

/// Passes the page to the trial of its next snapshot. A snapshot of a person belongs to no trial.
pub(super) fn referred(view: &View, of: &Continuation) -> Decision {
    let snapshot = of.next().unwrap_or_default();
    match view.referring.last() {
        Some(trial) => Decision::advance(format!("{snapshot} is of trial {trial}"))
            .next(Followup::Continued { trial: trial.clone(), of: of.clone() }),
        None => Decision::advance(format!("{snapshot} is of no trial here")).next(Followup::Continues(of.with_next())),
    }
}

/// Notes the sweep in the trial's record, unless the snapshot is deleted or about to be.
pub(super) fn note(view: &View, of: &Continuation, context: Context<'_>) -> Decision {
    let kept = view.trial.as_ref().and_then(|held| held.record.workspace.as_ref()?.kept()?.snapshot);
    let Some((snapshot, of_trial)) = of.next().zip(view.trial.as_ref()).filter(|(next, _)| kept == Some(*next)) else {
        return Decision::advance("what the sweep goes on from is not kept any more")
            .next(Followup::NotKept(of.clone()));
    };
    let fact = Fact::Continued { by: of.sweep.clone(), until: renewed(context) };
    let decision = workspace::known(view, &of_trial.record.of(), &fact, context);
    Decision { answer: Answer::Advance(format!("{snapshot} is kept for {}", of.sweep)), ..decision }
        .next(Followup::Continues(of.with_next()))
}

/// Goes to the next page, once all trials of this one have noted the sweep.
pub(super) fn noted(view: &View, of: &Continuation, context: Context<'_>) -> Decision {
    keeping(view, of, |sweep| keep(sweep.clone(), of.after(), context))
}

/// Rejects the file, because a snapshot was deleted after the check.
pub(super) fn not_kept(view: &View, of: &Continuation) -> Decision {
    keeping(view, of, |sweep| {
        let snapshot = of.next().unwrap_or_default();
        let message = format!("{snapshot} is not kept any more: its time has passed, or its trial goes on");
        let help = "run `spotsweep retry` again, without --continue for trials of which nothing is kept";
        Decision::advance(message.clone()).then(reject(sweep, vec![sweep.upload.problem(message, help)]))
    })
}

/// Runs a decision only if the sweep keeps this very page.
fn keeping(view: &View, of: &Continuation, then: impl FnOnce(&Sweep) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep, .. }) if sweep.stage == (Stage::Keeping { next: of.first }) => then(sweep),
        Some(held) => Decision::ignore(format!("the page at {} is done: {}", of.first, held.record.stage.name())),
        None => Decision::illegal("a followup for a sweep that is not stored"),
    }
}

/// Decides whether a sweep still needs what is kept of a trial.
pub(super) fn looked_up(view: &View, (trial, by): (&TrialRef, &SweepId), context: Context<'_>) -> Decision {
    let is_open = |sweep: &Sweep| !matches!(sweep.stage, Stage::Settled | Stage::Rejected);
    let tell = |fact| Followup::Workspace(trial.clone(), fact);
    if view.sweep.as_ref().is_some_and(|held| is_open(&held.record)) {
        let fact = Fact::Continued { by: by.clone(), until: renewed(context) };
        return Decision::advance(format!("{by} is open: {trial} is kept for it")).next(tell(fact));
    }
    let decision = Decision::advance(format!("{by} needs nothing of {trial} any more"));
    decision.next(tell(Fact::Discontinued { by: by.clone() })).next(tell(Fact::Due))
}

fn renewed(context: Context<'_>) -> Timestamp {
    context.now.checked_add(RENEWED).unwrap_or(context.now)
}

#[cfg(test)]
mod tests;
