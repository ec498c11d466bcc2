//! Sweeps that go on from what is kept of other trials (`spotsweep retry --continue`): those snapshots must be there for
//! as long as such a sweep is open.
//!
//! Before its first submission the sweep is `Keeping`: each trial of which it names a snapshot notes that in its record,
//! one after the other. An invocation of `sweep-upload` does a page of them, commits how far this is, and puts the event on
//! the bus that starts the next one. `reconcile` puts it there again where an invocation has died. Nothing is submitted
//! before all is noted; where something is deleted already, the file is rejected.
//!
//! When the time of what is kept has passed, each sweep that is noted is looked up before anything is deleted. Both are
//! commits on the trial's unchanged record, so whichever comes first, the other one sees it.

use jiff::{SignedDuration, Timestamp};

use super::sweep_upload::{keep, reject, whole_file};
use super::{Answer, Context, Decision, workspace};
use crate::command::Command;
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::continuation::Continuation;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::workspace::{Fact, TrialRef};

/// How long what is kept outlives a look at an open sweep that names it.
const RENEWED: SignedDuration = SignedDuration::from_hours(24);

/// The page that is next is to be read. An event that comes twice reads it twice, and one of both commits what follows.
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

/// The trial that a snapshot is of is to note it. A person's own snapshot is of none.
pub(super) fn referred(view: &View, of: &Continuation) -> Decision {
    let snapshot = of.next().unwrap_or_default();
    match view.referring.last() {
        Some(trial) => Decision::advance(format!("{snapshot} is of trial {trial}"))
            .next(Followup::Continued { trial: trial.clone(), of: of.clone() }),
        None => Decision::advance(format!("{snapshot} is of no trial here")).next(Followup::Continues(of.with_next())),
    }
}

/// The trial notes the sweep, unless the snapshot is about to be deleted, or is deleted.
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

/// All of a page is noted.
pub(super) fn noted(view: &View, of: &Continuation, context: Context<'_>) -> Decision {
    keeping(view, of, |sweep| keep(sweep.clone(), of.after(), context))
}

/// What the sweep goes on from was deleted between its check and now.
pub(super) fn not_kept(view: &View, of: &Continuation) -> Decision {
    keeping(view, of, |sweep| {
        let snapshot = of.next().unwrap_or_default();
        let message = format!("{snapshot} is not kept any more: its time has passed, or its trial goes on");
        let help = "run `spotsweep retry` again, without --continue for trials of which nothing is kept";
        Decision::advance(message.clone()).then(reject(sweep, vec![whole_file(&sweep.upload, message, help)]))
    })
}

/// What only a sweep does that keeps this very page.
fn keeping(view: &View, of: &Continuation, then: impl FnOnce(&Sweep) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep, .. }) if sweep.stage == (Stage::Keeping { next: of.first }) => then(sweep),
        Some(held) => Decision::ignore(format!("the page at {} is done: {}", of.first, held.record.stage.name())),
        None => Decision::illegal("a followup for a sweep that is not stored"),
    }
}

/// Whether a sweep still needs what is kept of a trial.
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
