//! Events that the control plane puts on the event bus, for its own functions and for people.
//!
//! Their source is `spotsweep`. `Sweep Keeping`, `Sweep Settling` and `Sweep Running` start our own functions. The
//! others are for any rule that matches them: `infra/operations.yaml` sends them to an SNS topic, `infra/slack.yaml` to
//! a webhook. Each is put at least once, because the next stage is committed only after the put.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::sweep::Sweep;
use crate::sweep::spent::Spent;
use crate::trial::{AgentState, Host, InstanceStatus, is_dead};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::stall::{NO_SIGN, StallRule};
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::{counted, dollars, duration, rounded};
use spotsweep_sweep_file::Problem;

/// EventBridge source of spotsweep's own events.
pub const SOURCE: &str = "spotsweep";

/// How many problems of a rejected file a message names. All of them are in the rejection next to the file.
const MAX_PROBLEMS: usize = 5;

/// The kind of an event about a sweep or one of its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The trials that the sweep continues from have to note it.
    Keeping,
    /// Every part has ended, and the results have to be collected.
    Settling,
    /// The sweep runs, and its progress has to be checked.
    Running,
    /// Every result is written.
    Settled,
    /// The file was rejected.
    Rejected,
    /// The sweep's budget is reached, and no further attempt starts.
    OverBudget,
    /// A trial has reached the sweep's target, and no further attempt starts.
    TargetReached,
    /// The first trials have all failed at once, and no further attempt starts.
    FailingFast,
    /// A trial is stalled.
    Stalled(StalledAttempt),
    /// The runner of a trial does not report, although AWS Batch shows its attempt as running.
    Silent(SilentAttempt),
}

/// A stalled attempt, and the report that shows the stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalledAttempt {
    /// The trial's index within the sweep, from 0.
    pub index: u32,
    /// The attempt's number.
    pub attempt: u32,
    /// The report's number within the attempt.
    pub sequence: u64,
    /// The training's last sign of life.
    pub since: Timestamp,
}

/// A silent attempt, and the states that ECS and EC2 report for its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilentAttempt {
    /// The trial's index within the sweep, from 0.
    pub index: u32,
    /// The attempt's number.
    pub attempt: u32,
    /// The time of its last report.
    pub since: Timestamp,
    /// The state of the ECS agent.
    pub agent: AgentState,
    /// The state of the instance.
    pub status: InstanceStatus,
}

impl Kind {
    /// EventBridge detail type.
    pub fn detail_type(self) -> &'static str {
        match self {
            Self::Keeping => "Sweep Keeping",
            Self::Settling => "Sweep Settling",
            Self::Running => "Sweep Running",
            Self::Settled => "Sweep Settled",
            Self::Rejected => "Sweep Rejected",
            Self::OverBudget => "Sweep Over Budget",
            Self::TargetReached => "Sweep Target Reached",
            Self::FailingFast => "Sweep Failing Fast",
            Self::Stalled(_) => "Trial Stalled",
            Self::Silent(_) => "Trial Silent",
        }
    }
}

/// An event to be put on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The sweep.
    pub sweep: SweepId,
    /// Key of the sweep file.
    pub file: String,
    /// The kind of the event.
    pub kind: Kind,
    /// The text for people; empty for events that only functions use.
    pub message: String,
    /// ARN of the SNS topic that the sweep file names, which gets the message too.
    pub topic: Option<String>,
    /// The page of the sweep's trials that the event is about. Without it, the event is about the page that is read
    /// next.
    pub page: Option<u32>,
    /// Why no further attempt is to start.
    pub stop: Option<StopReason>,
}

impl Notification {
    /// Makes an event for our own functions only.
    pub fn internal(sweep: &Sweep, kind: Kind) -> Self {
        let (file, message) = (sweep.upload.key.clone(), String::new());
        Self { sweep: sweep.id.clone(), file, kind, message, topic: None, page: None, stop: None }
    }

