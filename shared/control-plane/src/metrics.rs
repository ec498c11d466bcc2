//! Metrics for alarms and the dashboard (`infra/operations.yaml`, docs/operations.md).
//!
//! Each metric is a difference between a record before and after a commit. So a repeated event, which changes nothing,
//! counts once. A late observation of several attempts counts completely.

use jiff::Timestamp;

use crate::input::{About, Input, Subject};
use crate::store::{Change, Record, View};
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::{Attempt, Standing, Trial};
use spotsweep_records::workspace::{Stage, Workspace};

/// One value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The metric.
    pub name: Name,
    /// What is added to it. For [`Name::OldestOpenSeconds`] it is the value itself.
    pub value: f64,
}

/// The metrics that are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Trials that have succeeded.
    TrialsSucceeded,
    /// Trials that have failed, except for those that a person cancelled.
    TrialsFailed,
    /// Trials that a person cancelled.
    TrialsCancelled,
    /// Attempts that were interrupted ([`Attempt::was_interrupted`]).
    Interruptions,
    /// Workspaces whose copy in another zone was mounted and verified.
    Migrations,
    /// Seconds from the end of an interrupted attempt's container to the start of the next one's, both as Batch reports
    /// them. Training after the last checkpoint, which is repeated, is not included.
    SecondsLost,
    /// What ended and running attempts have cost, with their volumes and the control plane, as of the newest report.
    Usd,
    /// What the same instance seconds would have cost on demand.
    OnDemandUsd,
    /// How long the oldest overdue record has been overdue; 0 if none is. Every run of `reconcile` publishes it.
    OldestOpenSeconds,
}

impl Name {
    /// Returns the metric's name in CloudWatch.
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

    /// Returns the metric's unit, which is one of
    /// [CloudWatch's](https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html).
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

/// Publishes metrics to CloudWatch, or ignores them.
pub trait Telemetry: Sync {
    /// Gets every input once its decision is final, with the view of the decision, even if nothing changed. The
    /// simulation counts with it which inputs came in which states.
    fn decided(&self, _view: &View, _input: &Input) {}

    /// Publishes the metrics of a step after its commit. The step's commands come later, so the metrics are published
    /// even if the invocation is killed during these.
    fn measured(&self, _about: &About, _metrics: &[Metric], _now: Timestamp) {}
}

/// Returns the metrics of a step, from what it is about, its view, and the change that was committed, if any.
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

/// Returns the seconds between an interrupted attempt and the next one; 0 until both times are known.
fn lost_after(trial: &Trial, number: u32) -> f64 {
    let stopped_at = trial.attempts.get(&number).filter(|_| trial.was_interrupted(number));
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

/// Whether the volume is a copy from another zone whose source still exists.
fn is_copy(workspace: &Workspace) -> bool {
    workspace.source.as_ref().is_some_and(|source| source.zone != workspace.volume.zone)
}

#[cfg(test)]
mod tests;
