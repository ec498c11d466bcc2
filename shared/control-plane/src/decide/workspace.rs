//! Facts about a trial's workspace, whatever their source. The transitions are in `workspace.rs`.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

use super::{Context, Decision};
use crate::command::Command;
use crate::input::Followup;
use crate::store::{Versioned, View};
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::sweep::{Plan, Stage as SweepStage, Sweep};
use spotsweep_records::trial::{Attempt, Leaving, Trial};
use spotsweep_records::workspace::{Fact, Place, Stage, Surroundings, TrialRef, Workspace};

/// Passes a fact on to every trial that an instance, volume or snapshot belongs to.
pub(super) fn pass_on(view: &View, resource: &str, fact: &Fact) -> Decision {
    if view.referring.is_empty() {
        return Decision::ignore(format!("{resource} belongs to no trial here"));
    }
    let mut decision = Decision::advance(format!("{resource} belongs to {}", counted(view.referring.len(), "trial")));
    for trial in &view.referring {
        decision = decision.next(Followup::Workspace(trial.clone(), fact.clone()));
    }
    decision
}

pub(super) fn known(view: &View, of: &TrialRef, fact: &Fact, context: Context<'_>) -> Decision {
    let Some((sweep, plan, held)) = subject(view) else {
        return Decision::ignore(format!("no trial {of} here"));
    };
    let mut trial = held.record.clone();
    let calls = apply(&mut trial, plan, fact, context);
    let needed = look_up(&trial, context).filter(|_| matches!(fact, Fact::Due));
    if let Some(needed) = needed {
        return Decision::advance("its time has passed, and a sweep goes on from it").then_all(calls).next(needed);
    }
    if trial == held.record {
        return if calls.is_empty() {
            Decision::ignore("nothing new")
        } else {
            Decision::advance("asking EC2").then_all(calls)
        };
    }
    let summary = summary(held.record.workspace.as_ref(), &trial);
    changed(sweep, Some(&held.record), trial, summary, context).then_all(calls)
}

/// Wants the workspace where Batch has placed an attempt, so that it moves while the image is pulled.
pub(super) fn located(view: &View, attempt: u32, instance: &str, zone: &str, context: Context<'_>) -> Decision {
    let Some((sweep, plan, held)) = subject(view) else {
        return Decision::ignore("no such trial here");
    };
    let mut trial = held.record.clone();
    if trial.is_over() || trial.stopped.is_some() || trial.ended >= attempt {
        return Decision::ignore(format!("attempt {attempt} is over"));
    }
    let record = trial.attempt(attempt);
    (record.instance, record.zone) = (Some(instance.to_owned()), Some(zone.to_owned()));
    let is_own = record.leaving.is_some();
    let is_taken =
        |other: &Attempt| other.leaving == Some(Leaving::Noticed) && other.instance.as_deref() == Some(instance);
    if is_own || trial.attempts.values().any(is_taken) {
        let what = format!("attempt {attempt} leaves {instance} in {zone}");
        return changed(sweep, Some(&held.record), trial, what, context);
    }
    let place = Place { attempt, instance: instance.to_owned(), zone: zone.to_owned() };
    let calls = apply(&mut trial, plan, &Fact::Wanted(place), context);
    let summary = summary(held.record.workspace.as_ref(), &trial);
    let what = format!("attempt {attempt} starts on {instance} in {zone}; {summary}");
    changed(sweep, Some(&held.record), trial, what, context).then_all(calls)
}

fn subject(view: &View) -> Option<(&Sweep, &Plan, &Versioned<Trial>)> {
    let sweep = &view.sweep.as_ref()?.record;
    Some((sweep, sweep.plan.as_ref()?, view.trial.as_ref()?))
}

/// Adds a fact to a trial and returns the commands that follow. A trial gets its workspace with its first place. If
/// each trial has its own snapshot, it gets the workspace once that is known, which the first claim looks up.
pub(super) fn apply(trial: &mut Trial, plan: &Plan, fact: &Fact, context: Context<'_>) -> Vec<Command> {
    let Some(wanted) = &plan.workspace else { return Vec::new() };
    let (is_over, ended) = (trial.is_over() || trial.is_left_for_good(), trial.ended);
    let lease_ended = context.lease_ended();
    let keeps_until = trial.keeps_until(wanted.keep, context.now);
    let now = context.now;
    let (index, is_due) = (trial.index, matches!(fact, Fact::Due));
    let own = trial.starts_from.clone();
    let snapshot = own.as_deref();
    let around = Surroundings { index, snapshot, plan: wanted, ended, is_over, keeps_until, is_due, now, lease_ended };
    let before = trial.workspace.clone();
    if let (None, Fact::Wanted(place), Some(origin)) = (&trial.workspace, fact, wanted.origin_of(snapshot))
        && !is_over
        && place.attempt > ended
    {
        trial.workspace = Some(Workspace::new(origin, place.clone(), now));
    }
    let of = trial.of();
    let Some(workspace) = &mut trial.workspace else { return Vec::new() };
    let mut calls = workspace.apply(fact, around);
    calls.extend(workspace.required_actions(before.as_ref(), fact, wanted, context.now, lease_ended));
    calls.into_iter().map(|call| Command::Workspace { of: of.clone(), call }).collect()
}

