//! Follows each trial that has lost its instance, and measures what that costs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::plan::Kind;
use super::run_state::{Run, RunState};
use spotsweep_protocol::words::{counted, duration};

/// One reclaim of one trial. The reclaim of an instance with two trials makes two of these.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reclaim {
    /// Seconds since the sweep was planned until the notice, or until the end of the instance if there was no notice.
    pub at: f64,
    /// How.
    pub kind: Kind,
    /// Whether there was a notice.
    pub notice: bool,
    /// Index of the interrupted trial.
    pub trial: u32,
    /// Index of the interrupted run among the trial's runs.
    run: usize,
    /// Which instance.
    pub instance: String,
    /// Zone of the reclaimed instance.
    pub zone: String,
    /// What followed, once that is known.
    outcome: Option<Outcome>,
}

/// What followed a reclaim.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    /// The zone in which the trial was placed next. None if it had nothing left to do.
    to_zone: Option<String>,
    /// Whether the next instance was reclaimed too before the training ran there.
    again: bool,
    /// Seconds from the training's last sign of life to its next one, or to the next reclaim.
    seconds_lost: f64,
    /// Epochs that were begun before the reclaim and again after it.
    epochs_repeated: u32,
}

/// All reclaims, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    reclaims: Vec<Reclaim>,
}

impl Ledger {
    /// Records the reclaim of an instance for every trial on it.
    pub(crate) fn record(&mut self, run_state: &RunState, instance: &str, (kind, notice): (Kind, bool), at: f64) {
        let hosts = run_state.instances.iter().filter(|live| live.id == instance);
        for trial in hosts.flat_map(|host| host.trials.iter().copied()) {
            let Some(runs) = run_state.runs.get(&trial) else { continue };
            let (run, zone) = (runs.len() - 1, runs.last().map(|run| run.zone.clone()).unwrap_or_default());
            let known = self.reclaims.iter_mut().find(|known| known.trial == trial && known.run == run);
            match known {
                // The instance was reclaimed before its notice was over.
                Some(known) => known.notice &= notice,
                None => {
                    let instance = instance.to_owned();
                    self.reclaims.push(Reclaim { at, kind, notice, trial, run, instance, zone, outcome: None });
                }
            }
        }
    }

    /// Finds the outcome of each reclaim for which it is not known yet. Returns a line for each one that is found.
    pub(crate) fn settle(&mut self, run_state: &RunState, over: &BTreeSet<u32>) -> Vec<String> {
        let mut lines = Vec::new();
        for at in 0..self.reclaims.len() {
            let reclaim = &self.reclaims[at];
            if reclaim.outcome.is_some() {
                continue;
            }
            let outcome = self.outcome(reclaim, run_state, over.contains(&reclaim.trial));
            if let Some(outcome) = outcome {
                lines.push(line(reclaim, &outcome));
                self.reclaims[at].outcome = Some(outcome);
            }
        }
        lines
    }

    /// The outcome, or `None` if it cannot be known yet.
    fn outcome(&self, reclaim: &Reclaim, run_state: &RunState, is_over: bool) -> Option<Outcome> {
        let runs = run_state.runs.get(&reclaim.trial)?;
        let (interrupted, later) = (runs.get(reclaim.run)?, runs.get(reclaim.run + 1..).unwrap_or_default());
        let prints = runs.iter().any(|run| run.log.trained.is_some());
        let says_epochs = runs.iter().any(|run| run.log.epochs.is_some());
        let resumed = later.iter().enumerate().find(|(_, run)| run.log.began(prints).is_some());
        let is_known = match resumed {
            // Until the run has finished an epoch, it may still repeat one, or it has none left.
            Some((place, run)) => !says_epochs || run.log.epochs.is_some() || place + 1 < later.len() || is_over,
            None => is_over,
        };
        if !is_known {
            return None;
        }
        let place = resumed.map_or(usize::MAX, |(place, _)| reclaim.run + 1 + place);
        let again = self
            .reclaims
            .iter()
            .find(|other| other.trial == reclaim.trial && other.run > reclaim.run && other.run < place);
        let runs_again = resumed.and_then(|(_, run)| run.log.began(prints)).map(|(first, _)| first);
        let stopped = stopped(reclaim, interrupted);
        let until = again.map(|again| again.at).or(runs_again).unwrap_or(stopped);
        let epochs_repeated = match resumed {
            Some((_, run)) if interrupted.log.trained.is_some() => repeated(&runs[..=reclaim.run], run, is_over),
            Some(_) | None => 0,
        };
        Some(Outcome {
            to_zone: later.first().map(|run| run.zone.clone()),
            again: again.is_some(),
            seconds_lost: (until - stopped).max(0.0),
            epochs_repeated,
        })
    }

