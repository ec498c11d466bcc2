//! Makes the checks of a run of one's own that need more than its events. The functions are pure: facts in, verdicts
//! out.

use std::collections::BTreeMap;

use spotsweep_protocol::words::dollars;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::trial::{Standing, Trial};

use super::super::access::Tried;
use super::super::estimate::Estimate;
use super::super::injection::{self, Injection, Kind, State};
use super::super::recording::Recorded;
use super::super::sweep::{self, Pace};
use super::{CUT, Check, gpus, verdict};

/// Later than this, `reconcile` has asked Batch and EC2 itself.
const LATEST_EVENT_SECONDS: f64 = 300.0;

/// The facts that a run has gathered.
#[derive(Debug, Clone)]
pub(in super::super) struct Facts {
    pub(in super::super) pace: Pace,
    pub(in super::super) estimate: Estimate,
    pub(in super::super) trials: Vec<Trial>,
    pub(in super::super) injections: Vec<Injection>,
    /// By trial index: what its script has written about its beginnings and ends, and its model.
    pub(in super::super) stories: BTreeMap<u32, String>,
    pub(in super::super) models: BTreeMap<u32, String>,
    /// None if there was no attempt that could ask for credentials.
    pub(in super::super) access: Option<Tried>,
    /// The cost that the control plane has computed.
    pub(in super::super) spent: Option<Spent>,
    /// Volumes and snapshots that still existed after the sweep had settled.
    pub(in super::super) leftovers: Vec<String>,
    /// Whether each trial asks for a GPU.
    pub(in super::super) gpus: bool,
}

/// Makes every check that needs more than a recording.
pub(in super::super) fn judge(facts: &Facts, recording: &[Recorded]) -> Vec<Check> {
    let mut checks: Vec<Check> = injection::ALL.map(|kind| injection_check(facts, kind)).into();
    checks.extend([
        success(facts),
        resume(facts),
        session_tags(facts),
        costs(facts, recording),
        event_delay(recording),
        nothing_left(facts),
    ]);
    checks.extend(facts.gpus.then(|| gpus::judge(&facts.trials, &facts.stories)));
    checks
}

/// Checks the injections of one kind. If no instance was suitable, nothing is proven.
fn injection_check(facts: &Facts, kind: Kind) -> Check {
    let (name, assumption) = match kind {
        Kind::Interruption => {
            ("interruption", "FIS interrupts one instance of Batch, named by its ARN, while it trains.")
        }
        Kind::Termination => {
            ("termination", "An instance of Batch can be terminated without a notice while it trains.")
        }
    };
    let cases = facts.injections.iter().filter(|injection| injection.kind == kind).filter_map(|injection| {
        match &injection.state {
            State::Happened { .. } => Some(Ok(injection.line())),
            State::Failed { .. } => Some(Err(injection.line())),
            State::Waiting { .. } | State::Underway { .. } => None,
        }
    });
    verdict(name, assumption, cases.collect())
}

fn success(facts: &Facts) -> Check {
    let case = |index: u32| {
        let trial = facts.trials.iter().find(|trial| trial.index == index);
        let (standing, model) =
            (trial.map(|trial| trial.standing()), facts.models.get(&index).map(|model| model.trim()));
        let expected = sweep::model(index, facts.pace);
        let is_right = standing == Some(Standing::Succeeded) && model.map(str::to_owned) == expected;
        let (name, expected) = (standing.map_or("never started", Standing::name), expected.unwrap_or_default());
        let text = format!("trial {index} {name}, with model {}, undisturbed {expected}", model.unwrap_or("none"));
        if is_right { Ok(text) } else { Err(text) }
    };
    let assumption = "Every trial succeeds, with the model that undisturbed training gives.";
    verdict("success", assumption, (0..sweep::trials()).map(case).collect())
}

/// Checks what the script itself has written.
fn resume(facts: &Facts) -> Check {
    let mut cases = Vec::new();
    for (index, story) in &facts.stories {
        let mut stopped: Option<&str> = None;
        for (number, line) in story.lines().enumerate() {
            match line.split_once(' ') {
                Some(("began", step)) if number > 0 => {
                    let before =
                        stopped.take().map_or("was killed".to_owned(), |step| format!("stopped after step {step}"));
                    let text = format!("trial {index} {before}, and went on after step {step}");
                    let is_right = step != "0" && (before == "was killed" || before.ends_with(&format!(" {step}")));
                    cases.push(if is_right { Ok(text) } else { Err(text) });
                }
                Some(("stopped", step)) => stopped = Some(step),
                Some(_) | None => {}
            }
        }
    }
    verdict("resume", "An interrupted trial goes on from its newest checkpoint.", cases)
}

