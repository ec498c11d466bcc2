//! `trials.jsonl` has one line for each trial, and `trials.idx` has the offset of each line. So a runner reads its
//! parameters with one ranged read, however large the sweep is.
//!
//! The index is a sequence of little-endian 64-bit offsets: one for each line and one for the end.

use crate::SweepFile;
use spotsweep_protocol::claim::{ByteRange, TrialLine};
use spotsweep_protocol::ids::SweepId;

const ENTRY_BYTES: u64 = 8;

/// Returns the S3 key of the trials' parameters, `trials.jsonl`.
pub fn lines_key(sweep: &SweepId) -> String {
    format!("{}trials.jsonl", sweep.results_prefix())
}

/// Returns the S3 key of the index, `trials.idx`.
pub fn index_key(sweep: &SweepId) -> String {
    format!("{}trials.idx", sweep.results_prefix())
}

/// Returns the S3 key of the search space of a sweep whose parameters are suggested.
pub fn space_key(sweep: &SweepId) -> String {
    format!("{}space.json", sweep.results_prefix())
}

/// Returns the lines in order, made one at a time.
pub fn lines(file: &SweepFile) -> impl Iterator<Item = Result<Vec<u8>, serde_json::Error>> + '_ {
    (0..).zip(file.trials()).map(|(index, parameters)| {
        let mut line = serde_json::to_vec(&TrialLine { index, parameters })?;
        line.push(b'\n');
        Ok(line)
    })
}

/// Builds the index line by line.
#[derive(Debug, Default)]
pub struct Index {
    bytes: Vec<u8>,
    offset: u64,
}

impl Index {
    /// Adds the offset of one line.
    pub fn push(&mut self, line: &[u8]) {
        self.bytes.extend(self.offset.to_le_bytes());
        self.offset += line.len() as u64;
    }

    /// Returns the index's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend(self.offset.to_le_bytes());
        self.bytes
    }
}

/// Returns the first and last byte, inclusive, of a trial's two entries in the index.
pub fn entries_range(index: u32) -> (u64, u64) {
    let first = u64::from(index) * ENTRY_BYTES;
    (first, first + 2 * ENTRY_BYTES - 1)
}

/// Returns the range of a trial's line, from its two entries. `None` if they are incomplete or not in order.
pub fn line_range(sweep: &SweepId, bucket: &str, entries: &[u8]) -> Option<ByteRange> {
    let entry = |at: usize| Some(u64::from_le_bytes(entries.get(at..at + 8)?.try_into().ok()?));
    let (first_byte, next) = (entry(0)?, entry(8)?);
    Some(ByteRange { bucket: bucket.to_owned(), key: lines_key(sweep), first_byte, last_byte: next.checked_sub(1)? })
}
