//! Rows that stand in two files of a folder: MMEngine writes each into `scalars.json` and into one that is named after the
//! time at which the training began.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::logged::Logged;

/// Rows that are known. What a longer training logs is reported twice.
const MOST_KNOWN: usize = 100_000;

/// By their hashes, the files in which rows were found first.
#[derive(Debug, Default)]
pub(crate) struct SameRows(HashMap<u64, u64>);

impl SameRows {
    /// Leaves out the rows that another file of this folder had. `place` are the folder and the file, as hashes.
    pub(crate) fn leave_out(&mut self, (folder, file): (u64, u64), rows: &mut Vec<Logged>) {
        rows.retain(|row| {
            let key = key(folder, row);
            if self.0.len() >= MOST_KNOWN && !self.0.contains_key(&key) {
                return true;
            }
            *self.0.entry(key).or_insert(file) == file
        });
    }
}

fn key(folder: u64, row: &Logged) -> u64 {
    let mut hasher = DefaultHasher::new();
    (folder, row.step.map(f64::to_bits)).hash(&mut hasher);
    for value in &row.values {
        (&value.name, value.value.to_bits()).hash(&mut hasher);
    }
    hasher.finish()
}
