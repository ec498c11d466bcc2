//! Instances on which a sweep's trials train, and instances on which they fail at once.
//!
//! An instance can fail every training although neither ECS nor the runner's own checks show a fault (fact 60). Then
//! the only evidence is that trials of the same sweep train on other instances.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spotsweep_protocol::words::counted;

/// A training that ends sooner than this, without a figure, has failed at once. It is this long because libraries take
/// up to a minute to load.
const AT_ONCE_SECONDS: f64 = 120.0;

/// Returns how a training has ended if it failed within that time. The caller checks that it had no figure.
pub fn failure_at_once(exit_code: i32, seconds: f64, error: Option<&str>) -> Option<String> {
    let error = error.map(|error| format!(", {error}")).unwrap_or_default();
    (exit_code != 0 && seconds < AT_ONCE_SECONDS).then(|| format!("exit code {exit_code}{error}"))
}

/// An instance with so many failures at once is drained, if trials train on other instances.
const MANY: usize = 3;

/// How long the cause of a failure stays open while there are other instances on which trials have neither trained nor
/// failed.
const OPEN: Duration = Duration::from_secs(600);

/// How many instances of each kind are noted. Each costs one write of the sweep's record.
const CLAIMED: usize = 2;
const TRAINED: usize = 8;
const FAILED: usize = 16;
/// How many attempts are noted for one instance.
const ATTEMPTS: usize = 8;

/// The evidence about a sweep's instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instances {
    /// The first instances on which an attempt has claimed its trial.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    claimed: BTreeSet<String>,
    /// The first instances on which a trial has trained, and each instance in `failed` on which one has trained since.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    trained: BTreeSet<String>,
    /// The instances on which attempts have failed at once.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, Failed>,
}

/// The attempts that have failed at once on one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Failed {
    /// When the first of them failed.
    since: Timestamp,
    /// Trial index and attempt.
    attempts: BTreeSet<(u32, u32)>,
}

/// What an attempt shows about its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The attempt has claimed its trial.
    Claimed,
    /// The attempt has trained: its metrics have figures.
    Trained,
    /// The attempt has failed at once.
    FailedAtOnce {
        /// The trial's index.
        index: u32,
        /// The attempt's number.
        attempt: u32,
    },
}

/// The cause of a failure at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The script or the parameters are the cause.
    Trial,
    /// The cause is not known until another instance trains or fails.
    Open,
    /// The instance is the cause, as far as the evidence goes, and the trial continues on another one.
    Instance {
        /// Whether so many attempts have failed on the instance that it is drained.
        drain: bool,
        /// The evidence against the instance, as a sentence.
        evidence: String,
    },
}

impl Instances {
    /// Whether there is no evidence yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether any trial has trained.
    pub fn has_trained(&self) -> bool {
        !self.trained.is_empty()
    }

    /// Returns the evidence with what an attempt shows about its instance; `None` if that adds nothing.
    pub fn with(&self, instance: &str, shown: Shown, now: Timestamp) -> Option<Self> {
        let is_new = match shown {
            Shown::Claimed => self.claimed.len() < CLAIMED && !self.claimed.contains(instance),
            Shown::Trained => {
                let counts = self.trained.len() < TRAINED || self.failed.contains_key(instance);
                counts && !self.trained.contains(instance)
            }
            Shown::FailedAtOnce { index, attempt } => match self.failed.get(instance) {
                Some(failed) => failed.attempts.len() < ATTEMPTS && !failed.attempts.contains(&(index, attempt)),
                None => self.failed.len() < FAILED,
            },
        };
        let mut with = is_new.then(|| self.clone())?;
        let instance = instance.to_owned();
        match shown {
            Shown::Claimed => drop(with.claimed.insert(instance)),
            Shown::Trained => drop(with.trained.insert(instance)),
            Shown::FailedAtOnce { index, attempt } => {
                let new = || Failed { since: now, attempts: BTreeSet::new() };
                with.failed.entry(instance).or_insert_with(new).attempts.insert((index, attempt));
            }
        }
        Some(with)
    }

