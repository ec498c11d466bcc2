//! Says what a sweep waits for, most important first.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spotsweep_records::sweep::{Plan, Stage};
use spotsweep_records::trial::{JobStatus, Trial, fetching};

use super::look::{Batch, Look};
use super::queued::{USUAL_WAIT, longest};
use super::watch_event::is_mounted;
use spotsweep_protocol::words::{counted, duration};

/// A sentence for each reason. There is none if the sweep only waits for the end of running trials.
pub(super) fn blockers(look: &Look) -> Vec<String> {
    let Look { sweep, trials, .. } = look;
    let stopped = sweep.stopped.as_ref().map(|reason| format!("no further attempt starts: {reason}"));
    let of_stage = match (&sweep.stage, &sweep.plan) {
        (Stage::Reading, _) => vec!["the sweep file is being read and checked".to_owned()],
        (Stage::Keeping { next }, _) => {
            vec![format!("what it goes on from is noted, so that it is kept: {} so far", counted(*next, "snapshot"))]
        }
        (Stage::Submitting { part }, plan) => {
            let parts = plan.as_ref().map_or(0, |plan| plan.parts.len());
            vec![format!("array job {} of {parts} is being submitted", part + 1)]
        }
        (Stage::Announcing, _) => vec!["the plan is being written beside the file".to_owned()],
        (Stage::Withdrawing { refusal }, _) => vec![format!("Batch refused a job, all are taken back: {refusal}")],
        (Stage::Settling, _) => vec![settling(trials)],
        (Stage::Running, Some(plan)) => {
            [capacity(look, plan), reasons(&look.batch), workspaces(trials, look.at), data(trials)].concat()
        }
        (Stage::Running, None) | (Stage::Settled | Stage::Rejected, _) => Vec::new(),
    };
    stopped.into_iter().chain(of_stage).collect()
}

fn data(trials: &[Trial]) -> Vec<String> {
    let under_way = fetching(trials).map(|(count, fetch)| {
        let verb = if count == 1 { "fetches" } else { "fetch" };
        format!("{} {verb} data: {fetch}", counted(count, "trial"))
    });
    under_way.into_iter().collect()
}

fn capacity(look: &Look, plan: &Plan) -> Vec<String> {
    let Some((count, since)) = longest(&look.sweep, plan, &look.trials) else { return Vec::new() };
    let waited = look.at.duration_since(since);
    let placed =
        look.trials.iter().filter(|trial| matches!(trial.status, JobStatus::Starting | JobStatus::Running)).count();
    let seconds = duration(waited.as_secs_f64());
    if placed > 0 {
        let (trials, verb) = (counted(count, "trial"), if count == 1 { "waits" } else { "wait" });
        let ahead = if placed == 1 { "runs or starts" } else { "run or start" };
        return vec![format!("{trials} {verb} for an instance while {placed} {ahead}")];
    }
    let none = if waited > USUAL_WAIT { "no instance comes" } else { "instances are being started" };
    vec![format!("{none}: {count} of {} RUNNABLE, the first for {seconds}", counted(plan.trials, "trial"))]
}

/// Batch's own words about a blocked queue, with what to do about them. [Jobs stuck in
/// RUNNABLE](https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html)
fn reasons(batch: &Batch) -> Vec<String> {
    let advice = |reason: &str| match reason.split(':').next().unwrap_or_default() {
        "CAPACITY" => " (give the queue more instance types or zones, or wait)",
        "MISCONFIGURATION" => " (no trial starts before that is fixed)",
        _other => "",
    };
    let queue = batch.queue.iter().map(|trouble| format!("the queue is blocked: {trouble}"));
    let jobs = batch.reasons.iter().map(|reason| format!("the queue is blocked: {reason}{}", advice(reason)));
    let unasked = batch.unasked.iter().map(|error| format!("Batch could not be asked why: {error}"));
    queue.chain(jobs).chain(unasked).collect()
}

