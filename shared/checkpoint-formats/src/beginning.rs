//! What the beginning of a file shows of its use: a state that a training goes on from, a log, or a text that may be
//! either.

use std::path::Path;

use crate::{Format, by_mark, by_name, ending_of, tar};

/// So many bytes from the start of a file are enough to tell.
pub const BEGINNING_BYTES: u64 = 4096;
/// In the names of TensorBoard's event files, which it knows by that alone
/// (<https://github.com/tensorflow/tensorboard/blob/master/tensorboard/backend/event_processing/io_wrapper.py>,
/// `IsTensorFlowEventsFile`).
const EVENT_FILE: &str = "tfevents";
/// How the file of a W&B run begins (wandb 0.31.0, `core/pkg/leveldb/record.go`).
const WANDB_RUN: &[u8] = b":W&B";

/// What a file begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// A format of weights or of a state.
    State,
    /// JSON: one value, or one on each line.
    Json,
    /// A format that is appended to: TensorBoard's event files, and W&B's runs.
    Log,
    /// Text of no known format, or JSON by lines.
    Text,
    /// Bytes of no known format.
    Unknown,
}

impl Beginning {
    /// Of the file at `path`, whose first [`BEGINNING_BYTES`] are `start`: fewer where the file has fewer.
    pub fn of(start: &[u8], path: &Path) -> Self {
        let ending = ending_of(path);
        // The mark of a tar file is judged by its first header.
        let header = &start[..start.len().min(tar::BLOCK as usize)];
        match by_mark(header, &ending).or_else(|| by_name(header, &ending)) {
            Some(Format::Json) => Self::Json,
            Some(Format::JsonLines) => Self::Text,
            Some(_) => Self::State,
            None if is_log(start, path) => Self::Log,
            None if is_text(start) => Self::Text,
            None => Self::Unknown,
        }
    }
}

fn is_log(start: &[u8], path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    start.starts_with(WANDB_RUN) || name.contains(EVENT_FILE)
}

/// Text in UTF-8; the last letter may be cut off.
fn is_text(start: &[u8]) -> bool {
    let is_utf8 = std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_utf8 && !start.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_shows_what_a_file_is_for_whatever_its_ending() {
        use Beginning::{Json, Log, State, Text, Unknown};
        let cases: [(&str, &[u8], Beginning); 14] = [
            ("model.txt", b"tree\nversion=v4\nnum_class=1\n", State),
            ("weights.log", b"PK\x03\x04", State),
            ("last.csv", &[0x80, 4, 0x95], State),
            ("state.pkl", b"(dp0\nS'epoch'\np1\n", State),
            ("model.json", b"{\"learner\":", Json),
            ("log.txt", b"{\"epoch\": 1}\n{\"epoch\": 2}\n", Json),
            ("metrics.jsonl", b"{\"epoch\": 1}\n", Text),
            ("test_error.tsv", b"iter\tLogloss\n0\t0.6\n", Text),
            ("train", "epoch 1: größer".as_bytes(), Text),
            ("train", &"epoch 1: ö".as_bytes()[..10], Text),
            ("events.out.tfevents.1700000000.host.77.0", &[24, 0, 0, 0, 0, 0, 0, 0], Log),
            ("run-abc.wandb", b":W&B\xe1\xbe\x00", Log),
            ("weights.bin", &[0, 0, 128, 63], Unknown),
            ("epoch_3", &[0xff, 0xfe, 1], Unknown),
        ];
        for (name, start, expected) in cases {
            assert_eq!(Beginning::of(start, Path::new(name)), expected, "{name}");
        }
    }
}
