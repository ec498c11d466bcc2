//! Describes a trial in a few lines: its state, where it ran, what interrupted it, and where to look next.

use std::collections::BTreeMap;

use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::words::{counted, duration, figure};
use spotsweep_records::trial::{Attempt, Standing, Trial};
use spotsweep_report::diagnosis::why;
use spotsweep_report::warnings::lacks;

use super::History;
use crate::show;

/// Metrics that are named.
const MOST_METRICS: usize = 4;
/// Number of newest notes that are shown.
const MOST_NOTES: usize = 2;

impl History {
    /// A short description of the trial for people.
    pub(crate) fn brief(&self) -> String {
        let trial = &self.trial;
        let metric = self.metric.as_deref();
        let lines = [
            Some(verdict(trial)),
            time(trial),
            interruptions(trial),
            workspace(trial),
            metrics(trial, metric),
            metric.and_then(|metric| missing(trial, metric)),
            rungs(trial),
        ];
        let mut lines: Vec<String> = lines.into_iter().flatten().collect();
        let notes = trial.notes();
        let shown = notes.len().saturating_sub(MOST_NOTES);
        lines.extend(notes.iter().skip(shown).map(|note| format!("note: {note}")));
        let (sweep, index) = (&trial.sweep, trial.index);
        lines.push(format!("`spotsweep logs {sweep} {index}` shows its output, --verbose every event"));
        lines.iter().map(|line| show::line(line) + "\n").collect()
    }
}

fn verdict(trial: &Trial) -> String {
    let attempts = counted(trial.attempts.len(), "attempt");
    let how = match trial.standing() {
        Standing::Waiting if trial.ended > 0 => format!("waits for an instance, after {attempts}"),
        Standing::Waiting => "waits for an instance".to_owned(),
        Standing::Starting => format!("starts: {}", newest(trial)),
        Standing::Running => format!("runs: {}", newest(trial)),
        Standing::Succeeded => format!("succeeded after {attempts}"),
        Standing::Failed => format!("failed after {attempts}: {}", why(trial)),
        Standing::Stopped => format!("{}, after {attempts}", why(trial)),
        Standing::Cancelled => {
            format!("cancelled after {attempts} by {}", trial.cancelled_by().unwrap_or_default())
        }
    };
    format!("trial {} of {}: {how}", trial.index, trial.sweep)
}

/// Text such as `attempt 2 in us-east-1c on i-1`.
fn newest(trial: &Trial) -> String {
    let Some((number, Attempt { zone, instance, .. })) = trial.attempts.last_key_value() else {
        return "its first attempt".to_owned();
    };
    let zone = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
    let instance = instance.as_ref().map(|instance| format!(" on {instance}")).unwrap_or_default();
    format!("attempt {number}{zone}{instance}")
}

/// Time in containers, by zone. The running one is not included.
fn time(trial: &Trial) -> Option<String> {
    let mut zones: BTreeMap<&str, f64> = BTreeMap::new();
    for attempt in trial.attempts.values() {
        let Some((from, to)) = attempt.started_at.zip(attempt.stopped_at) else { continue };
        *zones.entry(attempt.zone.as_deref().unwrap_or("zone unknown")).or_default() +=
            to.duration_since(from).as_secs_f64();
    }
    let zones: Vec<String> = zones.iter().map(|(zone, seconds)| format!("{} in {zone}", duration(*seconds))).collect();
    (!zones.is_empty()).then(|| format!("trained for {}: {}", duration(trial.run_seconds()), zones.join(", ")))
}

fn interruptions(trial: &Trial) -> Option<String> {
    let interrupted: Vec<u32> = trial.interruptions().map(|(number, _)| number).collect();
    let waits: Vec<f64> = interrupted.iter().filter_map(|number| until_it_ran(trial, *number)).collect();
    let wait = match waits[..] {
        [] => String::new(),
        [seconds] => format!("; {} until it ran again", duration(seconds)),
        ref several => format!("; {} in all until it ran again", duration(several.iter().sum::<f64>())),
    };
    let what = counted(interrupted.len(), "interruption");
    match interrupted[..] {
        [] if trial.attempts.is_empty() => None,
        [] => Some(what),
        [number] => {
            let reason = trial.why_interrupted(number).map(|reason| format!(", {reason}")).unwrap_or_default();
            Some(format!("{what}: attempt {number}{reason}{wait}"))
        }
        ref several => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            Some(format!("{what}: attempts {}{wait}", numbers.join(", ")))
        }
    }
}

/// Seconds from the end of an attempt until the next container ran. None if none has yet.
fn until_it_ran(trial: &Trial, number: u32) -> Option<f64> {
    let stopped = trial.attempts.get(&number)?.stopped_at?;
    let next = trial.attempts.range(number + 1..).find_map(|(_, attempt)| attempt.started_at)?;
    Some(next.duration_since(stopped).as_secs_f64().max(0.0))
}

/// Where its workspace is. For an ended trial, the zones in which it was, in order.
fn workspace(trial: &Trial) -> Option<String> {
    let workspace = trial.workspace.as_ref()?;
    if !trial.is_over() {
        return Some(format!("workspace: {} in {}", workspace.stage.name(), workspace.volume.zone));
    }
    let mut zones: Vec<&str> = trial.attempts.values().filter_map(|attempt| attempt.zone.as_deref()).collect();
    zones.dedup();
    match zones[..] {
        [] => None,
        [zone] => Some(format!("workspace: in {zone}, never moved")),
        ref several => Some(format!("workspace: moved {}", several.join(" → "))),
    }
}

