//! Chance: one stream of numbers from one seed, in which every stroke of bad luck has a number of its own. So a run
//! can be repeated without some of them, which is how a failing seed is made small.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The dice of one run.
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

    /// From 0 to 1.
    pub(super) fn share(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }

    /// One of so many, from 0.
    pub(super) fn choose(&mut self, among: usize) -> usize {
        usize::try_from(self.rng.next_u32()).unwrap_or(0) % among.max(1)
    }

    /// Whether something goes wrong that does with this probability.
    pub(super) fn occurs(&mut self, probability: f64) -> bool {
        if self.is_calm || probability <= 0.0 || self.share() >= probability {
            return false;
        }
        self.strokes += 1;
        self.only.as_ref().is_none_or(|only| only.contains(&(self.strokes - 1)))
    }

    /// Whether anything may still go wrong.
    pub(super) fn is_bad(&self) -> bool {
        !self.is_calm
    }

    /// Nothing goes wrong from now on.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
    }

    /// Only these strokes happen, by their number from 0.
    pub(super) fn only_faults(&mut self, strokes: BTreeSet<u64>) {
        self.only = Some(strokes);
    }

    /// How many strokes there were, with those that were left out.
    pub(super) fn strokes(&self) -> u64 {
        self.strokes
    }
}
