//! A trial's history: its audit log, merged with what Batch says about its containers.

mod brief;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_control_plane::store::Audit;
use spotsweep_records::trial::{Attempt, Trial};

use crate::show;
use spotsweep_protocol::words::{counted, duration};

/// What the control plane knows about a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct History {
    /// Its record.
    pub(crate) trial: Trial,
    /// Its audit log, oldest entry first.
    pub(crate) entries: Vec<Audit>,
    /// The metric by which the sweep's trials are compared.
    pub(crate) metric: Option<String>,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    at: Timestamp,
    /// Name of the event. Starts and ends of containers are Batch's.
    event: String,
    text: String,
    quiet: bool,
}

/// A trial's attempts as JSON.
pub(crate) fn attempts(trial: &Trial) -> Vec<Value> {
    let attempt = |(number, attempt): (&u32, &Attempt)| {
        json!({ "attempt": number, "zone": attempt.zone, "instance": attempt.instance,
            "started_at": attempt.started_at.map(|at| at.to_string()),
            "stopped_at": attempt.stopped_at.map(|at| at.to_string()),
            "exit_code": attempt.exit_code, "reason": attempt.reason.as_ref().map(ToString::to_string), "log_stream": attempt.log_stream })
    };
    trial.attempts.iter().map(attempt).collect()
}

impl History {
    /// The whole history as JSON. `seconds` count from the first event.
    pub(crate) fn json(&self) -> Value {
        let first = self.entries.first().map(|entry| entry.at);
        let seconds = |at: Timestamp| first.map_or(0.0, |first| at.duration_since(first).as_secs_f64());
        let events = self.entries.iter().map(|entry| {
            json!({ "at": entry.at.to_string(), "seconds": seconds(entry.at), "event": entry.event,
                "answer": entry.answer, "state": entry.state, "commands": entry.commands })
        });
        json!({
            "sweep": self.trial.sweep.as_str(),
            "trial": self.trial.index,
            "status": self.trial.standing().name(),
            "attempts": attempts(&self.trial),
            "workspace": self.trial.workspace.as_ref().map(|workspace| json!({
                "stage": workspace.stage.name(), "zone": workspace.volume.zone,
                "volume": workspace.volume.id, "notes": workspace.notes })),
            "events": events.collect::<Vec<_>>(),
        })
    }

    /// The whole history for people: a headline, the attempts, then one line for each important event.
    pub(crate) fn text(&self) -> String {
        let mut text = self.headline();
        let mut lay_out = |rows: &[Vec<String>]| {
            let mut table = Vec::new();
            // Writing to memory does not fail.
            let _ = show::whole_table(&mut table, rows);
            text.push_str(&String::from_utf8_lossy(&table));
            text.push('\n');
        };
        lay_out(&self.attempts());
        lay_out(&rows(&self.lines()));
        for note in self.trial.notes() {
            text.push_str(&format!("note: {}\n", show::line(note)));
        }
        text
    }

    fn headline(&self) -> String {
        let Trial { sweep, index, attempts, .. } = &self.trial;
        let mut zones: Vec<&str> = attempts.values().filter_map(|attempt| attempt.zone.as_deref()).collect();
        zones.dedup();
        let zones = if zones.is_empty() { String::new() } else { format!(", {}", zones.join(" → ")) };
        let (count, state) = (counted(attempts.len(), "attempt"), self.trial.standing().name());
        let time = duration(self.trial.run_seconds());
        format!("trial {index} of {sweep}: {state}, {count}{zones}, {time} in containers\n\n")
    }

    fn attempts(&self) -> Vec<Vec<String>> {
        let header = ["ATTEMPT", "ZONE", "INSTANCE", "RAN", "ENDED"].map(String::from);
        let row = |(number, attempt): (&u32, &Attempt)| {
            let ran = attempt.started_at.zip(attempt.stopped_at);
            let ran = ran.map(|(from, to)| duration(to.duration_since(from).as_secs_f64()));
            vec![
                number.to_string(),
                attempt.zone.clone().unwrap_or_default(),
                attempt.instance.clone().unwrap_or_default(),
                ran.unwrap_or_default(),
                ending(attempt),
            ]
        };
        std::iter::once(header.into()).chain(self.trial.attempts.iter().map(row)).collect()
    }

    /// The audit log and the containers' times, in the order of time.
    fn lines(&self) -> Vec<Line> {
        let of_log = self.entries.iter().map(|entry| {
            let follow = if entry.commands.is_empty() { String::new() } else { format!(" → {}", commands(entry)) };
            let text = format!("{}{follow}", answer(entry));
            Line { at: entry.at, event: entry.event.to_string(), text, quiet: is_quiet(entry) }
        });
        let batch = |at, text| Line { at, event: "batch".to_owned(), text, quiet: false };
        let of_batch = self.trial.attempts.iter().flat_map(|(number, attempt)| {
            let started = attempt.started_at.map(|at| batch(at, format!("the container of attempt {number} runs")));
            let ended = ending(attempt);
            let stopped =
                attempt.stopped_at.map(|at| batch(at, format!("the container of attempt {number} ended: {ended}")));
            [started, stopped].into_iter().flatten()
        });
        let mut lines: Vec<Line> = of_log.chain(of_batch).collect();
        lines.sort_by_key(|line| line.at);
        lines
    }
}