    /// The reclaims as the summary has them.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.reclaims.iter().map(Reclaim::json).collect()
    }

    /// The trial that was interrupted most often.
    pub(crate) fn most_interrupted(&self) -> Option<u32> {
        let count = |trial: u32| self.reclaims.iter().filter(|reclaim| reclaim.trial == trial).count();
        self.reclaims.iter().map(|reclaim| reclaim.trial).max_by_key(|trial| (count(*trial), u32::MAX - trial))
    }
}

/// When the training stopped. With a notice, it still prints lines until it stops.
fn stopped(reclaim: &Reclaim, interrupted: &Run) -> f64 {
    match interrupted.log.trained {
        Some((_, last)) if reclaim.notice => last.max(reclaim.at),
        Some(_) | None => reclaim.at,
    }
}

/// Number of epochs that began in the runs before and begin again in the resumed one. A run that had nothing left to
/// train repeats nothing.
fn repeated(before: &[Run], resumed: &Run, is_over: bool) -> u32 {
    let had_no_epoch_left = is_over && resumed.log.epochs.is_none();
    let begun = before.iter().filter_map(|run| run.log.begun()).max();
    match (begun, resumed.log.first_whole()) {
        (Some(begun), Some(first)) if !had_no_epoch_left => (begun + 1).saturating_sub(first),
        _nothing_known => 0,
    }
}

impl Reclaim {
    fn json(&self) -> Value {
        let outcome = self.outcome.as_ref();
        json!({
            "at_seconds": rounded(self.at),
            "trial": self.trial,
            "attempt": self.run + 1,
            "instance": self.instance,
            "kind": self.kind.name(),
            "from_zone": self.zone,
            "to_zone": outcome.and_then(|outcome| outcome.to_zone.clone()),
            "notice": self.notice,
            "seconds_lost": outcome.map(|outcome| rounded(outcome.seconds_lost)),
            "epochs_repeated": outcome.map(|outcome| outcome.epochs_repeated),
        })
    }
}

/// Rounds to a tenth of a second, because that is the time between two looks.
fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

fn line(reclaim: &Reclaim, outcome: &Outcome) -> String {
    let Reclaim { instance, zone, trial, run, kind, notice, .. } = reclaim;
    let notice = if *notice { "with notice" } else { "no notice" };
    let how = match kind {
        Kind::Notice | Kind::Silent => notice.to_owned(),
        Kind::Rebalance => format!("rebalance recommendation, then {notice}"),
        Kind::Zone => format!("the whole zone, {notice}"),
        Kind::Migration => format!("while its workspace was moving, {notice}"),
    };
    let what = match (&outcome.to_zone, outcome.again) {
        (None, _) => "it was done".to_owned(),
        (Some(to), again) => {
            let (time, epochs) = (duration(outcome.seconds_lost), counted(outcome.epochs_repeated, "epoch"));
            let what = match again {
                true => format!("reclaimed again in {to} before it resumed,"),
                false => format!("resumed in {to}"),
            };
            format!("{what} after {time}, {epochs} repeated")
        }
    };
    format!("reclaimed {instance} in {zone} ({how}): trial {trial} attempt {} → {what}", run + 1)
}

#[cfg(test)]
mod tests {
    use super::super::run_state::tests::{elsewhere, printed, run_state};
    use super::*;

    fn one(ledger: &Ledger) -> (Value, Value, Value) {
        let all = ledger.json();
        let first = &all[0];
        (first["to_zone"].clone(), first["seconds_lost"].clone(), first["epochs_repeated"].clone())
    }

    /// Trial 0 is interrupted after the output `before`, and goes on elsewhere with `after`. Returns what the ledger
    /// says then.
    fn followed(notice: bool, before: &str, after: &str, is_over: bool) -> (Vec<String>, (Value, Value, Value)) {
        let mut ledger = Ledger::default();
        // Each line is a second. The reclaim happens half a second after the last one.
        let first = run_state(&[("i-1", "a", 0, before)]);
        let at = before.lines().count() as f64 + 0.5;
        ledger.record(&first, "i-1", (Kind::Silent, notice), at);
        let last_words = if notice { "interrupted, 7 batches into the epoch; progress is saved\n" } else { "" };
        let second = elsewhere(printed(first, 0, last_words, at + 0.5), &[("i-2", "b", 0, "")]);
        let second = printed(second, 0, after, at + 4.0);
        let over = if is_over { BTreeSet::from([0]) } else { BTreeSet::new() };
        let lines = ledger.settle(&second, &over);
        assert!(ledger.settle(&second, &over).is_empty(), "each outcome is returned once");
        (lines, one(&ledger))
    }

