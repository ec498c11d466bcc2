//! What one attempt has shown: its log, and when it saved.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use spotsweep_protocol::runner_log::{Event, RUNNER, is_rollback};
use spotsweep_training_metrics::{Definitions, Lines, Value};

use super::moments::Interruption;
use super::saves::Written;
use super::steps::{Counter, Counters, Series};

/// A value that is printed so many seconds after the checkpoints disappeared was computed without them.
const AFTER_GONE: f64 = 0.5;

/// One attempt. Times are in seconds since the trial began.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempt {
    /// When its command was started.
    pub(super) started: Option<f64>,
    /// How it was interrupted, and when.
    pub(super) interrupted: Option<(Interruption, f64)>,
    /// When the stop signal was sent, and when the command had ended.
    pub(super) stopped: Option<f64>,
    pub(super) ended: Option<f64>,
    /// Seconds that it had after the stop signal.
    pub(super) grace: Option<f64>,
    /// Whether anything was written to its folder of checkpoints. It may not have been complete before the end.
    pub(super) has_written: bool,
    /// Its checkpoints, in the order in which they were completed.
    pub(super) saves: Vec<Save>,
    /// Since when there is no checkpoint any more although it still runs.
    pub(super) gone: Option<f64>,
    /// Whether it printed values after that, so that it still evaluates.
    pub(super) evaluates_without: bool,
    /// The steps of all counters.
    pub(super) steps: Counters,
    /// What the log says.
    pub(super) said: Said,
    /// Bytes of the log that were read. The log is looked at many times a second, and may be long.
    pub(super) read: u64,
    pub(super) reader: Lines,
}

/// A checkpoint that an attempt has written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Save {
    /// When it was complete.
    pub(super) at: f64,
    /// The step until then, of the counter that is followed.
    pub(super) step: Option<f64>,
    /// Its files and their sizes in bytes.
    pub(super) files: Vec<(String, u64)>,
}

/// What the log of an attempt says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    /// The newest checkpoint that the attempt found.
    pub(super) found: Option<String>,
    /// Files of which the runner has restored an earlier version, and whether another file may be of another version
    /// than these.
    pub(super) back: BTreeSet<String>,
    pub(super) may_differ: bool,
    /// The first and the last step, of the counter that is followed, and whether there may have been steps before.
    pub(super) steps: Option<(f64, f64)>,
    pub(super) may_lack_first: bool,
    /// The first and the newest value of each metric.
    pub(super) metrics: BTreeMap<String, (f64, f64)>,
    /// Whether the command was killed, because no time was left for it to save.
    pub(super) was_killed: bool,
    /// The exit code of a command that ended by itself.
    pub(super) code: Option<i32>,
    /// Why the runner went back to an older checkpoint.
    pub(super) rollback: Option<String>,
    /// Whether its last line is of an evaluation, and whether any line was.
    pub(super) is_evaluating: bool,
    pub(super) shows_evaluation: bool,
    /// Its last line that looks like an error.
    pub(super) error: Option<String>,
}

impl Attempt {
    /// An attempt of which nothing was seen yet. `metric` is the one that the sweep file names.
    pub(super) fn new(metric: Option<&str>) -> Self {
        Self { reader: Lines::new(metric.map(str::to_owned), Definitions::default()), ..Self::default() }
    }

    /// Reads what was added to its log since the last look at the time `now`.
    ///
    /// # Errors
    /// The log cannot be read. The next look reads from the same place.
    pub(super) fn follow(&mut self, log: &Path, now: f64) -> io::Result<()> {
        let mut log = File::open(log)?;
        log.seek(SeekFrom::Start(self.read))?;
        let mut new = Vec::new();
        log.read_to_end(&mut new)?;
        // A line is read when it is complete.
        let end = new.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        self.read += end as u64;
        self.take(&String::from_utf8_lossy(&new[..end]), now);
        Ok(())
    }

