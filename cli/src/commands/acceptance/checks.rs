//! Judges each assumption about AWS by recorded events. The functions are pure: events in, verdicts out.

mod gpus;
pub(super) mod run;
mod seen;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use spotsweep_control_plane::event;
use spotsweep_records::trial::HOST_GONE;

use self::seen::Seen;
use super::recording::Recorded;

/// Seconds from the warning to the instance's end (EC2 user guide, "Spot Instance interruption notices").
const NOTICE_SECONDS: f64 = 120.0;

/// An event's time is cut to the second. Batch's times are not.
const CUT: SignedDuration = SignedDuration::from_secs(1);

/// Whether an assumption is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// Every recorded case agrees with the assumption.
    Held,
    /// A recorded case contradicts it.
    DidNotHold,
    /// The recording has no case of it.
    NotSeen,
}

impl Verdict {
    /// The verdict as the page shows it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::DidNotHold => "did not hold",
            Self::NotSeen => "not seen",
        }
    }
}

/// One assumption, with what was recorded about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) assumption: &'static str,
    pub(super) verdict: Verdict,
    /// The cases that contradict the assumption. If there are none, those that agree with it.
    pub(super) recorded: Vec<String>,
}

/// Makes every check of recorded events, in the page's order.
pub(super) fn judge(recording: &[Recorded]) -> Vec<Check> {
    let seen = Seen::of(recording);
    vec![
        shapes(recording),
        rebalance(&seen),
        warning_delay(&seen),
        draining(&seen),
        placement(&seen),
        status_reason(&seen),
        detach(recording),
    ]
}

/// The verdict on cases, each of which agrees or says what contradicts.
fn verdict(name: &'static str, assumption: &'static str, cases: Vec<Result<String, String>>) -> Check {
    let wrong: Vec<String> = cases.iter().filter_map(|case| case.as_ref().err().cloned()).collect();
    let verdict = match (cases.is_empty(), wrong.is_empty()) {
        (true, _) => Verdict::NotSeen,
        (false, true) => Verdict::Held,
        (false, false) => Verdict::DidNotHold,
    };
    let recorded = if wrong.is_empty() { cases.into_iter().flatten().collect() } else { wrong };
    Check { name, assumption, verdict, recorded }
}

/// Parses the events as the functions do. Events of other kinds and of other jobs are ignored.
fn shapes(recording: &[Recorded]) -> Check {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut cases = Vec::new();
    for recorded in recording {
        match event::parse(recorded.event.clone()) {
            Ok(event::Event::Unknown { .. }) => {}
            Ok(_) => *known.entry(recorded.kind()).or_default() += 1,
            Err(error) => cases.push(Err(format!("{} at {}: {error}", recorded.kind(), recorded.at))),
        }
    }
    cases.extend(known.into_iter().map(|(kind, count)| Ok(format!("{kind}: {count} understood"))));
    verdict("event-shapes", "The functions understand every event that they are sent.", cases)
}

fn rebalance(seen: &Seen<'_>) -> Check {
    let case = |(instance, warning): (&&str, &&Recorded)| match seen.rebalances.get(instance) {
        Some(rebalance) if rebalance.at <= warning.at => {
            Ok(format!("{instance}: recommended at {}, warned at {}", rebalance.at, warning.at))
        }
        Some(late) => Err(format!("{instance}: warned at {}, recommended only at {}", warning.at, late.at)),
        None => Err(format!("{instance}: warned at {}, never recommended", warning.at)),
    };
    let cases = seen.warnings.iter().map(case).collect();
    verdict("rebalance", "FIS sends a rebalance recommendation before, or together with, each warning.", cases)
}

fn warning_delay(seen: &Seen<'_>) -> Check {
    let case = |(instance, warning): (&&str, &&Recorded)| {
        let delay = warning.delay_seconds();
        let text = format!("{instance}: the warning arrived after {delay:.1} s");
        if delay < NOTICE_SECONDS { Ok(text) } else { Err(text) }
    };
    let cases = seen.warnings.iter().map(case).collect();
    verdict("warning-delay", "A warning reaches EventBridge's targets before the instance ends.", cases)
}

