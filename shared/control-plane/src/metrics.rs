//! What is counted, for alarms and the dashboard (`infra/operations.yaml`, docs/operations.md).
//!
//! A commit is the fact that counts: each figure is the difference between a record before and after it. So an event
//! that comes twice, and changes nothing, counts once; and what was learnt late, of several attempts at once, counts in
//! full.

use jiff::Timestamp;

use crate::input::{About, Input, Subject};
use crate::store::{Change, Record, View};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::{Attempt, Standing, Trial};
use spotsweep_records::workspace::{Stage, Workspace};

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// What is counted.
    pub name: Name,
    /// How much is added to it; for [`Name::OldestOpenSeconds`], how much it is.
    pub value: f64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Trials that have ended well.
    TrialsSucceeded,
    /// Trials that have ended otherwise, except for those that a person cancelled.
    TrialsFailed,
    /// Trials that a person cancelled.
    TrialsCancelled,
    /// Attempts that have ended because their instance was taken ([`Attempt::was_interrupted`]).
    Interruptions,
    /// Workspaces whose copy in another zone was mounted and verified.
    Migrations,
    /// From the end of an interrupted attempt's container to the start of the next one's, both as Batch tells them.
    /// What was trained since the last checkpoint, and is trained again, is not in it.
    SecondsLost,
    /// What ended and running attempts have cost, with their volumes and the control plane, as of the last look.
    Usd,
    /// What their instance seconds would have cost on demand.
    OnDemandUsd,
    /// For how long the first of the overdue records has been overdue; 0 where none is. By every run of `reconcile`.
    OldestOpenSeconds,
}

impl Name {
    /// The metric's name in CloudWatch.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TrialsSucceeded => "TrialsSucceeded",
            Self::TrialsFailed => "TrialsFailed",
            Self::TrialsCancelled => "TrialsCancelled",
            Self::Interruptions => "Interruptions",
            Self::Migrations => "Migrations",
            Self::SecondsLost => "SecondsLost",
            Self::Usd => "Usd",
            Self::OnDemandUsd => "OnDemandUsd",
            Self::OldestOpenSeconds => "OldestOpenSeconds",
        }
    }

    /// Its unit, one of [CloudWatch's](https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html).
    pub fn unit(self) -> &'static str {
        match self {
            Self::TrialsSucceeded
            | Self::TrialsFailed
            | Self::TrialsCancelled
            | Self::Interruptions
            | Self::Migrations => "Count",
            Self::SecondsLost | Self::OldestOpenSeconds => "Seconds",
            Self::Usd | Self::OnDemandUsd => "None",
        }
    }
}

/// Where figures are published: CloudWatch, or nowhere.
pub trait Telemetry: Sync {
    /// Takes every input once its decision holds, with the view that the decision was made on; also where nothing
    /// changed. The simulation counts by it which inputs met which states.
    fn decided(&self, _view: &View, _input: &Input) {}

    /// Publishes the figures of a step, once what they count is committed: a commit is the fact that counts. The step's
    /// commands come later, so an invocation that dies over those has counted it.
    fn measured(&self, _about: &About, _metrics: &[Metric], _now: Timestamp) {}
}

/// The figures of a step: what it is about, the view that it was decided on, and the change that was committed, if any.
pub fn measure(view: &View, about: &About, change: Option<&Change>, now: Timestamp) -> Vec<Metric> {
    let figures = match (&about.subject, change) {
        (Some(Subject::Overdue), _) => {
            let oldest_open = view.oldest_due.map_or(0.0, |due| now.duration_since(due).as_secs_f64().max(0.0));
            return vec![Metric { name: Name::OldestOpenSeconds, value: oldest_open }];
        }
        (_, Some(Change { record: Record::Trial(after), .. })) => {
            of_trial(view.trial.as_ref().map(|held| &held.record), after).to_vec()
        }
        (_, Some(Change { record: Record::Sweep(after), .. })) => {
            of_sweep(view.sweep.as_ref().map(|held| &held.record), after)
        }
        (_, None) => return Vec::new(),
    };
    figures.into_iter().filter(|(_, value)| *value > 0.0).map(|(name, value)| Metric { name, value }).collect()
}

fn of_trial(before: Option<&Trial>, after: &Trial) -> [(Name, f64); 6] {
    let count = |happened: bool| f64::from(u8::from(happened));
    let has_ended = after.is_over() && !before.is_some_and(Trial::is_over);
    let ended_as = |standing| count(has_ended && after.standing() == standing);
    let has_migrated = before.and_then(|before| before.workspace.as_ref()).is_some_and(|before| {
        after.workspace.as_ref().is_some_and(|after| is_mounted(after) && !is_mounted(before) && is_copy(before))
    });
    let (mut interruptions, mut seconds_lost) = (0.0, 0.0);
    for number in after.attempts.keys().copied() {
        let was_interrupted = |trial: &Trial| trial.attempts.get(&number).is_some_and(Attempt::was_interrupted);
        interruptions += count(was_interrupted(after) && !before.is_some_and(was_interrupted));
        seconds_lost += lost_after(after, number) - before.map_or(0.0, |before| lost_after(before, number));
    }
    [
        (Name::TrialsSucceeded, ended_as(Standing::Succeeded)),
        (Name::TrialsFailed, ended_as(Standing::Failed)),
        (Name::TrialsCancelled, ended_as(Standing::Cancelled)),
        (Name::Interruptions, interruptions),
        (Name::Migrations, count(has_migrated)),
        (Name::SecondsLost, seconds_lost),
    ]
}

fn of_sweep(before: Option<&Sweep>, after: &Sweep) -> Vec<(Name, f64)> {
    let Some(now) = after.spent else { return Vec::new() };
    let before = before.and_then(|before| before.spent).unwrap_or_default();
    vec![(Name::Usd, now.usd - before.usd), (Name::OnDemandUsd, now.on_demand_usd - before.on_demand_usd)]
}

/// Seconds between an interrupted attempt and the next one; 0 until both are known.
fn lost_after(trial: &Trial, number: u32) -> f64 {
    let stopped_at = trial.attempts.get(&number).filter(|attempt| attempt.was_interrupted());
    let stopped_at = stopped_at.and_then(|attempt| attempt.stopped_at);
    let started_at = trial.attempts.get(&(number + 1)).and_then(|attempt| attempt.started_at);
    match (stopped_at, started_at) {
        (Some(stopped), Some(started)) => started.duration_since(stopped).as_secs_f64().max(0.0),
        (Some(_) | None, Some(_) | None) => 0.0,
    }
}

fn is_mounted(workspace: &Workspace) -> bool {
    matches!(workspace.stage, Stage::Attached { mounted: true, .. })
}

/// Whether its volume is a copy from another zone, and its source still kept.
fn is_copy(workspace: &Workspace) -> bool {
    workspace.source.as_ref().is_some_and(|source| source.zone != workspace.volume.zone)
}

#[cfg(test)]
mod tests;