    /// Makes an event about one page of the sweep's trials. If the event comes twice, its page number prevents a second
    /// pass.
    pub fn of_page(sweep: &Sweep, kind: Kind, page: u32) -> Self {
        Self { page: Some(page), ..Self::internal(sweep, kind) }
    }

    fn to_people(sweep: &Sweep, kind: Kind, message: String) -> Self {
        let topic = sweep.plan.as_ref().and_then(|plan| plan.topic.clone());
        Self { message, topic, ..Self::internal(sweep, kind) }
    }

    /// Makes the notification of a settled sweep from its `summary.json`: counts, best trial, cost, and the place of
    /// the results.
    pub fn settled(sweep: &Sweep, summary: &str) -> Self {
        let summary: Value = serde_json::from_str(summary).unwrap_or_default();
        let more = |name: &str, word: &str| {
            let number = summary[name].as_u64().filter(|number| *number > 0);
            number.map(|number| format!(", {number} {word}")).unwrap_or_default()
        };
        let others = more("stopped_early", "stopped early") + &more("cancelled", "cancelled");
        let count = |name: &str| summary[name].as_u64().unwrap_or(0);
        let trials = counted(count("trials"), "trial");
        let mut lines = vec![format!(
            "{}: {} of {trials} succeeded, {} failed{others}",
            sweep.upload.key,
            count("succeeded"),
            count("failed")
        )];
        let best = &summary["best"];
        if let Some(metric) = best["metric"].as_str() {
            let of_set = best["set"].as_object().map(|set| {
                let error =
                    set["standard_error"].as_f64().map(|error| format!(" ± {}", rounded(error, 4))).unwrap_or_default();
                let mean = set["mean"].as_f64().unwrap_or(f64::NAN);
                format!("; of its parameter set, trials {}, the mean is {}{error}", set["trials"], rounded(mean, 4))
            });
            let (index, value, parameters) = (&best["index"], &best["value"], &best["parameters"]);
            lines
                .push(format!("best: trial {index} with {metric} {value}, {parameters}{}", of_set.unwrap_or_default()));
        }
        if let Some(cost) = summary["cost"].as_object() {
            let number = |name: &str| cost.get(name).and_then(Value::as_f64);
            let saving = number("saving").map(|share| format!(", {:.0} % less than on demand", share * 100.0));
            let usd = number("usd").unwrap_or(0.0);
            lines.push(format!("cost: {}{}", dollars(usd), saving.unwrap_or_default()));
        }
        let (attempts, interruptions) = (count("attempts"), count("interruptions"));
        lines.push(format!("{}, {}", counted(attempts, "attempt"), counted(interruptions, "interruption")));
        lines.push(format!("results: {}", summary["outputs"].as_str().unwrap_or_default()));
        lines.push(format!("spotsweep report {} --open", sweep.id));
        Self::to_people(sweep, Kind::Settled, lines.join("\n"))
    }

    /// Makes the notification of a rejection, with the first problems and the place of the full list.
    pub fn rejected(sweep: &Sweep, problems: &[Problem]) -> Self {
        let mut lines = vec![format!("{}: rejected, nothing was started", sweep.upload.key)];
        lines.extend(problems.iter().take(MAX_PROBLEMS).map(|problem| match problem.line {
            0 => format!("{}; {}", problem.message, problem.help),
            line => format!("line {line}: {}; {}", problem.message, problem.help),
        }));
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.push(format!("all of it: s3://{}/{}", sweep.upload.bucket, sweep.upload.rejected_key()));
        Self::to_people(sweep, Kind::Rejected, lines.join("\n"))
    }

