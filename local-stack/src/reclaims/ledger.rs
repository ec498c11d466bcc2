//! What became of every trial that lost its instance.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::plan::Kind;
use super::run_state::{Run, RunState};
use spotsweep_protocol::words::{counted, duration};

/// One reclaim of one trial: an instance that carries two trials makes two.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reclaim {
    /// When it was struck, in seconds since the sweep was planned: the notice, or the death without one.
    pub at: f64,
    /// How.
    pub kind: Kind,
    /// Whether EC2 has said so before.
    pub notice: bool,
    /// Which trial.
    pub trial: u32,
    /// The place of the run that was struck among the trial's runs.
    run: usize,
    /// Which instance.
    pub instance: String,
    /// Its zone.
    pub zone: String,
    /// What followed.
    outcome: Option<Outcome>,
}

/// What followed a reclaim.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    /// Where the trial was placed next; absent where it had nothing left to do.
    to_zone: Option<String>,
    /// Whether that place was taken too before the training ran there.
    again: bool,
    /// From the training's last sign of life until its next one, or until the next reclaim.
    seconds_lost: f64,
    /// Epochs that were begun before and begun again after.
    epochs_repeated: u32,
}

/// All reclaims, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    reclaims: Vec<Reclaim>,
}

impl Ledger {
    /// An instance has been struck: every trial on it.
    pub(crate) fn struck(&mut self, run_state: &RunState, instance: &str, (kind, notice): (Kind, bool), at: f64) {
        let hosts = run_state.instances.iter().filter(|live| live.id == instance);
        for trial in hosts.flat_map(|host| host.trials.iter().copied()) {
            let Some(runs) = run_state.runs.get(&trial) else { continue };
            let (run, zone) = (runs.len() - 1, runs.last().map(|run| run.zone.clone()).unwrap_or_default());
            let known = self.reclaims.iter_mut().find(|known| known.trial == trial && known.run == run);
            match known {
                // Taken before its notice was over.
                Some(known) => known.notice &= notice,
                None => {
                    let instance = instance.to_owned();
                    self.reclaims.push(Reclaim { at, kind, notice, trial, run, instance, zone, outcome: None });
                }
            }
        }
    }

    /// Looks what became of those that are still open; a line for each that is decided now.
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

    /// `None` while it can't be told yet.
    fn outcome(&self, reclaim: &Reclaim, run_state: &RunState, is_over: bool) -> Option<Outcome> {
        let runs = run_state.runs.get(&reclaim.trial)?;
        let (struck, later) = (runs.get(reclaim.run)?, runs.get(reclaim.run + 1..).unwrap_or_default());
        let prints = runs.iter().any(|run| run.log.trained.is_some());
        let says_epochs = runs.iter().any(|run| run.log.epochs.is_some());
        let resumed = later.iter().enumerate().find(|(_, run)| run.log.began(prints).is_some());
        let is_known = match resumed {
            // Until it has finished an epoch, it may be about to repeat one, or have none left.
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
        let stopped = stopped(reclaim, struck);
        let until = again.map(|again| again.at).or(runs_again).unwrap_or(stopped);
        let epochs_repeated = match resumed {
            Some((_, run)) if struck.log.trained.is_some() => repeated(&runs[..=reclaim.run], run, is_over),
            Some(_) | None => 0,
        };
        Some(Outcome {
            to_zone: later.first().map(|run| run.zone.clone()),
            again: again.is_some(),
            seconds_lost: (until - stopped).max(0.0),
            epochs_repeated,
        })
    }

    /// As the summary has them.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.reclaims.iter().map(Reclaim::json).collect()
    }

    /// The trial that was struck most often.
    pub(crate) fn most_interrupted(&self) -> Option<u32> {
        let count = |trial: u32| self.reclaims.iter().filter(|reclaim| reclaim.trial == trial).count();
        self.reclaims.iter().map(|reclaim| reclaim.trial).max_by_key(|trial| (count(*trial), u32::MAX - trial))
    }
}

/// When the training stopped: with a notice, it still has something to say before it does.
fn stopped(reclaim: &Reclaim, struck: &Run) -> f64 {
    match struck.log.trained {
        Some((_, last)) if reclaim.notice => last.max(reclaim.at),
        Some(_) | None => reclaim.at,
    }
}