/// The metric by which trials are compared comes first.
fn metrics(trial: &Trial, compared: Option<&str>) -> Option<String> {
    let first = compared.and_then(|name| trial.metrics.get_key_value(name));
    let others = trial.metrics.iter().filter(|(name, _)| compared != Some(name.as_str()));
    let metric = |(name, metric): (&String, &Metric)| {
        let step = metric.step.map(|step| format!(" (step {})", figure(step))).unwrap_or_default();
        format!("{name}={}{step}", figure(metric.last))
    };
    let shown: Vec<String> = first.into_iter().chain(others).take(MOST_METRICS).map(metric).collect();
    let more = trial.metrics.len().saturating_sub(MOST_METRICS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("last metrics: {}{more}", shown.join(", ")))
}

/// A sentence if the trial has reported, but not the metric by which trials are compared.
fn missing(trial: &Trial, metric: &str) -> Option<String> {
    let others = lacks(metric, trial)?;
    let instead = if others.is_empty() { "" } else { "; one of those above can be named as `metric: {name: …}`" };
    Some(format!("no `{metric}` so far, which the sweep file names{instead}"))
}

/// The trial's comparisons with the others, by rung.
fn rungs(trial: &Trial) -> Option<String> {
    let shown: Vec<String> = trial.compared.iter().map(|(rung, of)| format!("rung {rung}: {of}")).collect();
    (!shown.is_empty()).then(|| format!("compared at {}", shown.join("; at ")))
}

#[cfg(test)]
mod tests {
    use spotsweep_records::trial::JobStatus;

    use super::*;
    use crate::live::samples::{attached, interrupted, running, succeeded, trial};

    fn brief(trial: Trial) -> Vec<String> {
        let sweep = trial.sweep.to_string();
        let metric = Some("accuracy".to_owned());
        let text = History { trial, entries: Vec::new(), metric }.brief().replace(&sweep, "SWEEP");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_reclaimed_trial_is_six_lines() {
        let mut reclaimed = succeeded(7, 30, 90, 0.5);
        let last = reclaimed.attempts.remove(&1).unwrap_or_default();
        *reclaimed.attempt(1) = interrupted("us-east-1c", 5, 20);
        *reclaimed.attempt(2) = last;
        reclaimed.workspace = Some(attached("us-east-1a"));
        assert_eq!(
            brief(reclaimed),
            [
                "trial 7 of SWEEP: succeeded after 2 attempts",
                "trained for 1 min 15 s: 1 min in us-east-1a, 15 s in us-east-1c",
                "1 interruption: attempt 1, Host EC2 (instance i-us-east-1c) terminated.; 10 s until it ran again",
                "workspace: moved us-east-1c → us-east-1a",
                "last metrics: accuracy=0.5",
                "`spotsweep logs SWEEP 7` shows its output, --verbose every event",
            ]
        );
    }

    #[test]
    fn the_metric_of_the_sweep_comes_first_or_is_missed() {
        let metrics =
            |trial: &Trial| brief(trial.clone()).into_iter().filter(|line| line.contains("accuracy")).collect();
        let mut trial = succeeded(7, 30, 90, 0.5);
        for name in ["a", "b", "c", "z"] {
            trial.metrics.insert(name.to_owned(), trial.metrics["accuracy"]);
        }
        let lines: Vec<String> = metrics(&trial);
        assert_eq!(lines, ["last metrics: accuracy=0.5, a=0.5, b=0.5, c=0.5 and 1 more"]);
        trial.metrics.remove("accuracy");
        assert_eq!(metrics(&trial), Vec::<String>::new(), "it has made no two reports");
        trial.attempt(1).sequence = Some(2);
        let lines: Vec<String> = metrics(&trial);
        let missed = "no `accuracy` so far, which the sweep file names; one of those above can be named as \
            `metric: {name: …}`";
        assert_eq!(lines, [missed]);
    }

    #[test]
    fn every_standing_has_its_line() {
        let first = |trial: Trial| brief(trial).remove(0);
        let mut failed = trial(1, JobStatus::Failed);
        failed.reason = Some("Essential container in task exited".into());
        let mut again = trial(1, JobStatus::Runnable);
        again.ended = 1;
        *again.attempt(1) = interrupted("a", 1, 2);
        let mut cancelled = trial(1, JobStatus::Failed);
        cancelled.reason = Some("spotsweep: cancelled by jo".into());
        for (trial, expected) in [
            (trial(1, JobStatus::Runnable), "trial 1 of SWEEP: waits for an instance"),
            (again, "trial 1 of SWEEP: waits for an instance, after 1 attempt"),
            (running(1, "a", 5), "trial 1 of SWEEP: runs: attempt 1 in a on i-a"),
            (failed, "trial 1 of SWEEP: failed after 0 attempts: Essential container in task exited"),
            (cancelled, "trial 1 of SWEEP: cancelled after 0 attempts by jo"),
        ] {
            assert_eq!(first(trial), expected);
        }
    }
}