    /// Returns the cause of a trial's failure at once on an instance. The trial is the cause if it has also failed on
    /// another instance, or if trials have trained on this one. If as many trials fail at once on instances where
    /// others train, the script is the cause. It is also the cause if as many fail on other instances and no trial
    /// trains at all.
    pub fn cause(&self, instance: &str, index: u32, now: Timestamp) -> Cause {
        let is_other = |other: &&String| other.as_str() != instance;
        let (Some(here), false) = (self.failed.get(instance), self.trained.contains(instance)) else {
            return Cause::Trial;
        };
        let trains = self.trained.iter().find(is_other);
        let elsewhere = |only_trained: bool| -> BTreeSet<u32> {
            let others = self.failed.iter().filter(|(other, _)| is_other(other));
            let counted = others.filter(|(other, _)| !only_trained || self.trained.contains(*other));
            counted.flat_map(|(_, failed)| failed.attempts.iter().map(|(index, _)| *index)).collect()
        };
        if elsewhere(false).contains(&index) || elsewhere(trains.is_some()).len() >= here.attempts.len() {
            return Cause::Trial;
        }
        if let Some(trains) = trains {
            let many = counted(here.attempts.len(), "attempt");
            let evidence = format!("{many} failed at once there and none has trained, while trials train on {trains}");
            return Cause::Instance { drain: here.attempts.len() >= MANY, evidence };
        }
        let is_undecided = |other: &String| !self.failed.contains_key(other);
        let may_show = self.claimed.iter().filter(is_other).any(is_undecided) && here.since + OPEN > now;
        if may_show { Cause::Open } else { Cause::Trial }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn with(shown: &[(&str, Shown)]) -> Instances {
        let add =
            |known: Instances, (instance, shown): &(&str, Shown)| known.with(instance, *shown, NOW).unwrap_or(known);
        shown.iter().fold(Instances::default(), add)
    }

    fn failed(index: u32) -> Shown {
        Shown::FailedAtOnce { index, attempt: 1 }
    }

    fn is_drained(known: &Instances) -> Option<bool> {
        match known.cause("i-a", 0, NOW) {
            Cause::Instance { drain, .. } => Some(drain),
            Cause::Trial | Cause::Open => None,
        }
    }

    #[test]
    fn an_instance_is_to_blame_where_others_train() {
        let known = with(&[("i-b", Shown::Trained), ("i-a", failed(0))]);
        assert_eq!(is_drained(&known), Some(false));
        let known = with(&[("i-b", Shown::Trained), ("i-a", failed(0)), ("i-a", failed(1)), ("i-a", failed(2))]);
        assert_eq!(is_drained(&known), Some(true));
        let trained_since = known.with("i-a", Shown::Trained, NOW).unwrap_or_default();
        assert_eq!(trained_since.cause("i-a", 0, NOW), Cause::Trial);
    }

    #[test]
    fn two_instances_may_be_to_blame() {
        let known = with(&[("i-a", failed(0)), ("i-b", failed(1)), ("i-b", failed(2)), ("i-c", Shown::Trained)]);
        assert_eq!(is_drained(&known), Some(false));
        let both = known.with("i-b", failed(0), NOW).unwrap_or_default();
        assert_eq!(both.cause("i-a", 0, NOW), Cause::Trial, "the same trial fails on both");
    }

    #[test]
    fn a_script_that_fails_on_all_instances_is_to_blame() {
        let alike = with(&[("i-a", failed(0)), ("i-b", failed(1))]);
        assert_eq!(alike.cause("i-a", 0, NOW), Cause::Trial);
        let both = with(&[("i-a", failed(0)), ("i-b", failed(1)), ("i-b", Shown::Trained)]);
        assert_eq!(both.cause("i-a", 0, NOW), Cause::Trial, "as many fail where others train");
        assert_eq!(
            with(&[("i-a", Shown::Claimed), ("i-a", failed(0))]).cause("i-a", 0, NOW),
            Cause::Trial,
            "no other one"
        );
    }

    #[test]
    fn a_failure_stays_open_until_another_instance_shows_something() {
        let known = with(&[("i-a", Shown::Claimed), ("i-b", Shown::Claimed), ("i-a", failed(0))]);
        assert_eq!(known.cause("i-a", 0, NOW), Cause::Open);
        assert_eq!(known.cause("i-a", 0, NOW + OPEN), Cause::Trial, "in the end");
        assert_eq!(is_drained(&known.with("i-b", Shown::Trained, NOW).unwrap_or_default()), Some(false));
        assert_eq!(known.with("i-b", failed(1), NOW).unwrap_or_default().cause("i-a", 0, NOW), Cause::Trial);
    }

    #[test]
    fn what_is_noted_is_bounded() {
        let many = |shown: fn(u32) -> Shown| {
            let add =
                |known: Instances, number| known.with(&format!("i-{number}"), shown(number), NOW).unwrap_or(known);
            (0..100).fold(Instances::default(), add)
        };
        let sizes = |known: Instances| (known.claimed.len(), known.trained.len(), known.failed.len());
        assert_eq!(sizes(many(|_| Shown::Claimed)), (CLAIMED, 0, 0));
        assert_eq!(sizes(many(|_| Shown::Trained)), (0, TRAINED, 0));
        assert_eq!(sizes(many(failed)), (0, 0, FAILED));
    }
}