/// The decision, or the text of a warning, which changes no stage.
fn answer(entry: &Audit) -> &str {
    match (&*entry.event, is_look(entry)) {
        ("interruption-noticed", true) => "EC2 is about to take the instance",
        ("rebalance-noticed", true) => "EC2 recommends to leave the instance",
        _other => &entry.answer,
    }
}

/// Whether the answer only names the stage, because the fact has not changed it.
fn is_look(entry: &Audit) -> bool {
    entry.answer.starts_with("workspace ") || entry.answer.starts_with("unchanged")
}

/// Reports and repeated looks are not important by themselves.
fn is_quiet(entry: &Audit) -> bool {
    matches!(&*entry.event, "trial-reported" | "trial-fetching") || (is_look(entry) && entry.commands.is_empty())
}

/// Text such as `create-volume, attach-volume`, without repetitions.
fn commands(entry: &Audit) -> String {
    let mut names: Vec<&str> = entry.commands.iter().map(AsRef::as_ref).collect();
    names.dedup();
    names.join(", ")
}

fn ending(attempt: &Attempt) -> String {
    let code = attempt.exit_code.map(|code| format!("exit code {code}"));
    let parts: Vec<String> = [attempt.reason.as_ref().map(ToString::to_string), code].into_iter().flatten().collect();
    parts.join(", ")
}

/// The columns: time since the beginning, time since the line before, event, and text. Unimportant entries in a row
/// become one.
fn rows(lines: &[Line]) -> Vec<Vec<String>> {
    let Some(begin) = lines.first().map(|line| line.at) else { return Vec::new() };
    let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
    let (mut rows, mut last) = (Vec::new(), begin);
    for group in lines.chunk_by(|left, right| left.quiet && right.quiet) {
        let (Some(head), Some(tail)) = (group.first(), group.last()) else { continue };
        let (event, text) =
            if head.quiet { (String::new(), folded(group)) } else { (head.event.clone(), head.text.clone()) };
        let since = seconds(last, tail.at);
        rows.push(vec![format!("{:8.2} s", seconds(begin, tail.at)), format!("+{since:.2}"), event, text]);
        last = tail.at;
    }
    rows
}

/// Text such as `3 trial-reported, 1 volume-seen`.
fn folded(group: &[Line]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in group {
        *counts.entry(&line.event).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(event, count)| format!("{count} {event}")).collect();
    format!("… {}", counts.join(", "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_records::trial::JobStatus;

    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + millisecond).unwrap()
    }

    fn entry(millisecond: i64, event: &str, answer: &str, commands: &[&str]) -> Audit {
        let commands = commands.iter().map(|command| (*command).to_owned().into()).collect();
        Audit {
            at: at(millisecond),
            event: event.to_owned().into(),
            answer: answer.into(),
            state: String::new(),
            commands,
        }
    }

    #[test]
    fn a_reclaimed_trial_tells_its_story() {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 7, JobId::from("job:7".to_owned()));
        trial.status = JobStatus::Succeeded;
        for (number, zone, from, to, reason) in [
            (1, "us-east-1a", 500, 2_000, Some("Host EC2 (instance i-1) terminated.")),
            (2, "us-east-1c", 4_000, 9_000, None),
        ] {
            let exit_code = reason.is_none().then_some(0);
            let reason = reason.map(Into::into);
            let zone = Some(zone.to_owned());
            let (started_at, stopped_at) = (Some(at(from)), Some(at(to)));
            trial
                .attempts
                .insert(number, Attempt { zone, started_at, stopped_at, exit_code, reason, ..Attempt::default() });
        }
        let entries = vec![
            entry(0, "trial-claimed", "attempt 1 claims", &["create-volume"]),
            entry(1_000, "trial-reported", "report 1 of attempt 1", &[]),
            entry(1_500, "volume-seen", "workspace attached", &[]),
            entry(1_900, "trial-reported", "report 2 of attempt 1", &[]),
            entry(3_000, "attempt-located", "copying the workspace", &["detach-volume", "detach-volume"]),
        ];
        let history = History { trial, entries, metric: None };
        let expected = "\
trial 7 of SWEEP: succeeded, 2 attempts, us-east-1a → us-east-1c, 6.5 s in containers

ATTEMPT  ZONE        INSTANCE  RAN    ENDED
1        us-east-1a            1.5 s  Host EC2 (instance i-1) terminated.
2        us-east-1c            5 s    exit code 0

    0.00 s  +0.00  trial-claimed    attempt 1 claims → create-volume
    0.50 s  +0.50  batch            the container of attempt 1 runs
    1.90 s  +1.40                   … 2 trial-reported, 1 volume-seen
    2.00 s  +0.10  batch            the container of attempt 1 ended: Host EC2 (instance i-1) terminated.
    3.00 s  +1.00  attempt-located  copying the workspace → detach-volume
    4.00 s  +1.00  batch            the container of attempt 2 runs
    9.00 s  +5.00  batch            the container of attempt 2 ended: exit code 0

";
        assert_eq!(history.text().replace(history.trial.sweep.as_str(), "SWEEP"), expected);
        let json = history.json();
        assert_eq!(json["events"].as_array().unwrap().len(), 5, "machines get every event");
        assert_eq!((&json["events"][4]["seconds"], &json["status"]), (&json!(3.0), &json!("succeeded")));
    }
}
