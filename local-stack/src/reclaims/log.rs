//! What one attempt's output tells of its training.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use spotsweep_protocol::runner_log::RUNNER;

/// Bytes taken at once; what is more comes with the next look.
const MOST_BYTES: u64 = 1 << 20;

/// One attempt's output so far. Times are seconds since the watch began, of the look that saw the line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AttemptLog {
    /// Bytes read.
    offset: u64,
    /// The line that has not ended yet.
    partial: Vec<u8>,
    /// When the training wrote its first line, and its last one.
    pub trained: Option<(f64, f64)>,
    /// Epochs and batches of the checkpoint that it resumed from, as it said itself.
    pub resumed: Option<(u32, u32)>,
    /// The first epoch that it has finished, and the last one.
    pub epochs: Option<(u32, u32)>,
    /// Batches of the epoch under way that it saved when it was stopped.
    saved: Option<u32>,
}

impl AttemptLog {
    /// Reads what has been written since. A file that is not there yet has nothing to tell.
    pub(crate) fn follow(&mut self, path: &Path, now: f64) {
        if let Ok(bytes) = self.read(path) {
            self.take(&bytes, now);
        }
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
        String::from_utf8_lossy(&whole).lines().for_each(|line| self.line(line, now));
    }

    fn line(&mut self, line: &str, now: f64) {
        if line.starts_with(RUNNER) {
            return;
        }
        self.trained = Some((self.trained.map_or(now, |(first, _)| first), now));
        if let Some((epochs, batches)) = two_numbers(line, "resuming after ", " epochs and ") {
            self.resumed = Some((epochs, batches));
        } else if let Some(batches) = line.strip_prefix("interrupted, ").and_then(number) {
            self.saved = Some(batches);
        } else if let Some(epoch) = line.split_once("epoch=").and_then(|(_, epoch)| number(epoch)) {
            // A resumed training tells the last epoch of its checkpoint once more.
            if self.resumed.is_none_or(|(resumed, _)| epoch > resumed) {
                self.epochs = Some((self.epochs.map_or(epoch, |(first, _)| first), epoch));
            }
        }
    }

    /// Whether it is in the middle of its training: it has finished an epoch and was not told to stop.
    pub(crate) fn is_training(&self) -> bool {
        self.epochs.is_some() && self.saved.is_none()
    }

    /// The newest epoch of which it has trained at least a part.
    pub(crate) fn begun(&self) -> Option<u32> {
        let finished = self.epochs.map(|(_, last)| last).or(self.resumed.map(|(epochs, _)| epochs))?;
        Some(if self.saved == Some(0) { finished } else { finished + 1 })
    }

    /// The first epoch that it trained from the beginning; absent where none is known.
    pub(crate) fn anew(&self) -> Option<u32> {
        match self.resumed {
            Some((epochs, batches)) => Some(epochs + 1 + u32::from(batches > 0)),
            None => self.epochs.map(|(first, _)| first),
        }
    }
}

/// `<before>N<between>M…`
fn two_numbers(line: &str, before: &str, between: &str) -> Option<(u32, u32)> {
    let (first, second) = line.strip_prefix(before)?.split_once(between)?;
    Some((first.parse().ok()?, number(second)?))
}

/// The digits that a text begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> AttemptLog {
        let mut log = AttemptLog::default();
        // Torn anywhere, it reads the same.
        for (number, byte) in text.bytes().enumerate() {
            log.take(&[byte], number as f64);
        }
        log
    }

    #[test]
    fn an_attempt_s_epochs_are_read_from_its_own_lines() {
        let first = told("spotsweep-runner: granted\nepoch=1 val_accuracy=0.5\nepoch=2 val_accuracy=0.6\nepoch=3 v");
        assert_eq!((first.epochs, first.begun(), first.anew()), (Some((1, 2)), Some(3), Some(1)));
        assert_eq!(first.trained, Some((50.0, 75.0)));
        assert!(first.is_training());

        let resumed = told("resuming after 2 epochs and 0 batches\nepoch=2 val_accuracy=0.6\nepoch=3 v=1\n");
        assert_eq!((resumed.epochs, resumed.begun(), resumed.anew()), (Some((3, 3)), Some(4), Some(3)));
        let waiting = told("resuming after 2 epochs and 7 batches\nepoch=2 val_accuracy=0.6\n");
        assert_eq!((waiting.epochs, waiting.begun(), waiting.anew()), (None, Some(3), Some(4)));
        assert!(!waiting.is_training());

        let saved = told("epoch=1 a=1\ninterrupted, 7 batches into the epoch; progress is saved\n");
        assert_eq!((saved.begun(), saved.is_training()), (Some(2), false));
        let between = told("epoch=1 a=1\ninterrupted, 0 batches into the epoch; progress is saved\n");
        assert_eq!(between.begun(), Some(1), "nothing of the second epoch was trained");

        let silent = told("spotsweep-runner: waiting for the workspace, 0.1 s so far: epoch=9\n");
        assert_eq!((silent.trained, silent.begun(), silent.anew()), (None, None, None));
    }
}