/// Writes the trial. If a settling sweep waited only for this trial, it starts `sweep-settled`.
pub(super) fn changed(
    sweep: &Sweep,
    before: Option<&Trial>,
    trial: Trial,
    what: impl Into<String>,
    context: Context<'_>,
) -> Decision {
    let is_done = trial.is_done();
    let was_done = before.is_some_and(Trial::is_done);
    let due = due(&trial, context);
    let decision = Decision::advance(what).trial(trial, due);
    if is_done && !was_done && sweep.stage == SweepStage::Settling {
        return decision.then(Command::Notify(Notification::internal(sweep, Kind::Settling)));
    }
    decision
}

/// Returns the look-up of a sweep that continues from the trial, which comes before the kept snapshot is deleted.
pub(super) fn look_up(trial: &Trial, context: Context<'_>) -> Option<Followup> {
    let by = trial.workspace.as_ref()?.expired_for(context.now)?.clone();
    Some(Followup::NeededBy { trial: trial.of(), by })
}

/// Returns when a trial has to be looked at: soon while its workspace moves, when its kept snapshot has to be deleted,
/// and never once all is done.
pub(super) fn due(trial: &Trial, context: Context<'_>) -> Option<Timestamp> {
    let is_moving = trial.resubmitting || trial.workspace.as_ref().is_some_and(Workspace::is_moving);
    let kept = trial.workspace.as_ref().and_then(Workspace::kept);
    let due = match (trial.is_done(), is_moving) {
        (true, _) if kept.is_none() => None,
        (_, true) => context.lease_ends(),
        (true, false) => kept.map(|kept| kept.until),
        (false, false) => {
            let asked_after = trial.asked_after().filter(|at| *at > context.now);
            context.recheck_at().map(|at| asked_after.map_or(at, |asked_after| asked_after.min(at)))
        }
    };
    due.map(next_minute)
}

/// Rounds a due time up to the minute, because the schedule runs once a minute at most, and every move of a due time
/// costs two writes of the index.
fn next_minute(at: Timestamp) -> Timestamp {
    at.round(TimestampRound::new().smallest(Unit::Minute).mode(RoundMode::Ceil)).unwrap_or(at)
}

/// Describes a change of the workspace for the trial's history.
pub(super) fn summary(before: Option<&Workspace>, trial: &Trial) -> String {
    let Some(now) = &trial.workspace else { return "no workspace".to_owned() };
    let volume = now.volume.id.as_deref().unwrap_or("a volume");
    let zone = &now.volume.zone;
    let mut parts = Vec::new();
    if before.is_none_or(|before| before.stage != now.stage || before.volume.operation != now.volume.operation) {
        parts.push(match &now.stage {
            Stage::Creating => match &now.source {
                Some(source) => format!("copying the workspace from {} to {zone}", source.zone),
                None => format!("making a volume in {zone}"),
            },
            Stage::Attaching { to, .. } => format!("attaching {volume} to {} for attempt {}", to.instance, to.attempt),
            Stage::Attached { to, mounted: false, .. } => format!("{volume} is attached to {}", to.instance),
            Stage::Attached { to, mounted: true, .. } => {
                format!("attempt {} has mounted and verified {volume}", to.attempt)
            }
            Stage::Detaching { .. } => format!("detaching {volume}"),
            Stage::Detached => format!("{volume} is detached in {zone}"),
            Stage::AwaitingSnapshot => {
                let wanted = now.wanted.as_ref().map_or("?", |place| place.zone.as_str());
                format!("wanted in {wanted}, waiting for the snapshot of {volume} in {zone}")
            }
            Stage::Kept { until, .. } => format!("the workspace is kept until {until}"),
            Stage::Disposing => "deleting the workspace".to_owned(),
            Stage::Gone => "nothing is left of the workspace".to_owned(),
        });
    }
    let known = before.map_or(0, |before| before.notes.len());
    parts.extend(now.notes.iter().skip(known).cloned());
    if parts.is_empty() { format!("workspace {}", now.stage.name()) } else { parts.join("; ") }
}
