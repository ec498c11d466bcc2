//! Reads from an attempt's output what its training does.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use spotsweep_protocol::runner_log::{Event, RUNNER};
use spotsweep_training_metrics::Lines;

/// If a training prints nothing for so long after its workspace is mounted, it counts as training.
const SILENT_SECONDS: f64 = 5.0;
/// Bytes that are read at once. The next look reads the rest.
const MOST_BYTES: u64 = 1 << 20;

/// One attempt's output so far. A time is in seconds since the watch began, and is that of the look that saw the line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AttemptLog {
    /// Number of bytes that were read.
    offset: u64,
    /// The beginning of a line that has not ended yet.
    partial: Vec<u8>,
    /// When the workspace was mounted.
    mounted: Option<f64>,
    /// Whether the runner has sent the stop signal.
    is_stopping: bool,
    /// When the training was found to print nothing, and when its workspace was mounted.
    silent: Option<(f64, f64)>,
    /// Times of the training's first and last line.
    pub trained: Option<(f64, f64)>,
    /// Epochs and batches of the checkpoint from which it resumed, as the training itself prints them.
    pub resumed: Option<(u32, u32)>,
    /// The first and the last epoch that it has finished.
    pub epochs: Option<(u32, u32)>,
    /// Batches of the current epoch that it had trained when it saved at the stop signal.
    saved: Option<u32>,
}

impl AttemptLog {
    /// Reads what has been written since the last look. A file may not exist yet.
    pub(crate) fn follow(&mut self, path: &Path, now: f64) {
        if let Ok(bytes) = self.read(path) {
            self.take(&bytes, now);
        }
        let mounted = self.mounted.filter(|mounted| self.trained.is_none() && now - mounted >= SILENT_SECONDS);
        self.silent = self.silent.or(mounted.map(|mounted| (mounted, now)));
    }

    fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.take(MOST_BYTES).read_to_end(&mut bytes)? as u64;
        Ok(bytes)
    }

    pub(super) fn take(&mut self, bytes: &[u8], now: f64) {
        self.partial.extend(bytes);
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        let whole = String::from_utf8_lossy(&whole);
        whole.split(['\n', '\r']).filter(|line| !line.is_empty()).for_each(|line| self.line(line, now));
    }

    fn line(&mut self, line: &str, now: f64) {
        if let Some((_bar, own)) = line.split_once(RUNNER) {
            match Event::read(own) {
                Some(Event::Mounted { .. }) => self.mounted = Some(now),
                Some(Event::Stopping { .. }) => self.is_stopping = true,
                Some(_) | None => {}
            }
            return;
        }
        self.trained = Some((self.trained.map_or(now, |(first, _)| first), now));
        if let Some((epochs, batches)) = two_numbers(line, "resuming after ", " epochs and ") {
            self.resumed = Some((epochs, batches));
        } else if let Some(batches) = line.strip_prefix("interrupted, ").and_then(number) {
            self.saved = Some(batches);
        } else if let Some(epoch) = step_of(line) {
            // A resumed training prints the last epoch of its checkpoint again.
            if self.resumed.is_none_or(|(resumed, _)| epoch > resumed) {
                self.epochs = Some((self.epochs.map_or(epoch, |(first, _)| first), epoch));
            }
        }
    }

    /// Whether it is in the middle of its training: it has finished an epoch, or it prints no epochs, and it was not
    /// sent the stop signal.
    pub(crate) fn is_training(&self) -> bool {
        let written = self.mounted.zip(self.trained).filter(|_| self.resumed.is_none());
        let says_no_epochs = written.is_some_and(|(mounted, (_, last))| last - mounted >= SILENT_SECONDS);
        let trains = self.epochs.is_some() || says_no_epochs || self.silent.is_some();
        trains && self.saved.is_none() && !self.is_stopping
    }

    /// When the training began, and when it last printed a line. If it prints nothing in any of its attempts, it began
    /// when its workspace was mounted.
    pub(crate) fn began(&self, prints: bool) -> Option<(f64, f64)> {
        self.trained.or(self.silent.filter(|_| !prints))
    }

    /// The newest epoch of which it has trained at least a part.
    pub(crate) fn begun(&self) -> Option<u32> {
        let finished = self.epochs.map(|(_, last)| last).or(self.resumed.map(|(epochs, _)| epochs))?;
        Some(if self.saved == Some(0) { finished } else { finished + 1 })
    }

    /// The first epoch that it trained from that epoch's beginning, if one is known.
    pub(crate) fn first_whole(&self) -> Option<u32> {
        match self.resumed {
            Some((epochs, batches)) => Some(epochs + 1 + u32::from(batches > 0)),
            None => self.epochs.map(|(first, _)| first),
        }
    }
}