/// Epochs begun in the runs before that the resumed one begins again. One that had nothing left to train
/// repeats nothing.
fn repeated(before: &[Run], resumed: &Run, is_over: bool) -> u32 {
    let had_no_epoch_left = is_over && resumed.log.epochs.is_none();
    let begun = before.iter().filter_map(|run| run.log.begun()).max();
    match (begun, resumed.log.anew()) {
        (Some(begun), Some(anew)) if !had_no_epoch_left => (begun + 1).saturating_sub(anew),
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

/// Looks are a tenth of a second apart: more digits would be noise.
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
    use super::super::run_state::tests::{elsewhere, run_state, told};
    use super::*;

    fn one(ledger: &Ledger) -> (Value, Value, Value) {
        let all = ledger.json();
        let first = &all[0];
        (first["to_zone"].clone(), first["seconds_lost"].clone(), first["epochs_repeated"].clone())
    }

    /// Trial 0 is struck after `before` and goes on elsewhere with `after`; what the ledger then says.
    fn story(notice: bool, before: &str, after: &str, is_over: bool) -> (Vec<String>, (Value, Value, Value)) {
        let mut ledger = Ledger::default();
        // Each line is a second; the strike falls half a second after the last one.
        let first = run_state(&[("i-1", "a", 0, before)]);
        let at = before.lines().count() as f64 + 0.5;
        ledger.struck(&first, "i-1", (Kind::Silent, notice), at);
        let last_words = if notice { "interrupted, 7 batches into the epoch; progress is saved\n" } else { "" };
        let second = elsewhere(told(first, 0, last_words, at + 0.5), &[("i-2", "b", 0, "")]);
        let second = told(second, 0, after, at + 4.0);
        let over = if is_over { BTreeSet::from([0]) } else { BTreeSet::new() };
        let lines = ledger.settle(&second, &over);
        assert!(ledger.settle(&second, &over).is_empty(), "told once");
        (lines, one(&ledger))
    }

    /// Notice, output before, output after, whether the trial is over; seconds lost and epochs repeated, if decided.
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
            // Struck after its last epoch.
            (false, "epoch=1 x=1\n", "resuming after 1 epochs and 0 batches\nepoch=1 x=1\n", true, Some((4.0, 0))),
            (false, "", "epoch=1 x=1\n", false, Some((4.0, 0))),
        ];
        for (notice, before, after, is_over, expected) in cases {
            let (lines, told) = story(notice, before, after, is_over);
            match expected {
                Some((seconds, epochs)) => {
                    assert_eq!(told, (json!("b"), json!(seconds), json!(epochs)), "{before} {after}");
                    assert!(
                        lines[0].contains(&format!("resumed in b after {}, {epochs} epoch", duration(seconds))),
                        "{lines:?}"
                    );
                }
                None => assert_eq!((lines, told.1), (vec![], Value::Null), "it is not decided yet"),
            }
        }
    }

    #[test]
    fn a_reclaim_on_the_way_ends_the_one_before() {
        let mut ledger = Ledger::default();
        let training = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        ledger.struck(&training, "i-1", (Kind::Notice, true), 2.0);
        ledger.struck(&training, "i-1", (Kind::Zone, false), 2.5);
        assert_eq!(ledger.json().len(), 1, "one instance, one trial, one loss");
        assert_eq!(ledger.json()[0]["notice"], false, "the notice was cut short");
        let moving = elsewhere(training, &[("i-2", "b", 0, "")]);
        ledger.struck(&moving, "i-2", (Kind::Migration, false), 4.0);
        assert!(ledger.settle(&moving, &BTreeSet::new()).is_empty());
        let resumed = elsewhere(moving, &[("i-3", "c", 0, "")]);
        let resumed = told(resumed, 0, "resuming after 1 epochs and 0 batches\nepoch=2 x=1\n", 7.0);
        let lines = ledger.settle(&resumed, &BTreeSet::new());
        assert!(lines[0].ends_with("reclaimed again in b before it resumed, after 2 s, 1 epoch repeated"), "{lines:?}");
        assert!(lines[1].ends_with("resumed in c after 3 s, 0 epochs repeated"), "{lines:?}");
        assert_eq!(ledger.most_interrupted(), Some(0));
    }

    #[test]
    fn a_trial_that_was_done_lost_nothing() {
        let mut ledger = Ledger::default();
        let training = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        ledger.struck(&training, "i-1", (Kind::Notice, true), 2.0);
        let lines = ledger.settle(&training, &BTreeSet::from([0]));
        assert!(lines[0].ends_with("trial 0 attempt 1 → it was done"), "{lines:?}");
        assert_eq!(one(&ledger), (Value::Null, json!(0.0), json!(0)));
    }
}