    /// Makes the notification that the sweep is stopped, with the reason and the cost so far.
    pub fn stopped(sweep: &Sweep, reason: StopReason, spent: &Spent) -> Self {
        let kind = match reason {
            StopReason::Target { .. } => Kind::TargetReached,
            StopReason::FailingFast { .. } => Kind::FailingFast,
            _ => Kind::OverBudget,
        };
        let lines = [
            format!("{}: {reason}", sweep.upload.key),
            format!("{} so far; no further attempt starts, what runs is left to finish", dollars(spent.usd)),
            format!("spotsweep status {}", sweep.id),
        ];
        Self { stop: Some(reason), ..Self::to_people(sweep, kind, lines.join("\n")) }
    }

    /// Makes the notification of a stall, with its length in seconds, and what follows by the trial's rule.
    pub fn stalled(sweep: &Sweep, of: StalledAttempt, seconds: u64, rule: StallRule) -> Self {
        let StalledAttempt { index, attempt, .. } = of;
        let lines = [
            format!("{}: trial {index} is stalled: {NO_SIGN} for {}", sweep.upload.key, duration(seconds as f64)),
            what_follows(attempt, rule),
            format!("spotsweep logs {} {index}", sweep.id),
        ];
        Self::to_people(sweep, Kind::Stalled(of), lines.join("\n"))
    }

    /// Makes the notification of a silence, with its length in seconds, and what follows by the state of the instance.
    pub fn silent(sweep: &Sweep, of: SilentAttempt, host: &Host, seconds: i64) -> Self {
        let SilentAttempt { index, attempt, agent, status, .. } = of;
        // The record has the times of reports only to the minute.
        let time = duration((seconds / 60 * 60) as f64);
        let file = &sweep.upload.key;
        let lines = [
            format!(
                "{file}: trial {index} does not report: AWS Batch shows attempt {attempt} as running, and its last report was {time} ago"
            ),
            format!("{agent}; {status}"),
            what_follows_silence(host),
            format!("spotsweep explain {} {index}", sweep.id),
        ];
        Self::to_people(sweep, Kind::Silent(of), lines.join("\n"))
    }

    /// Returns the event's detail. A trial's event also has the trial's index, and a page's event its number.
    pub fn detail(&self) -> Value {
        let mut detail = json!({ "sweep": self.sweep.as_str(), "file": self.file, "message": self.message });
        if let Kind::Stalled(StalledAttempt { index, .. }) | Kind::Silent(SilentAttempt { index, .. }) = self.kind {
            detail["trial"] = index.into();
        }
        if let Some(page) = self.page {
            detail["page"] = page.into();
        }
        detail
    }

    /// Returns one line as the subject of a mail. SNS takes up to 99 ASCII characters
    /// (<https://docs.aws.amazon.com/sns/latest/api/API_Publish.html>).
    pub fn subject(&self) -> String {
        let line = format!("{}: {}", self.kind.detail_type(), self.file);
        line.chars().filter(|letter| letter.is_ascii() && !letter.is_ascii_control()).take(99).collect()
    }
}

fn what_follows_silence(host: &Host) -> String {
    match (&host.instance, host.to_end().is_some()) {
        (Some(instance), true) => {
            format!(
                "{instance} is ended, as nothing can run there; the next attempt goes on from the newest checkpoint"
            )
        }
        (Some(_), false) if is_dead(host.agent, host.status) => {
            "AWS Batch has yet to report the end of the attempt; nothing is done".to_owned()
        }
        (Some(instance), false) => format!(
            "it is left as it is and billed, as its training may go on; if it does not: aws ec2 terminate-instances --instance-ids {instance}"
        ),
        (None, _) => "it is left as it is, as its instance is not known".to_owned(),
    }
}

fn what_follows(attempt: u32, rule: StallRule) -> String {
    match rule.end_seconds.map(|seconds| duration(seconds.into())) {
        None => "it goes on running; `stalled: 2h` in a sweep file ends such an attempt after that time".to_owned(),
        Some(limit) if rule.is_last => {
            format!("the trial fails after {limit} without a sign: earlier attempts have ended in the same way")
        }
        Some(limit) => {
            format!("attempt {attempt} is ended after {limit} without a sign; the next one goes on from its checkpoint")
        }
    }
}
