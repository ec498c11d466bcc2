//! Derives what has happened to trials from the difference between two looks at their records.
//!
//! A late look finds several steps at once, and returns all of them that the record still shows: it has the times of
//! each attempt's start and end.

use crate::show;
use jiff::Timestamp;
use serde::Serialize;
use spotsweep_protocol::words::{counted, duration, rounded};
use spotsweep_records::trial::{Attempt, Stall, Standing, Trial};
use spotsweep_records::workspace::{Stage, Workspace};
use spotsweep_report::diagnosis::why;

/// Something that has happened. As JSON, it is a line of `watch --json` (docs/watch.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WatchEvent {
    /// The time that Batch or EC2 reports. If there is none, the time of the look.
    pub(crate) at: Timestamp,
    /// The trial's index. None for an event of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trial: Option<u32>,
    /// What.
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(crate) enum What {
    /// The sweep has entered a stage.
    Stage { stage: &'static str },
    /// No further attempt starts, because the sweep's budget is reached.
    Stopped { reason: String },
    /// There is a warning about the sweep, of a kind that was not there before.
    Warned { warning: String },
    /// A trial's first container runs.
    Started { attempt: u32, zone: Option<String>, instance: Option<String> },
    /// A later container runs. `seconds_lost` counts from the end of the one before.
    Resumed {
        attempt: u32,
        zone: Option<String>,
        from_zone: Option<String>,
        instance: Option<String>,
        seconds_lost: Option<f64>,
    },
    /// The instance will be reclaimed, or EC2 recommends to leave it. An early snapshot of the workspace is made.
    Noticed { attempt: u32 },
    /// The attempt's instance was reclaimed.
    Interrupted { attempt: u32, zone: Option<String>, reason: Option<String> },
    /// The workspace is moving to another zone.
    Migrating { from_zone: String, to_zone: String },
    /// The workspace is mounted and verified in the other zone.
    Migrated { from_zone: String, to_zone: String },
    /// The usual source of its workspace was not usable, and another one was taken.
    FellBack { note: String },
    /// The training has shown no sign of life since then.
    Stalled { attempt: u32, since: Timestamp },
    /// A training that was stalled shows signs of life again.
    GoesOn { attempt: u32 },
    /// The attempt cannot get its workspace. It ends, and the next one asks again.
    Refused { reason: String },
    /// Batch's attempts are used up, so the trial goes on as a job of its own.
    Resubmitted { round: u32 },
    /// The trial has succeeded.
    Succeeded { attempts: usize, run_seconds: f64, metric: Option<String>, value: Option<f64>, best: bool },
    /// The trial has failed for good.
    Failed { attempts: usize, reason: String },
    /// The trial was stopped early, because others are better.
    StoppedEarly { attempts: usize, reason: String },
    /// A person has cancelled the trial.
    Cancelled { attempts: usize, by: String },
}

impl WatchEvent {
    /// One sentence in one line, whatever others have written into it.
    pub(crate) fn text(&self) -> String {
        let what = self.what.text();
        let text = self.trial.map_or_else(|| what.clone(), |trial| format!("trial {trial} {what}"));
        show::line(text)
    }
}

impl What {
    fn text(&self) -> String {
        let within = |zone: &Option<String>| zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        let on = |instance: &Option<String>| instance.as_ref().map(|id| format!(" on {id}")).unwrap_or_default();
        match self {
            Self::Stage { stage } => format!("the sweep is {stage}"),
            Self::Stopped { reason } => format!("no further attempt starts: {reason}"),
            Self::Warned { warning } => format!("warning: {warning}"),
            Self::Started { zone, instance, .. } => format!("runs{}{}", within(zone), on(instance)),
            Self::Resumed { attempt, zone, from_zone, instance, seconds_lost } => {
                let lost = seconds_lost.map(|seconds| format!(", {} lost", duration(seconds))).unwrap_or_default();
                let from = from_zone.as_ref().map(|zone| format!(", before in {zone}")).unwrap_or_default();
                format!("runs again{}{}: attempt {attempt}{from}{lost}", within(zone), on(instance))
            }
            Self::Noticed { attempt } => format!("is warned: attempt {attempt} may lose its instance; saving early"),
            Self::Interrupted { attempt, zone, reason } => {
                let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("is interrupted{}: attempt {attempt}{reason}", within(zone))
            }
            Self::Migrating { from_zone, to_zone } => format!("moves its workspace from {from_zone} to {to_zone}"),
            Self::Migrated { from_zone, to_zone } => {
                format!("has its workspace in {to_zone}, verified; it was in {from_zone}")
            }
            Self::FellBack { note } => format!("falls back: {note}"),
            Self::Stalled { attempt, since } => {
                format!("is stalled: {}", Stall { attempt: *attempt, since: *since })
            }
            Self::GoesOn { attempt } => format!("goes on: attempt {attempt} is not stalled any more"),
            Self::Refused { reason } => format!("retrying: {reason}"),
            Self::Resubmitted { round } => format!("goes on as a job of its own: round {round}"),
            Self::Succeeded { attempts, run_seconds, metric, value, best } => {
                let measured =
                    metric.as_ref().zip(*value).map(|(name, value)| format!(", {name} {}", rounded(value, 4)));
                let best = if *best { ", the best so far" } else { "" };
                let attempts = if *attempts > 1 { format!(" in {attempts} attempts") } else { String::new() };
                let time = duration(*run_seconds);
                format!("succeeded after {time}{attempts}{}{best}", measured.unwrap_or_default())
            }
            Self::Failed { attempts, reason } => format!("failed after {}: {reason}", counted(*attempts, "attempt")),
            Self::StoppedEarly { attempts, reason } => format!("{reason}, after {}", counted(*attempts, "attempt")),
            Self::Cancelled { attempts, by } => format!("cancelled after {} by {by}", counted(*attempts, "attempt")),
        }
    }
}

/// What has happened to a trial since the last look, or ever if there was none.
pub(super) fn between(before: Option<&Trial>, after: &Trial, now: Timestamp) -> Vec<WatchEvent> {
    if before == Some(after) {
        return Vec::new();
    }
    let mut news: Vec<(Timestamp, What)> = Vec::new();
    for (number, attempt) in &after.attempts {
        let held = before.and_then(|before| before.attempts.get(number));
        news.extend(of_attempt(held, *number, attempt, after, now));
    }
    if after.round > before.map_or(0, |before| before.round) {
        news.push((now, What::Resubmitted { round: after.round }));
    }
    if let Some(workspace) = &after.workspace {
        news.extend(of_workspace(before.and_then(|before| before.workspace.as_ref()), workspace, now));
    }
    news.extend(of_stall(before.and_then(Trial::stalled), after).map(|what| (now, what)));
    if after.is_over() && !before.is_some_and(Trial::is_over) {
        news.push((after.stopped_at().unwrap_or(now), end(after)));
    }
    news.into_iter().map(|(at, what)| WatchEvent { at, trial: Some(after.index), what }).collect()
}

fn of_attempt(
    held: Option<&Attempt>,
    number: u32,
    attempt: &Attempt,
    trial: &Trial,
    now: Timestamp,
) -> Vec<(Timestamp, What)> {
    let mut news = Vec::new();
    if let Some(at) = attempt.started_at.filter(|_| held.is_none_or(|held| held.started_at.is_none())) {
        let (zone, instance) = (attempt.zone.clone(), attempt.instance.clone());
        let what = match ran_before(trial, number) {
            None => What::Started { attempt: number, zone, instance },
            Some(before) => {
                let seconds_lost = before.stopped_at.map(|_| lost(before, at));
                let from_zone = before.zone.clone().filter(|from| zone.as_ref().is_some_and(|zone| zone != from));
                What::Resumed { attempt: number, zone, from_zone, instance, seconds_lost }
            }
        };
        news.push((at, what));
    }
    let was_interrupted = trial.interruptions().any(|(interrupted, _)| interrupted == number);
    if was_interrupted && !held.is_some_and(Attempt::was_interrupted) {
        let (zone, reason) = (attempt.zone.clone(), trial.why_interrupted(number));
        news.push((attempt.stopped_at.unwrap_or(now), What::Interrupted { attempt: number, zone, reason }));
    }
    news
}

/// A stall that is new, or that has ended while its attempt goes on.
fn of_stall(before: Option<Stall>, after: &Trial) -> Option<What> {
    match (before, after.stalled()) {
        (before, Some(stall)) if before != Some(stall) => {
            Some(What::Stalled { attempt: stall.attempt, since: stall.since })
        }
        (Some(Stall { attempt, .. }), None) => {
            let has_ended = after.is_over() || after.ended >= attempt;
            let is_given_up = after.attempts.get(&attempt).is_some_and(Attempt::has_stalled);
            (!has_ended && !is_given_up).then_some(What::GoesOn { attempt })
        }
        (_, Some(_)) | (None, None) => None,
    }
}

/// The last attempt before this one whose container ran. Others were interrupted while they started, and changed
/// nothing.
pub(super) fn ran_before(trial: &Trial, number: u32) -> Option<&Attempt> {
    trial.attempts.range(..number).map(|(_, attempt)| attempt).rfind(|attempt| attempt.started_at.is_some())
}

/// Seconds from the end of an attempt until then.
pub(super) fn lost(attempt: &Attempt, until: Timestamp) -> f64 {
    attempt.stopped_at.map_or(0.0, |stopped| until.duration_since(stopped).as_secs_f64().max(0.0))
}

fn of_workspace(before: Option<&Workspace>, after: &Workspace, now: Timestamp) -> Vec<(Timestamp, What)> {
    let mut news = Vec::new();
    let is_new = |operation: &u32| !before.is_some_and(|before| before.snapshots.contains_key(operation));
    let early = after.snapshots.iter().filter(|(operation, _)| is_new(operation));
    news.extend(
        early.filter_map(|(_, snapshot)| Some((snapshot.asked_at, What::Noticed { attempt: snapshot.early? }))),
    );
    if let Some((from_zone, to_zone)) = way(after).filter(|way| before.and_then(self::way).as_ref() != Some(way)) {
        news.push((now, What::Migrating { from_zone, to_zone }));
    }
    let home = before.and_then(home).filter(|home| is_mounted(after) && *home != after.volume.zone);
    if let Some(from_zone) = home {
        news.push((now, What::Migrated { from_zone: from_zone.to_owned(), to_zone: after.volume.zone.clone() }));
    }
    let known = before.map_or(0, |before| before.notes.len());
    news.extend(after.notes.iter().skip(known).map(|note| (now, What::FellBack { note: note.clone() })));
    let refused = after.unavailable.as_ref().filter(|why| before.and_then(|old| old.unavailable.as_ref()) != Some(why));
    news.extend(refused.map(|reason| (now, What::Refused { reason: reason.clone() })));
    news
}

/// The zones between which a workspace is moving.
fn way(workspace: &Workspace) -> Option<(String, String)> {
    let here = &workspace.volume.zone;
    let (from, to) = match (&workspace.stage, &workspace.source) {
        (Stage::AwaitingSnapshot, _) => (here, &workspace.wanted.as_ref()?.zone),
        (Stage::Creating | Stage::Attaching { .. }, Some(source)) => (&source.zone, here),
        (Stage::Attached { mounted, .. }, Some(source)) if !mounted => (&source.zone, here),
        (
            Stage::Creating
            | Stage::Attaching { .. }
            | Stage::Attached { .. }
            | Stage::Detaching { .. }
            | Stage::Detached
            | Stage::Kept { .. }
            | Stage::Disposing
            | Stage::Gone,
            _,
        ) => return None,
    };
    (from != to).then(|| (from.clone(), to.clone()))
}

/// The zone of the newest bytes that are known to be good.
fn home(workspace: &Workspace) -> Option<&str> {
    let source = workspace.source.as_ref().filter(|_| !is_mounted(workspace));
    let volume = source.unwrap_or(&workspace.volume);
    volume.used.then_some(volume.zone.as_str())
}

pub(super) fn is_mounted(workspace: &Workspace) -> bool {
    matches!(workspace.stage, Stage::Attached { mounted: true, .. })
}

fn end(trial: &Trial) -> What {
    let attempts = trial.attempts.len();
    match trial.standing() {
        // The metric and the rank are known from the sweep only.
        Standing::Succeeded => {
            What::Succeeded { attempts, run_seconds: trial.run_seconds(), metric: None, value: None, best: false }
        }
        Standing::Stopped => What::StoppedEarly { attempts, reason: why(trial) },
        Standing::Cancelled => What::Cancelled { attempts, by: trial.cancelled_by().unwrap_or_default().to_owned() },
        Standing::Failed | Standing::Waiting | Standing::Starting | Standing::Running => {
            What::Failed { attempts, reason: why(trial) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spotsweep_protocol::stop::StopReason;
    use spotsweep_records::trial::JobStatus;

    use crate::live::samples::{at, attached, detached, interrupted, trial};

    fn texts(before: Option<&Trial>, after: &Trial) -> Vec<String> {
        between(before, after, at(99)).iter().map(|news| format!("{} {}", news.at.as_second(), news.text())).collect()
    }

    #[test]
    fn a_reclaimed_trial_tells_each_step_once() {
        let mut steps = vec![trial(7, JobStatus::Starting)];
        let mut next = |change: &dyn Fn(&mut Trial)| {
            let mut trial = steps.last().cloned().unwrap_or_else(|| trial(7, JobStatus::Submitted));
            change(&mut trial);
            steps.push(trial);
        };
        next(&|trial| {
            trial.status = JobStatus::Running;
            *trial.attempt(1) = interrupted("us-east-1a", 10, 20);
            (trial.attempt(1).stopped_at, trial.attempt(1).reason) = (None, None);
            trial.workspace = Some(attached("us-east-1a"));
        });
        next(&|trial| {
            *trial.attempt(1) = interrupted("us-east-1a", 10, 20);
            trial.status = JobStatus::Runnable;
            trial.ended = 1;
            trial.workspace = Some(detached("us-east-1a", "us-east-1c"));
        });
        next(&|trial| {
            trial.status = JobStatus::Running;
            *trial.attempt(2) = Attempt { stopped_at: None, reason: None, ..interrupted("us-east-1c", 27, 0) };
            trial.workspace = Some(attached("us-east-1c"));
        });
        next(&|trial| {
            trial.status = JobStatus::Succeeded;
            trial.attempt(2).stopped_at = Some(at(40));
            trial.attempt(2).exit_code = Some(0);
        });
        let singly: Vec<String> = steps.windows(2).flat_map(|pair| texts(pair.first(), &pair[1])).collect();
        assert_eq!(
            singly,
            [
                "10 trial 7 runs in us-east-1a on i-us-east-1a",
                "20 trial 7 is interrupted in us-east-1a: attempt 1: Host EC2 (instance i-us-east-1a) terminated.",
                "99 trial 7 moves its workspace from us-east-1a to us-east-1c",
                "27 trial 7 runs again in us-east-1c on i-us-east-1c: attempt 2, before in us-east-1a, 7 s lost",
                "99 trial 7 has its workspace in us-east-1c, verified; it was in us-east-1a",
                "40 trial 7 succeeded after 23 s in 2 attempts",
            ]
        );
        let last = &steps[steps.len() - 1];
        assert!(texts(Some(last), last).is_empty());
        // A late look returns everything that the record still shows.
        let late = texts(None, last);
        for at in ["10 ", "20 ", "27 ", "40 "] {
            assert!(late.iter().any(|line| line.starts_with(at)), "{at}: {late:?}");
        }
    }

    #[test]
    fn a_stall_is_shown_when_it_begins_and_when_the_training_goes_on() {
        let running = trial(3, JobStatus::Running);
        let stalled = Trial { stall: Some(Stall { attempt: 1, since: at(60) }), ..running.clone() };
        let begins = ["99 trial 3 is stalled: attempt 1: no output, metric, checkpoint or GPU activity since \
            1970-01-01 00:01:00 UTC"];
        assert_eq!(texts(Some(&running), &stalled), begins);
        assert_eq!(texts(Some(&stalled), &running), ["99 trial 3 goes on: attempt 1 is not stalled any more"]);
        let mut ended = running;
        ended.attempt(1).reason = Some(StopReason::Stalled { seconds: 1800 }.into());
        assert!(texts(Some(&stalled), &ended).is_empty());
    }

    #[test]
    fn json_has_the_fields_that_the_page_promises() {
        let failed = Trial { reason: Some("Essential container\nexited".into()), ..trial(3, JobStatus::Failed) };
        let [news] = &between(None, &failed, at(5))[..] else { unreachable!("one thing has happened") };
        let expected = serde_json::json!({
            "at": "1970-01-01T00:00:05Z", "trial": 3, "what": "failed", "attempts": 0,
            "reason": "Essential container\nexited",
        });
        assert_eq!(serde_json::to_value(news).ok(), Some(expected));
        assert_eq!(news.text(), "trial 3 failed after 0 attempts: Essential container\\nexited");
        let cancelled = Trial { reason: Some("spotsweep: cancelled by jo".into()), ..trial(3, JobStatus::Failed) };
        let [news] = &between(None, &cancelled, at(5))[..] else { unreachable!("one thing has happened") };
        assert_eq!(news.text(), "trial 3 cancelled after 0 attempts by jo");
    }

    #[test]
    fn fallbacks_refusals_and_warnings_are_shown() {
        let mut after = trial(1, JobStatus::Running);
        let mut workspace = attached("us-east-1a");
        let before = Trial { workspace: Some(workspace.clone()), ..after.clone() };
        workspace.notes = vec!["started from snap-1".to_owned()];
        workspace.unavailable = Some("no volume in us-east-1a: VolumeLimitExceeded: quota".to_owned());
        workspace.snapshots.insert(4, crate::live::samples::early_snapshot(30));
        after.workspace = Some(workspace);
        after.round = 1;
        assert_eq!(
            texts(Some(&before), &after),
            [
                "99 trial 1 goes on as a job of its own: round 1",
                "30 trial 1 is warned: attempt 1 may lose its instance; saving early",
                "99 trial 1 falls back: started from snap-1",
                "99 trial 1 retrying: no volume in us-east-1a: VolumeLimitExceeded: quota",
            ]
        );
    }
}
