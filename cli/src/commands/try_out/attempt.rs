//! What one attempt has shown: its log, and when it saved.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use spotsweep_protocol::runner_log::{Event, RUNNER, is_rollback};
use spotsweep_training_metrics::{Definitions, Lines};

use super::moments::Interruption;

/// One attempt. Times are seconds since the trial began.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempt {
    /// When its command was started.
    pub(super) started: Option<f64>,
    /// How it was interrupted, and when.
    pub(super) interrupted: Option<(Interruption, f64)>,
    /// When the stop signal was sent, and when the command had ended.
    pub(super) stopped: Option<f64>,
    pub(super) ended: Option<f64>,
    /// When its checkpoints were complete.
    pub(super) saves: Vec<f64>,
    /// What the log says.
    pub(super) said: Said,
    /// Bytes of the log that are read. It has one line a second or many, and is looked at many times a second.
    pub(super) read: u64,
    pub(super) reader: Lines,
}

/// What the log of an attempt says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    /// The newest checkpoint that it found.
    pub(super) found: Option<String>,
    /// The first and the largest step that it recorded.
    pub(super) steps: Option<(f64, f64)>,
    /// The newest value of each metric.
    pub(super) metrics: BTreeMap<String, f64>,
    /// Whether the command was killed at the end of the grace.
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
    /// An attempt of which nothing was seen yet. `metric` is what the sweep file names.
    pub(super) fn new(metric: Option<&str>) -> Self {
        Self { reader: Lines::new(metric.map(str::to_owned), Definitions::default()), ..Self::default() }
    }

    /// Takes in the lines that its log has more than before, as it is `now`.
    ///
    /// # Errors
    /// Where the log cannot be read. It is read from the same place then.
    pub(super) fn follow(&mut self, log: &Path, now: f64) -> io::Result<()> {
        let mut log = File::open(log)?;
        log.seek(SeekFrom::Start(self.read))?;
        let mut new = Vec::new();
        log.read_to_end(&mut new)?;
        // A line that goes on is read when it has its end.
        let end = new.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        self.read += end as u64;
        self.take(&String::from_utf8_lossy(&new[..end]), now);
        Ok(())
    }

    fn take(&mut self, text: &str, now: f64) {
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            let Some(own) = of_runner(line) else {
                self.said.take(line, &mut self.reader);
                continue;
            };
            let Some(event) = Event::read(own) else { continue };
            self.said.take_event(event);
            let at = match event {
                Event::Mounted { .. } => &mut self.started,
                Event::Stopping { .. } => &mut self.stopped,
                Event::Ended { .. } | Event::Interrupted { .. } => &mut self.ended,
                Event::GraceOver => continue,
            };
            at.get_or_insert(now);
        }
    }

    /// Seconds from one checkpoint to the next. The first has the imports before it.
    fn gaps(&self) -> impl Iterator<Item = f64> {
        self.saves.windows(2).map(|pair| pair[1] - pair[0])
    }

    fn until_first_save(&self) -> Option<f64> {
        Some(self.saves.first()? - self.started?)
    }

    /// Seconds that the training took to end after the stop signal.
    pub(super) fn seconds_to_stop(&self) -> Option<f64> {
        Some(self.ended? - self.stopped?)
    }
}

/// Seconds between two checkpoints: the median, as one that comes late says nothing of the next. Where no attempt has
/// two, it is what the first took.
pub(super) fn interval<'a>(attempts: impl Iterator<Item = &'a Attempt> + Clone) -> Option<f64> {
    let mut gaps: Vec<f64> = attempts.clone().flat_map(Attempt::gaps).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().or_else(|| attempts.filter_map(Attempt::until_first_save).reduce(f64::max))
}

/// What the runner says. It may follow a progress bar, which ends no line.
fn of_runner(line: &str) -> Option<&str> {
    line.split_once(RUNNER).map(|(_bar, own)| own)
}

impl Said {
    fn take(&mut self, line: &str, reader: &mut Lines) {
        self.is_evaluating = is_of_evaluation(line);
        self.shows_evaluation |= self.is_evaluating;
        let logged = reader.read(line);
        if let Some(step) = logged.step {
            self.steps = Some(self.steps.map_or((step, step), |(first, last)| (first, f64::max(last, step))));
        }
        self.metrics.extend(logged.values.into_iter().map(|value| (value.name, value.value)));
        if line.contains("Error") {
            self.error = Some(line.trim().to_owned());
        }
    }

    fn take_event(&mut self, event: Event<'_>) {
        match event {
            Event::Mounted { newest } => self.found = newest.map(str::to_owned),
            Event::GraceOver => self.was_killed = true,
            Event::Ended { code } => self.code = Some(code),
            Event::Interrupted { reason } if is_rollback(reason) => self.rollback = Some(reason.to_owned()),
            Event::Interrupted { .. } | Event::Stopping { .. } => {}
        }
    }
}

/// Whether a line says that an evaluation is under way: a progress bar named so, or a line without values.
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
        let attempt =
            |started, saves: &[f64]| Attempt { started: Some(started), saves: saves.to_vec(), ..Attempt::default() };
        // Twenty seconds of imports, then a checkpoint each second, once late.
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
        // In the middle of a line. What is read is not read again: a look would take longer and longer.
        let (first, second) = log.split_at(log.find("the grace is over").unwrap());
        let (read, rest) = first.split_at(first.rfind('\n').unwrap() + 1);
        for (log, now) in [(first, 5.0), (&format!("{}{rest}{second}", "?".repeat(read.len())), 7.5)] {
            std::fs::write(&path, log).unwrap();
            attempt.follow(&path, now).unwrap();
        }
        assert_eq!((attempt.started, attempt.seconds_to_stop()), (Some(5.0), Some(2.5)));
        let metrics = [("val_acc".to_owned(), 0.75)].into();
        let found = Some("epoch_2.pt".to_owned());
        assert_eq!(attempt.said, Said { found, steps: Some((3.0, 4.0)), metrics, was_killed: true, ..Said::default() });
    }

    #[test]
    fn a_command_that_ends_by_itself_has_an_exit_code() {
        let mut attempt = Attempt::new(None);
        let end = spotsweep_protocol::runner_log::ended(3, 1.0, 0, 0);
        attempt.take(&format!("KeyError: 'epoch'\n{RUNNER}{end}\n"), 5.0);
        assert_eq!((attempt.said.code, attempt.said.error.as_deref()), (Some(3), Some("KeyError: 'epoch'")));
    }
}