    fn take(&mut self, text: &str, now: f64) {
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            let Some(own) = of_runner(line) else {
                let evaluates = self.take_line(line, now);
                self.evaluates_without |= evaluates && self.gone.is_some_and(|gone| now - gone >= AFTER_GONE);
                continue;
            };
            let Some(event) = Event::read(own) else { continue };
            self.said.take_event(event);
            let at = match event {
                Event::Mounted { .. } => &mut self.started,
                Event::Stopping { seconds } => {
                    self.grace = Some(seconds);
                    &mut self.stopped
                }
                Event::Ended { .. } | Event::Interrupted { .. } => &mut self.ended,
                Event::Killed | Event::Back { .. } | Event::MayDiffer => continue,
            };
            at.get_or_insert(now);
        }
    }

    /// Adds a complete checkpoint. What the runner restores before the training starts does not count.
    pub(super) fn saves(&mut self, Written { at, files }: Written) {
        if self.started.is_some_and(|started| at > started) {
            self.saves.push(Save { at, step: None, files });
        }
    }

    /// Notes whether there is a checkpoint now. When the instance is reclaimed, the folder disappears with it.
    pub(super) fn sees_checkpoints(&mut self, is_there: bool, now: f64) {
        let had_one = !self.saves.is_empty() || self.said.found.is_some();
        let is_training = self.started.is_some() && self.interrupted.is_none() && self.ended.is_none();
        if is_training && had_one {
            self.gone = if is_there { None } else { self.gone.or(Some(now)) };
        }
    }

    /// Reads a line of the training. Returns whether it shows an evaluation.
    fn take_line(&mut self, line: &str, now: f64) -> bool {
        let logged = self.reader.read(line);
        if let Some(step) = logged.first().and_then(|first| first.step) {
            self.steps.entry(Counter::Lines).or_default().add(now, step);
        }
        for row in &logged {
            let Some(step) = row.step else { continue };
            for value in &row.values {
                self.steps.entry(Counter::Printed(value.name.clone())).or_default().add(now, step);
            }
        }
        let values = logged.into_iter().flat_map(|row| row.values);
        self.said.take(line, values.collect(), self.reader.is_in_traceback())
    }

    /// Whether it has come further than where it began.
    pub(super) fn has_trained(&self) -> bool {
        self.steps.values().filter_map(Series::ends).any(|(first, last)| last > first)
    }

    /// Seconds from each checkpoint to the next. The time to the first one is left out, because it includes the
    /// imports.
    fn gaps(&self) -> impl Iterator<Item = f64> {
        self.saves.windows(2).map(|pair| pair[1].at - pair[0].at)
    }

    fn until_first_save(&self) -> Option<f64> {
        Some(self.saves.first()?.at - self.started?)
    }

    /// For how many seconds it trained.
    pub(super) fn seconds(&self) -> Option<f64> {
        let end = self.ended.or_else(|| self.interrupted.map(|(_, at)| at))?;
        Some(end - self.started?)
    }

    /// Seconds that the training took to end after the stop signal.
    pub(super) fn seconds_to_stop(&self) -> Option<f64> {
        Some(self.ended? - self.stopped?)
    }
}

/// Seconds between two checkpoints. It is the median, because a late one says nothing about the next. If no attempt has
/// two, it is the time to the first one.
pub(super) fn interval<'a>(attempts: impl Iterator<Item = &'a Attempt> + Clone) -> Option<f64> {
    let mut gaps: Vec<f64> = attempts.clone().flat_map(Attempt::gaps).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().or_else(|| attempts.filter_map(Attempt::until_first_save).reduce(f64::max))
}

/// The part of a line that the runner has written. It may follow a progress bar, which ends no line.
fn of_runner(line: &str) -> Option<&str> {
    line.split_once(RUNNER).map(|(_bar, own)| own)
}

impl Said {
    /// Whether the command has failed by itself.
    pub(super) fn has_failed(&self) -> bool {
        self.code.is_some_and(|code| code != 0) || self.rollback.is_some()
    }

    /// Takes the values of a line. Returns whether it shows an evaluation. A traceback shows none.
    fn take(&mut self, line: &str, values: Vec<Value>, is_in_traceback: bool) -> bool {
        self.is_evaluating = !is_in_traceback && is_of_evaluation(line);
        self.shows_evaluation |= self.is_evaluating;
        let has_values = !values.is_empty();
        for value in values {
            let (_, newest) = self.metrics.entry(value.name).or_insert((value.value, value.value));
            *newest = value.value;
        }
        if line.contains("Error") {
            self.error = Some(line.trim().to_owned());
        }
        self.is_evaluating || has_values
    }

    fn take_event(&mut self, event: Event<'_>) {
        match event {
            Event::Mounted { newest } => self.found = newest.map(str::to_owned),
            Event::Back { name } => self.back.extend([name.to_owned()]),
            Event::MayDiffer => self.may_differ = true,
            Event::Killed => self.was_killed = true,
            Event::Ended { code } => self.code = Some(code),
            Event::Interrupted { reason } if is_rollback(reason) => self.rollback = Some(reason.to_owned()),
            Event::Interrupted { .. } | Event::Stopping { .. } => {}
        }
    }
}

