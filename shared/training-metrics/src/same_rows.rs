//! Removes rows that are in two files of a folder. MMEngine writes each row into `scalars.json` and into a file named
//! after the time at which the training began.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::logged::Logged;

/// The most rows that are remembered. Later rows of a longer training are reported twice.
const MOST_KNOWN: usize = 100_000;

/// The file in which each row was found first, by the row's hash.
#[derive(Debug, Default)]
pub(crate) struct SameRows(HashMap<u64, u64>);

impl SameRows {
    /// Removes the rows that another file of this folder had. The first argument has the hashes of the folder and of
    /// the file.
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
