//! Decides when an interruption is injected and into which instance, and follows its result. The functions are pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_records::trial::{JobStatus, Trial};

use super::sweep::{ATTEMPTS, METRIC};

/// The injections of a run. None of them waits for another.
pub(super) const ALL: [Kind; 2] = [Kind::Interruption, Kind::Termination];
/// Share of a trial's steps before which an interruption would lose little.
const EARLIEST: f64 = 0.1;
/// How often an injection is tried: an instance may end by itself just before.
const TRIES: u32 = 3;

/// How an instance is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// By FIS, with a recommendation and a warning.
    Interruption,
    /// By TerminateInstances, without a notice, which FIS cannot do.
    Termination,
}

impl Kind {
    /// Share of a trial's steps after which the trial may end before its instance does. FIS may end the instance four
    /// minutes after the injection (fact 33), which is less than a third of a training.
    fn latest(self) -> f64 {
        match self {
            Self::Interruption => 0.6,
            Self::Termination => 0.85,
        }
    }

    /// What happened to an instance, in the page's words.
    pub(super) fn done(self) -> &'static str {
        match self {
            Self::Interruption => "was interrupted by FIS",
            Self::Termination => "was terminated without a notice",
        }
    }
}

/// One injection, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Injection {
    pub(super) kind: Kind,
    pub(super) state: State,
    tries: u32,
    /// Not before this time is it tried again.
    rest_until: Timestamp,
}

/// State of an injection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// No instance was suitable so far, or this error was in the way.
    Waiting { obstacle: Option<String> },
    /// FIS is interrupting an instance.
    Underway { experiment: String, instance: String, since: Timestamp },
    /// The instance was taken.
    Happened { instance: String, at: Timestamp },
    /// Every try has failed.
    Failed { reason: String },
}

impl Injection {
    pub(super) fn new(kind: Kind) -> Self {
        let state = State::Waiting { obstacle: None };
        Self { kind, state, tries: 0, rest_until: Timestamp::UNIX_EPOCH }
    }

    /// Whether an instance may be taken now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.state, State::Waiting { .. }) && now >= self.rest_until
    }

    /// Notes a failed try. Another one follows after a rest, unless it was the last.
    pub(super) fn fail(&mut self, reason: String, now: Timestamp, rest: Duration) {
        self.tries += 1;
        self.rest_until = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        self.state = match self.tries < TRIES {
            true => State::Waiting { obstacle: Some(reason) },
            false => State::Failed { reason },
        };
    }

    /// The instance that was taken, or is being taken.
    pub(super) fn instance(&self) -> Option<&str> {
        match &self.state {
            State::Underway { instance, .. } | State::Happened { instance, .. } => Some(instance),
            State::Waiting { .. } | State::Failed { .. } => None,
        }
    }

    /// What the run's page says about it.
    pub(super) fn line(&self) -> String {
        match (&self.state, self.kind) {
            (State::Happened { instance, at }, kind) => format!("{at:.0}: {instance} {}", kind.done()),
            (State::Failed { reason }, kind) => format!("no instance {}, after {TRIES} tries: {reason}", kind.done()),
            (State::Waiting { obstacle: Some(reason) }, kind) => format!("no instance {}: {reason}", kind.done()),
            (State::Waiting { obstacle: None }, kind) => format!(
                "no instance {}: none had trials between {:.0} and {:.0} % of their training",
                kind.done(),
                EARLIEST * 100.0,
                kind.latest() * 100.0
            ),
            (State::Underway { experiment, instance, .. }, _) => {
                format!("{experiment} of FIS had not ended for {instance} when the sweep had")
            }
        }
    }
}

/// The instance to take, or none if it is too early. `running` are the deployment's running instances. An instance that
/// another injection has `taken` is left alone, and so is a trial's last attempt. Trials that were not interrupted
/// before come first. Among these, the interruption takes the one with the most steps left, and the termination the one
/// with the fewest.
pub(super) fn target(
    kind: Kind,
    running: &BTreeSet<&str>,
    taken: &BTreeSet<&str>,
    trials: &[Trial],
    steps: u32,
) -> Option<String> {
    let training = training(trials, steps);
    let candidates =
        training.iter().filter(|(instance, _)| running.contains(**instance) && !taken.contains(**instance));
    let suitable = candidates.filter(|(_, held)| held.is_suitable(kind));
    let order = |held: &Held| match kind {
        Kind::Interruption => held.furthest,
        Kind::Termination => -held.furthest,
    };
    let chosen = suitable.min_by(|(_, one), (_, other)| {
        one.attempts.cmp(&other.attempts).then_with(|| order(one).total_cmp(&order(other)))
    });
    chosen.map(|(instance, _)| (*instance).to_owned())
}

/// The trials of an instance.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Progress of its trials, from 0 to 1.
    least: f64,
    furthest: f64,
    /// Most attempts of one of its trials.
    attempts: usize,
}

impl Held {
    /// Whether each trial on it has something to lose, and one of them goes on until the end of the instance.
    fn is_suitable(&self, kind: Kind) -> bool {
        self.least >= EARLIEST && self.least <= kind.latest() && self.attempts < ATTEMPTS as usize
    }
}