    /// Notice, output before, output after, whether the trial is over; seconds lost and epochs repeated, if known.
    type Case = (bool, &'static str, &'static str, bool, Option<(f64, u32)>);

    #[test]
    fn what_a_reclaim_costs_is_what_the_training_says() {
        let cases: [Case; 7] = [
            (
                true,
                "epoch=1 x=1\n",
                "resuming after 1 epochs and 7 batches\nepoch=1 x=1\nepoch=2 x=1\n",
                false,
                Some((3.5, 0)),
            ),
            (
                false,
                "epoch=1 x=1\n",
                "resuming after 1 epochs and 0 batches\nepoch=1 x=1\nepoch=2 x=1\n",
                false,
                Some((4.0, 1)),
            ),
            (
                false,
                "epoch=1 x=1\nepoch=2 x=1\n",
                "resuming after 1 epochs and 0 batches\nepoch=2 x=1\n",
                false,
                Some((4.0, 2)),
            ),
            (false, "epoch=1 x=1\nepoch=2 x=1\n", "epoch=1 x=1\n", false, Some((4.0, 3))),
            (false, "epoch=1 x=1\n", "resuming after 1 epochs and 0 batches\nepoch=1 x=1\n", false, None),
            // The trial is interrupted after its last epoch.
            (false, "epoch=1 x=1\n", "resuming after 1 epochs and 0 batches\nepoch=1 x=1\n", true, Some((4.0, 0))),
            (false, "", "epoch=1 x=1\n", false, Some((4.0, 0))),
        ];
        for (notice, before, after, is_over, expected) in cases {
            let (lines, outcome) = followed(notice, before, after, is_over);
            match expected {
                Some((seconds, epochs)) => {
                    assert_eq!(outcome, (json!("b"), json!(seconds), json!(epochs)), "{before} {after}");
                    assert!(
                        lines[0].contains(&format!("resumed in b after {}, {epochs} epoch", duration(seconds))),
                        "{lines:?}"
                    );
                }
                None => assert_eq!((lines, outcome.1), (vec![], Value::Null), "it is not decided yet"),
            }
        }
    }

    #[test]
    fn a_reclaim_on_the_way_ends_the_one_before() {
        let mut ledger = Ledger::default();
        let training = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        ledger.record(&training, "i-1", (Kind::Notice, true), 2.0);
        ledger.record(&training, "i-1", (Kind::Zone, false), 2.5);
        assert_eq!(ledger.json().len(), 1, "one instance, one trial, one loss");
        assert_eq!(ledger.json()[0]["notice"], false, "the notice was cut short");
        let moving = elsewhere(training, &[("i-2", "b", 0, "")]);
        ledger.record(&moving, "i-2", (Kind::Migration, false), 4.0);
        assert!(ledger.settle(&moving, &BTreeSet::new()).is_empty());
        let resumed = elsewhere(moving, &[("i-3", "c", 0, "")]);
        let resumed = printed(resumed, 0, "resuming after 1 epochs and 0 batches\nepoch=2 x=1\n", 7.0);
        let lines = ledger.settle(&resumed, &BTreeSet::new());
        assert!(lines[0].ends_with("reclaimed again in b before it resumed, after 2 s, 1 epoch repeated"), "{lines:?}");
        assert!(lines[1].ends_with("resumed in c after 3 s, 0 epochs repeated"), "{lines:?}");
        assert_eq!(ledger.most_interrupted(), Some(0));
    }

    #[test]
    fn a_trial_that_was_done_lost_nothing() {
        let mut ledger = Ledger::default();
        let training = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        ledger.record(&training, "i-1", (Kind::Notice, true), 2.0);
        let lines = ledger.settle(&training, &BTreeSet::from([0]));
        assert!(lines[0].ends_with("trial 0 attempt 1 → it was done"), "{lines:?}");
        assert_eq!(one(&ledger), (Value::Null, json!(0.0), json!(0)));
    }
}
