//! Random numbers from one seed, in one stream. Each fault has its own number, so a run can be repeated without some
//! faults. Shrinking a failing seed needs that.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The random numbers of one run.
#[derive(Debug)]
pub(super) struct Rng {
    rng: ChaCha8Rng,
    strokes: u64,
    only: Option<BTreeSet<u64>>,
    is_calm: bool,
}

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), strokes: 0, only: None, is_calm: false }
    }

    /// A number from 0 to 1.
    pub(super) fn share(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }

    /// A number that is at least 0 and less than `among`.
    pub(super) fn choose(&mut self, among: usize) -> usize {
        usize::try_from(self.rng.next_u32()).unwrap_or(0) % among.max(1)
    }

    /// Whether a fault with this probability occurs.
    pub(super) fn occurs(&mut self, probability: f64) -> bool {
        if self.is_calm || probability <= 0.0 || self.share() >= probability {
            return false;
        }
        self.strokes += 1;
        self.only.as_ref().is_none_or(|only| only.contains(&(self.strokes - 1)))
    }

    /// Whether faults may still occur.
    pub(super) fn is_bad(&self) -> bool {
        !self.is_calm
    }

    /// Stops all faults from now on.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
    }

    /// Allows only the faults with these numbers, counted from 0.
    pub(super) fn only_faults(&mut self, strokes: BTreeSet<u64>) {
        self.only = Some(strokes);
    }

    /// The number of faults so far, including those that were left out.
    pub(super) fn strokes(&self) -> u64 {
        self.strokes
    }
}
