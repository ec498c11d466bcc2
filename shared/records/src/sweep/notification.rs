//! What the control plane says on the event bus: to its own functions, and to people.
//!
//! EventBridge events of source `spotsweep`. The first three are for our own functions; the others are for whoever has a
//! rule for them: `infra/operations.yaml` sends them to an SNS topic, `infra/slack.yaml` to a webhook. All are said at
//! least once: what follows is committed only after it was said.

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

/// EventBridge source of this product's own events.
pub const SOURCE: &str = "spotsweep";

/// Problems of a rejected file that a message names; the rest is in the answer beside the file.
const MAX_PROBLEMS: usize = 5;

/// What has happened to a sweep, or to one of its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The trials that it goes on from are to note it.
    Keeping,
    /// Every part has ended: results are to be collected.
    Settling,
    /// It runs, and a person should look at it.
    Running,
    /// Every result is in place.
    Settled,
    /// The file was rejected.
    Rejected,
    /// Its budget is reached: no further attempt starts.
    OverBudget,
    /// A trial has reached its target: no further attempt starts.
    TargetReached,
    /// Its first trials have all failed at once: no further attempt starts.
    FailingFast,
    /// The training of a trial shows no sign of life.
    Stalled(StalledAttempt),
    /// The runner of a trial does not report, and AWS Batch shows its attempt as running.
    Silent(SilentAttempt),
}

/// Which attempt is stalled, and which of its reports says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalledAttempt {
    /// The trial's index within the sweep, from 0.
    pub index: u32,
    /// The attempt.
    pub attempt: u32,
    /// The report's number within the attempt.
    pub sequence: u64,
    /// The training's last sign of life.
    pub since: Timestamp,
}

/// Which attempt does not report, and what ECS and EC2 say of its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilentAttempt {
    /// The trial's index within the sweep, from 0.
    pub index: u32,
    /// The attempt.
    pub attempt: u32,
    /// Its last report.
    pub since: Timestamp,
    /// Of the ECS agent.
    pub agent: AgentState,
    /// Of the instance.
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

/// One event to put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The sweep.
    pub sweep: SweepId,
    /// Key of its file.
    pub file: String,
    /// What has happened.
    pub kind: Kind,
    /// For people; empty where only functions listen.
    pub message: String,
    /// ARN of the SNS topic that the sweep file names: the message goes there too.
    pub topic: Option<String>,
    /// The page of the sweep's trials that it is about; the next one where it names none.
    pub page: Option<u32>,
    /// Why no further attempt is to start.
    pub stop: Option<StopReason>,
}

impl Notification {
    /// For our own functions alone.
    pub fn internal(sweep: &Sweep, kind: Kind) -> Self {
        let (file, message) = (sweep.upload.key.clone(), String::new());
        Self { sweep: sweep.id.clone(), file, kind, message, topic: None, page: None, stop: None }
    }

    /// The same about one page of the sweep's trials: an event that comes twice then does not start a second pass.
    pub fn of_page(sweep: &Sweep, kind: Kind, page: u32) -> Self {
        Self { page: Some(page), ..Self::internal(sweep, kind) }
    }

    fn to_people(sweep: &Sweep, kind: Kind, message: String) -> Self {
        let topic = sweep.plan.as_ref().and_then(|plan| plan.topic.clone());
        Self { message, topic, ..Self::internal(sweep, kind) }
    }

    /// Which trial came out best, what it cost, and where everything is. From `summary.json`.
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

    /// The first problems, and where all of them are.
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

    /// What was reached, and what follows.
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

    /// For how long the training of a trial has shown no sign of life, in seconds, and what follows by the trial's rule.
    pub fn stalled(sweep: &Sweep, of: StalledAttempt, seconds: u64, rule: StallRule) -> Self {
        let StalledAttempt { index, attempt, .. } = of;
        let lines = [
            format!("{}: trial {index} is stalled: {NO_SIGN} for {}", sweep.upload.key, duration(seconds as f64)),
            what_follows(attempt, rule),
            format!("spotsweep logs {} {index}", sweep.id),
        ];
        Self::to_people(sweep, Kind::Stalled(of), lines.join("\n"))
    }

    /// For how long the runner of a trial has not reported, in seconds, and what follows by what is known of its instance.
    pub fn silent(sweep: &Sweep, of: SilentAttempt, host: &Host, seconds: i64) -> Self {
        let SilentAttempt { index, attempt, agent, status, .. } = of;
        // The record notes reports by the minute.
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

    /// The event's detail; that of a trial's event has the trial's index too, and that of a page its number.
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

    /// One line for a mail: SNS takes up to 99 ASCII characters
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