/// The running trials, by instance.
fn training(trials: &[Trial], steps: u32) -> BTreeMap<&str, Held> {
    let mut found: BTreeMap<&str, Held> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.status == JobStatus::Running) {
        let instance = trial.attempts.last_key_value().and_then(|(_, attempt)| attempt.instance.as_deref());
        let step = trial.metrics.get(METRIC).and_then(|metric| metric.step).unwrap_or(0.0);
        let (share, attempts) = (step / f64::from(steps), trial.attempts.len());
        if let Some(instance) = instance {
            let held = found.entry(instance).or_insert(Held { least: share, furthest: share, attempts });
            held.least = held.least.min(share);
            held.furthest = held.furthest.max(share);
            held.attempts = held.attempts.max(attempts);
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};
    use spotsweep_records::trial::Attempt;

    use super::*;

    fn trial(index: u32, instance: &str, step: f64) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        trial.status = JobStatus::Running;
        attempt(&mut trial, 1, instance);
        trial.metrics.insert(METRIC.to_owned(), Metric::of(1.0, Some(step), Source::Stated));
        trial
    }

    fn attempt(trial: &mut Trial, number: u32, instance: &str) {
        trial.attempts.insert(number, Attempt { instance: Some(instance.to_owned()), ..Attempt::default() });
    }

    fn taken_of(kind: Kind, running: &[&str], taken: &[&str], trials: &[Trial]) -> Option<String> {
        target(kind, &running.iter().copied().collect(), &taken.iter().copied().collect(), trials, 100)
    }

    #[test]
    fn one_ripe_instance_is_taken_whatever_the_others_do() {
        let trials = [trial(0, "i-1", 30.0), trial(1, "i-2", 5.0), trial(2, "i-3", 90.0)];
        for kind in ALL {
            // No instance is suitable: one belongs to another sweep, one trial has just begun, and one is about to end.
            assert_eq!(taken_of(kind, &["i-1", "i-2", "i-3", "i-9"], &[], &trials), Some("i-1".to_owned()));
            for other in ["i-9", "i-2", "i-3"] {
                assert_eq!(taken_of(kind, &[other], &[], &trials), None, "{other}");
            }
            assert_eq!(taken_of(kind, &["i-1"], &["i-1"], &trials), None, "the other injection has it");
            assert_eq!(taken_of(kind, &[], &[], &trials), None);
        }
        // It is too late for a notice, but not for an end without one.
        assert_eq!(taken_of(Kind::Interruption, &["i-1"], &[], &[trial(0, "i-1", 70.0)]), None);
        assert_eq!(taken_of(Kind::Termination, &["i-1"], &[], &[trial(0, "i-1", 70.0)]), Some("i-1".to_owned()));
    }

    #[test]
    fn an_instance_of_several_trials_is_suitable_when_none_of_them_has_just_begun() {
        let together =
            |least, most| taken_of(Kind::Interruption, &["i"], &[], &[trial(0, "i", least), trial(1, "i", most)]);
        assert_eq!((together(5.0, 30.0), together(70.0, 80.0)), (None, None));
        assert_eq!(together(20.0, 80.0), Some("i".to_owned()), "one of them goes on until the end");
    }

    #[test]
    fn each_interruption_leaves_a_trial_to_the_other_one() {
        let mut trials = [trial(0, "i-1", 20.0), trial(1, "i-2", 40.0), trial(2, "i-3", 15.0)];
        attempt(&mut trials[2], 2, "i-3");
        let running = ["i-1", "i-2", "i-3"];
        assert_eq!(taken_of(Kind::Interruption, &running, &[], &trials), Some("i-1".to_owned()));
        assert_eq!(taken_of(Kind::Termination, &running, &[], &trials), Some("i-2".to_owned()));
        assert_eq!(taken_of(Kind::Termination, &["i-3"], &[], &trials), Some("i-3".to_owned()));
        for number in 3..=ATTEMPTS {
            attempt(&mut trials[2], number, "i-3");
        }
        assert_eq!(taken_of(Kind::Termination, &["i-3"], &[], &trials), None, "it has no attempt left");
    }

    #[test]
    fn an_interruption_is_tried_three_times_and_then_has_a_reason() {
        let mut injection = Injection::new(Kind::Interruption);
        let (now, rest) = (Timestamp::UNIX_EPOCH, Duration::from_secs(30));
        assert!(injection.line().contains("between 10 and 60 %"), "{}", injection.line());
        for number in 1..=TRIES {
            assert!(injection.is_due(now.saturating_add(rest).unwrap()));
            injection.fail(format!("reason {number}"), now, rest);
            assert!(!injection.is_due(now), "it rests");
            assert!(injection.line().contains(&format!("reason {number}")), "{}", injection.line());
        }
        assert_eq!(injection.state, State::Failed { reason: "reason 3".to_owned() });
        assert!(!injection.is_due(now.saturating_add(rest).unwrap()));
    }
}