fn session_tags(facts: &Facts) -> Check {
    let assumption = "The credentials of a trial reach its own outputs and its sweep's parameters, and nothing else.";
    verdict("session-tags", assumption, facts.access.clone().unwrap_or_default())
}

/// Compares the cost with the time of all the run's instances at the highest price. The bill also has boot and idle
/// time, which `spotsweep cost` leaves out. An attempt that ended before its claim has not reported its instance type.
fn costs(facts: &Facts, recording: &[Recorded]) -> Check {
    let assumption = "`spotsweep cost` has a price for all attempts that have claimed their trial, is not above the \
                      instances' whole time, and is within the estimate.";
    let Some(spent) = facts.spent else { return verdict("costs", assumption, Vec::new()) };
    let instances = spent.usd - spent.storage_usd - spent.control_plane_usd;
    let hours = instance_hours(recording);
    let most = hours * facts.estimate.hourly_usd;
    let (unpriced, unclaimed) = (spent.unpriced_seconds, unclaimed_seconds(&facts.trials));
    let case = |is_right: bool, text: String| if is_right { Ok(text) } else { Err(text) };
    let cases = vec![
        case(
            // The tolerance is there because times are in milliseconds.
            unpriced <= unclaimed + 0.01,
            format!("{unpriced:.1} s of attempts without a price, {unclaimed:.1} s of attempts without a claim"),
        ),
        case(
            instances > 0.0 && instances <= most,
            format!("instances {}; {hours:.4} instance-hours at most {}", dollars(instances), dollars(most)),
        ),
        case(
            spent.usd <= facts.estimate.usd,
            format!("in all {} of {} expected", dollars(spent.usd), dollars(facts.estimate.usd)),
        ),
    ];
    verdict("costs", assumption, cases)
}

fn unclaimed_seconds(trials: &[Trial]) -> f64 {
    let attempts = trials.iter().flat_map(|trial| trial.attempts.values());
    let unclaimed = attempts.filter(|attempt| attempt.instance_type.is_none());
    let spans = unclaimed.filter_map(|attempt| Some(attempt.stopped_at?.duration_since(attempt.started_at?)));
    spans.map(|span| span.as_secs_f64()).sum()
}

/// Hours from an instance's first event to its end, or to the end of the recording.
fn instance_hours(recording: &[Recorded]) -> f64 {
    let Some(end) = recording.iter().map(|recorded| recorded.received).max() else { return 0.0 };
    let mut spans = BTreeMap::new();
    for recorded in recording.iter().filter(|recorded| recorded.kind() == "EC2 Instance State-change Notification") {
        let (from, until) = spans.entry(recorded.text("/detail/instance-id")).or_insert((recorded.at, end));
        *from = recorded.at.min(*from);
        if recorded.text("/detail/state") == "terminated" {
            *until = recorded.at + CUT;
        }
    }
    spans.values().map(|(from, until)| until.duration_since(*from).as_secs_f64() / 3600.0).sum()
}

fn event_delay(recording: &[Recorded]) -> Check {
    let mut slowest: BTreeMap<&str, f64> = BTreeMap::new();
    for recorded in recording {
        let longest = slowest.entry(recorded.kind()).or_default();
        *longest = longest.max(recorded.delay_seconds());
    }
    let case = |(kind, seconds): (&str, f64)| {
        let text = format!("{kind}: {seconds:.1} s at most");
        if seconds < LATEST_EVENT_SECONDS { Ok(text) } else { Err(text) }
    };
    let cases = slowest.into_iter().map(case).collect();
    verdict("event-delay", "Events arrive within five minutes: before reconcile asks.", cases)
}

fn nothing_left(facts: &Facts) -> Check {
    let cases = match facts.leftovers.is_empty() {
        true => vec![Ok("no volume and no snapshot with the sweep's tag".to_owned())],
        false => facts.leftovers.iter().cloned().map(Err).collect(),
    };
    verdict("nothing-left", "When a sweep has finished, none of its volumes and snapshots is left.", cases)
}

#[cfg(test)]
mod tests;