/// Whether a line shows that an evaluation is running: a progress bar with such a name, or a line without values.
fn is_of_evaluation(line: &str) -> bool {
    let line = line.to_lowercase();
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_named = words.any(|word| {
        matches!(word, "val" | "test" | "testing") || word.starts_with("valid") || word.starts_with("eval")
    });
    let is_progress = line.contains("%|") && !line.contains("100%|");
    is_named && (is_progress || !line.contains(|letter: char| letter.is_ascii_digit() || letter == '='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_under_way_shows() {
        for (line, expected) in [
            ("Validation DataLoader 0:  50%|█████     | 5/10 [00:00<00:00, 70.87it/s]", true),
            ("Validation DataLoader 0: 100%|██████████| 10/10 [00:00<00:00, 70.87it/s]", false),
            ("val:  10%|█         | 1/10", true),
            ("***** Running Evaluation *****", true),
            ("Epoch 3:  50%|█████     | 5/10, val_acc=0.5]", false),
            ("val_acc: 0.5", false),
            ("Test set: Average loss: 0.0290, Accuracy: 9905/10000 (99%)", false),
        ] {
            assert_eq!(is_of_evaluation(line), expected, "{line}");
        }
    }

    #[test]
    fn the_interval_is_that_of_most_checkpoints() {
        let attempt = |started, saves: &[f64]| Attempt {
            started: Some(started),
            saves: saves.iter().map(|at| Save { at: *at, ..Save::default() }).collect(),
            ..Attempt::default()
        };
        // There are twenty seconds of imports, then a checkpoint each second, and one that is late.
        let first = attempt(1.0, &[21.0]);
        assert_eq!(interval([&first].into_iter()), Some(20.0));
        assert_eq!(interval([&first, &attempt(30.0, &[50.0, 51.0, 52.0, 62.0, 63.0])].into_iter()), Some(1.0));
        assert_eq!(interval([&Attempt::default()].into_iter()), None);
    }

    #[test]
    fn a_log_says_what_became_of_an_attempt() {
        let log = "spotsweep-runner: workspace vol-1 is mounted and verified after 0.1 s; newest checkpoint: epoch_2.pt\n\
                   Epoch 3: val_acc: 0.5\nEpoch 4: val_acc: 0.75\n\rEpoch 5:  50%|██  | 1/2spotsweep-runner: sent SIGTERM, 90.0 s to save\n\
                   spotsweep-runner: the grace is over: killing the command\nspotsweep-runner: interrupted: EC2 takes this instance\n";
        let (mut attempt, folder) = (Attempt::new(None), tempfile::tempdir().unwrap());
        let path = folder.path().join("log");
        // The cut is in the middle of a line. What was read is not read again, because looks would take longer and
        // longer.
        let (first, second) = log.split_at(log.find("the grace is over").unwrap());
        let (read, rest) = first.split_at(first.rfind('\n').unwrap() + 1);
        for (log, now) in [(first, 5.0), (&format!("{}{rest}{second}", "?".repeat(read.len())), 7.5)] {
            std::fs::write(&path, log).unwrap();
            attempt.follow(&path, now).unwrap();
        }
        assert_eq!((attempt.started, attempt.seconds_to_stop(), attempt.grace), (Some(5.0), Some(2.5), Some(90.0)));
        let metrics = [("val_acc".to_owned(), (0.5, 0.75))].into();
        let found = Some("epoch_2.pt".to_owned());
        assert_eq!(attempt.said, Said { found, metrics, was_killed: true, ..Said::default() });
        let steps = |counter| attempt.steps.get(&counter).and_then(Series::ends);
        assert_eq!(steps(Counter::Printed("val_acc".to_owned())), Some((3.0, 4.0)));
        assert_eq!(steps(Counter::Lines), Some((3.0, 4.0)), "the bar has no end");
    }

    #[test]
    fn an_evaluation_without_checkpoints_shows() {
        let seen = |looks: &[(bool, f64)], line: &str| {
            let mut attempt = Attempt { started: Some(1.0), ..Attempt::default() };
            attempt.saves(Written { at: 2.0, files: Vec::new() });
            looks.iter().for_each(|(is_there, now)| attempt.sees_checkpoints(*is_there, *now));
            attempt.take(line, 6.0);
            (attempt.gone, attempt.evaluates_without)
        };
        let gone = [(true, 3.0), (false, 4.0), (false, 5.0)];
        assert_eq!(seen(&gone, "test loss: 0.25\n"), (Some(4.0), true));
        assert_eq!(seen(&gone, "done\n"), (Some(4.0), false), "it has only ended");
        assert_eq!(seen(&[(false, 5.9)], "test loss: 0.25\n"), (Some(5.9), false), "printed before it was seen");
        assert_eq!(seen(&[(false, 4.0), (true, 5.0)], "test loss: 0.25\n"), (None, false), "the next one follows");
    }

    #[test]
    fn a_command_that_ends_by_itself_has_an_exit_code() {
        let mut attempt = Attempt::new(None);
        let end = spotsweep_protocol::runner_log::ended(3, 1.0, 0, 0);
        attempt.take(&format!("KeyError: 'epoch'\n{RUNNER}{end}\n"), 5.0);
        assert_eq!((attempt.said.code, attempt.said.error.as_deref()), (Some(3), Some("KeyError: 'epoch'")));
    }

    #[test]
    fn source_in_a_traceback_is_no_evaluation() {
        let mut attempt = Attempt::new(None);
        let traceback =
            "Traceback (most recent call last):\n  File \"t.py\", line 8, in f\n    run.log({\"val/loss\": loss})\n";
        attempt.take(traceback, 5.0);
        assert!(!attempt.said.shows_evaluation && attempt.steps.is_empty());
    }
}