/// The step in a line with metrics, or in a line that announces it, as Keras's `Epoch 3/10` does.
fn step_of(line: &str) -> Option<u32> {
    let found = Lines::default().read(line).into_iter().next()?;
    let announces = line.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("epoch"));
    let step = found.step.filter(|step| (!found.values.is_empty() || announces) && *step >= 0.0)?;
    Some(step as u32)
}

/// The numbers N and M in `<before>N<between>M…`.
fn two_numbers(line: &str, before: &str, between: &str) -> Option<(u32, u32)> {
    let (first, second) = line.strip_prefix(before)?.split_once(between)?;
    Some((first.parse().ok()?, number(second)?))
}

/// The digits with which a text begins.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read_from(text: &str) -> AttemptLog {
        let mut log = AttemptLog::default();
        // The result is the same wherever the text is cut in two.
        for (number, byte) in text.bytes().enumerate() {
            log.take(&[byte], number as f64);
        }
        log
    }

    #[test]
    fn an_attempt_s_epochs_are_read_from_its_own_lines() {
        let first =
            read_from("spotsweep-runner: granted\nepoch=1 val_accuracy=0.5\nepoch=2 val_accuracy=0.6\nepoch=3 v");
        assert_eq!((first.epochs, first.begun(), first.first_whole()), (Some((1, 2)), Some(3), Some(1)));
        assert_eq!(first.trained, Some((50.0, 75.0)));
        assert!(first.is_training());

        let resumed = read_from("resuming after 2 epochs and 0 batches\nepoch=2 val_accuracy=0.6\nepoch=3 v=1\n");
        assert_eq!((resumed.epochs, resumed.begun(), resumed.first_whole()), (Some((3, 3)), Some(4), Some(3)));
        let waiting = read_from("resuming after 2 epochs and 7 batches\nepoch=2 val_accuracy=0.6\n");
        assert_eq!((waiting.epochs, waiting.begun(), waiting.first_whole()), (None, Some(3), Some(4)));
        assert!(!waiting.is_training());

        let saved = read_from("epoch=1 a=1\ninterrupted, 7 batches into the epoch; progress is saved\n");
        assert_eq!((saved.begun(), saved.is_training()), (Some(2), false));
        let between = read_from("epoch=1 a=1\ninterrupted, 0 batches into the epoch; progress is saved\n");
        assert_eq!(between.begun(), Some(1), "nothing of the second epoch was trained");

        let bars = read_from(
            "\rEpoch 1/9:  50%|##  | 1/2 [00:00<00:00, 9it/s, loss=0.5]\nEpoch 1: val_acc: 0.5\n{'eval_loss': '0.5', 'epoch': '2.0'}\n",
        );
        assert_eq!((bars.epochs, bars.is_training()), (Some((1, 2)), true));
        let stopping = read_from("Epoch 1/9\nspotsweep-runner: sent SIGTERM, 1.0 s to save\n");
        assert!(stopping.epochs.is_some() && !stopping.is_training());

        let silent = read_from("spotsweep-runner: waiting for the workspace, 0.1 s so far: epoch=9\n");
        assert_eq!((silent.trained, silent.begun(), silent.first_whole()), (None, None, None));
    }

    #[test]
    fn a_training_that_prints_nothing_trains_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(
            &path,
            "spotsweep-runner: workspace v is mounted and verified after 0.1 s; newest checkpoint: none\n",
        )
        .unwrap();
        let mut log = AttemptLog::default();
        log.follow(&path, 3.0);
        log.follow(&path, 7.0);
        assert!(!log.is_training() && log.trained.is_none());
        log.follow(&path, 8.5);
        assert_eq!((log.is_training(), log.began(false), log.began(true)), (true, Some((3.0, 8.5)), None));
    }
}