/// If there is no event of a container instance, the rule has not recorded ECS, and nothing can be judged.
fn draining(seen: &Seen<'_>) -> Check {
    let case = |(instance, warning): (&&str, &&Recorded)| match seen.draining.get(instance) {
        Some(at) => Ok(format!("{instance}: warned at {}, DRAINING at {at}", warning.at)),
        None => Err(format!("{instance}: warned at {}, never DRAINING", warning.at)),
    };
    let cases = match seen.container_instances.is_empty() {
        true => Vec::new(),
        false => seen.warnings.iter().map(case).collect(),
    };
    verdict("draining", "The ECS agent drains an instance that is under notice.", cases)
}

fn placement(seen: &Seen<'_>) -> Check {
    let mut cases = Vec::new();
    for (instance, warning) in &seen.warnings {
        let on_it = seen.attempts.values().filter(|attempt| attempt.instance == Some(*instance));
        let late: Vec<String> = on_it
            .clone()
            .filter(|attempt| attempt.started.is_some_and(|started| started > warning.at + CUT))
            .map(|attempt| format!("{instance}: {} started after its warning at {}", attempt.name(), warning.at))
            .collect();
        match late.is_empty() {
            true if on_it.count() > 0 => cases.push(Ok(format!("{instance}: no attempt started after {}", warning.at))),
            true => {}
            false => cases.extend(late.into_iter().map(Err)),
        }
    }
    verdict("placement", "Batch starts no attempt on an instance that is under notice.", cases)
}

/// Judges attempts that stopped while their instance was under notice or shut down. An attempt that ended by itself has
/// an exit code, and does not count.
fn status_reason(seen: &Seen<'_>) -> Check {
    let mut cases = Vec::new();
    for attempt in seen.attempts.values().filter(|attempt| attempt.exit_code.is_none()) {
        let ending = attempt.instance.and_then(|instance| seen.ending.get(instance));
        if attempt.stopped.zip(ending).is_some_and(|(stopped, ending)| stopped >= *ending) {
            let text = format!("{}: {:?}", attempt.name(), attempt.reason);
            cases.push(if attempt.reason.starts_with(HOST_GONE) { Ok(text) } else { Err(text) });
        }
    }
    let assumption = "An attempt that loses its instance, and has no exit code, has a status reason that begins with \
                      \"Host EC2\".";
    verdict("status-reason", assumption, cases)
}

fn detach(recording: &[Recorded]) -> Check {
    let volumes = recording.iter().filter(|recorded| recorded.kind() == "EBS Volume Notification");
    let case = |recorded: &Recorded| {
        let (what, at) = (recorded.text("/detail/event"), recorded.at);
        if what == "detachVolume" { Err(format!("{what} at {at}")) } else { Ok(format!("{what} at {at}")) }
    };
    let cases = volumes.map(case).collect();
    verdict("no-detach-event", "EBS sends no event when a volume is detached: the control plane has to look.", cases)
}

/// How late the events of one kind arrived.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Delay {
    pub(super) kind: String,
    pub(super) events: usize,
    /// Seconds.
    pub(super) median: f64,
    /// Seconds.
    pub(super) longest: f64,
}

/// The delays of every recorded kind.
pub(super) fn delays(recording: &[Recorded]) -> Vec<Delay> {
    let mut by_kind: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for recorded in recording {
        by_kind.entry(recorded.kind()).or_default().push(recorded.delay_seconds());
    }
    let delay = |(kind, mut seconds): (&str, Vec<f64>)| {
        seconds.sort_by(f64::total_cmp);
        let at = |place: usize| seconds.get(place).copied().unwrap_or_default();
        let (median, longest) = (at(seconds.len() / 2), at(seconds.len().saturating_sub(1)));
        Delay { kind: kind.to_owned(), events: seconds.len(), median, longest }
    };
    by_kind.into_iter().map(delay).collect()
}

/// Converts Batch's milliseconds since 1970. They are 0 if there is no time yet.
fn timestamp(millis: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis).ok().filter(|at| *at != Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
