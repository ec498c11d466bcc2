//! Ids in AWS's form from a seeded generator. The same seed and the same calls give the same ids.

use crate::rng::Rng;

/// The indexes of a run within the World.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunRef {
    pub(crate) job: usize,
    pub(crate) index: usize,
}

/// The source of all ids in the World.
#[derive(Debug)]
pub(crate) struct Ids(Rng);

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Ids(Rng::new(seed))
    }

    /// Returns lower-case hex digits, at most 32.
    pub(crate) fn hex(&mut self, digits: usize) -> String {
        let both = format!("{:016x}{:016x}", self.0.next_u64(), self.0.next_u64());
        both.chars().take(digits).collect()
    }

    /// Returns an id in the form of the random UUIDs of Batch and EventBridge.
    pub(crate) fn uuid(&mut self) -> String {
        let h = self.hex(32);
        format!("{}-{}-4{}-a{}-{}", &h[..8], &h[8..12], &h[13..16], &h[17..20], &h[20..])
    }
}