/// Trials that have an instance, but not their workspace yet.
fn workspaces(trials: &[Trial], now: Timestamp) -> Vec<String> {
    let mut stages: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for trial in trials.iter().filter(|trial| !trial.is_over()) {
        let Some(workspace) = trial.workspace.as_ref() else { continue };
        if let Some(why) = &workspace.refused {
            lines.push(format!("trial {} fails: {why}", trial.index));
        } else if let Some(why) = &workspace.unavailable {
            lines.push(format!("trial {}: retrying: {why}", trial.index));
        } else if workspace.refusals > 0 {
            let times = counted(workspace.refusals, "time");
            lines.push(format!("trial {}: EC2 has refused its volume {times} (quota?)", trial.index));
        }
        let is_placed = matches!(trial.status, JobStatus::Starting | JobStatus::Running);
        // At its end an attempt releases the workspace, and waits for nothing.
        let is_wanted = !workspace.finished && workspace.left_by <= trial.ended;
        if is_placed && is_wanted && !is_mounted(workspace) {
            *stages.entry(workspace.stage.name()).or_default() += 1;
        }
    }
    if !stages.is_empty() {
        let count: usize = stages.values().sum();
        let stages: Vec<String> = stages.iter().map(|(stage, count)| format!("{count} {stage}")).collect();
        let (verb, its) = if count == 1 { ("waits", "its") } else { ("wait", "their") };
        lines.insert(0, format!("{} {verb} for {its} workspace: {}", counted(count, "trial"), stages.join(", ")));
    }
    let overdue = trials.iter().filter(|trial| trial.resubmitting).count();
    if overdue > 0 {
        let seconds = trials.iter().filter(|trial| trial.resubmitting).filter_map(Trial::stopped_at).min();
        let since = seconds.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        lines.push(format!("{overdue} to be submitted again after ten attempts, for {}", duration(since)));
    }
    lines
}

fn settling(trials: &[Trial]) -> String {
    let unclean = trials.iter().filter(|trial| !trial.is_clean()).count();
    match unclean {
        0 => "all trials have ended; results are being collected".to_owned(),
        count => format!("all trials have ended; volumes and snapshots of {count} are being deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::queued::is_long;
    use super::*;
    use spotsweep_protocol::stop::StopReason;

    use crate::live::samples::{at, detached, look, running, succeeded, trial};

    fn on(second: i64, total: u32, trials: Vec<Trial>) -> Vec<String> {
        blockers(&look(second, total, trials))
    }

    #[test]
    fn each_wait_has_its_sentence() {
        assert_eq!(on(10, 4, vec![]), ["instances are being started: 4 of 4 trials RUNNABLE, the first for 10 s"]);
        assert_eq!(on(90, 4, vec![]), ["no instance comes: 4 of 4 trials RUNNABLE, the first for 1 min 30 s"]);
        let one_runs = vec![running(0, "us-east-1a", 80)];
        assert_eq!(on(90, 4, one_runs.clone()), ["3 trials wait for an instance while 1 runs or starts"]);
        assert!(on(90, 1, one_runs).is_empty(), "what runs is not waited for");
        assert!(on(90, 1, vec![succeeded(0, 0, 9, 0.5)]).is_empty());
        let mut moving = trial(0, JobStatus::Starting);
        moving.workspace = Some(detached("us-east-1a", "us-east-1c"));
        assert_eq!(on(90, 1, vec![moving.clone()]), ["1 trial waits for its workspace: 1 awaiting-snapshot"]);
        if let Some(workspace) = &mut moving.workspace {
            workspace.refusals = 2;
        }
        assert_eq!(on(90, 1, vec![moving.clone()])[1], "trial 0: EC2 has refused its volume 2 times (quota?)");
        if let Some(workspace) = &mut moving.workspace {
            workspace.unavailable = Some("the instance was reclaimed first".to_owned());
        }
        assert_eq!(on(90, 1, vec![moving.clone()])[1], "trial 0: retrying: the instance was reclaimed first");
        if let Some(workspace) = &mut moving.workspace {
            (workspace.refusals, workspace.left_by, workspace.unavailable) = (0, 1, None);
        }
        assert!(on(90, 1, vec![moving]).is_empty(), "what was given back is not waited for");
    }

    #[test]
    fn each_reason_of_batch_has_a_remedy() {
        let mut look = look(600, 2, vec![]);
        let short = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested";
        look.batch.reasons.insert(short.to_owned());
        look.batch.queue = Some("the queue spot is DISABLED".to_owned());
        let lines = blockers(&look);
        assert_eq!(lines[0], "no instance comes: 2 of 2 trials RUNNABLE, the first for 10 min");
        assert_eq!(lines[1], "the queue is blocked: the queue spot is DISABLED");
        assert_eq!(
            lines[2],
            format!("the queue is blocked: {short} (give the queue more instance types or zones, or wait)")
        );
        look.sweep.stage = Stage::Settling;
        assert_eq!(blockers(&look), ["all trials have ended; results are being collected"]);
        look.sweep.stopped = Some(StopReason::Budget { reached: "5 USD".to_owned() });
        look.sweep.stage = Stage::Settled;
        assert_eq!(blockers(&look), ["no further attempt starts: budget reached: 5 USD"]);
    }

    #[test]
    fn batch_is_asked_only_about_what_takes_long() {
        let sweep = look(0, 2, vec![]).sweep;
        assert!(!is_long(&sweep, &[], at(20)) && is_long(&sweep, &[], at(40)));
        let both = [running(0, "a", 1), running(1, "a", 1)];
        assert!(!is_long(&sweep, &both, at(400)), "nothing waits");
    }
}
