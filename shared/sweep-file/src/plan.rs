//! Which trials there are, and in which order.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::repeats::Repeats;
use super::search_space::SearchSpace;
use super::space::{Coordinate, Space};
use super::values::canonical;

/// The source of trials. Every candidate has a number, but not every candidate is a trial.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    List { trials: Vec<Map<String, Value>>, excluded: Vec<ListPattern>, first: Vec<ListPattern> },
    Grid(Space),
    Random { space: Space, seed: [u8; 32] },
    Bayes(Search),
}

/// The search of a sweep with `method: bayes`, which finds the parameters of its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The space that is searched.
    pub space: SearchSpace,
    /// The seed of its random choices, from `spotsweep: {seed: …}` or else from the version of the file.
    pub seed: [u8; 32],
}

/// The patterns' names, each with the canonical texts of its values.
pub(crate) type ListPattern = Vec<(String, HashSet<String>)>;

/// The trials of a file: the candidates in order that are trials.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) candidates: Candidates,
    /// The number of candidates to look at.
    pub(crate) limit: u64,
    /// The number of parameter sets. It is the number of trials if no set is repeated.
    pub(crate) count: u64,
    /// The random order in which candidates are visited, if there is one.
    pub(crate) shuffle: Option<Shuffle>,
    pub(crate) repeats: Option<Repeats>,
}

enum Candidate<'p> {
    Listed(&'p Map<String, Value>),
    Point(&'p Space, Vec<Coordinate>),
    Searched(&'p SearchSpace),
}

impl Plan {
    pub(crate) fn search(&self) -> Option<&Search> {
        match &self.candidates {
            Candidates::Bayes(search) => Some(search),
            Candidates::List { .. } | Candidates::Grid(_) | Candidates::Random { .. } => None,
        }
    }

    pub(crate) fn trial_count(&self) -> u64 {
        self.count * self.repeats.as_ref().map_or(1, |repeats| repeats.values.len() as u64)
    }

    pub(crate) fn trials(&self) -> impl Iterator<Item = Map<String, Value>> + '_ {
        let rounds = self.repeats.as_ref().map_or(1, |repeats| repeats.values.len());
        (0..).zip((0..rounds).flat_map(|_| self.sets())).map(|(index, mut parameters)| {
            if let Some(repeats) = &self.repeats {
                repeats.complete(index, &mut parameters);
            }
            parameters
        })
    }

    /// Returns the parameter sets in order.
    fn sets(&self) -> impl Iterator<Item = Map<String, Value>> + '_ {
        // It makes one pass for each `first` pattern and one for the rest. That is slower than storing the sets, but
        // the memory stays constant.
        let wanted = usize::try_from(self.count).unwrap_or(usize::MAX);
        (0..=self.candidates.first_patterns())
            .flat_map(move |rank| (0..self.limit).filter_map(move |number| self.trial(number, rank)))
            .take(wanted)
    }

    fn trial(&self, number: u64, rank: usize) -> Option<Map<String, Value>> {
        let number = self.shuffle.as_ref().map_or(number, |shuffle| shuffle.at(number));
        let candidate = self.candidates.at(number)?;
        (self.candidates.rank(&candidate) == rank).then(|| match candidate {
            Candidate::Listed(trial) => trial.clone(),
            Candidate::Point(space, point) => space.parameters(&point),
            Candidate::Searched(space) => space.constants(),
        })
    }
}

impl Candidates {
    fn at(&self, number: u64) -> Option<Candidate<'_>> {
        match self {
            Self::List { trials, excluded, .. } => {
                let trial = trials.get(usize::try_from(number).ok()?)?;
                (!excluded.iter().any(|pattern| meets(trial, pattern))).then_some(Candidate::Listed(trial))
            }
            Self::Grid(space) => space.grid_point(number).map(|point| Candidate::Point(space, point)),
            Self::Random { space, seed } => {
                space.random_point(*seed, number).map(|point| Candidate::Point(space, point))
            }
            Self::Bayes(search) => Some(Candidate::Searched(&search.space)),
        }
    }

    fn first_patterns(&self) -> usize {
        match self {
            Self::List { first, .. } => first.len(),
            Self::Grid(space) | Self::Random { space, .. } => space.first.len(),
            // The search chooses the order.
            Self::Bayes(_) => 0,
        }
    }

    fn rank(&self, candidate: &Candidate<'_>) -> usize {
        match (self, candidate) {
            (Self::List { first, .. }, Candidate::Listed(trial)) => {
                first.iter().position(|pattern| meets(trial, pattern)).unwrap_or(first.len())
            }
            (Self::Grid(space) | Self::Random { space, .. }, Candidate::Point(_, point)) => space.rank(point),
            (Self::List { .. } | Self::Grid(_) | Self::Random { .. } | Self::Bayes(_), _) => 0,
        }
    }

    /// Looks at candidates until `wanted` of them are trials or it has seen `limit`. Returns the number of trials and
    /// of candidates seen.
    pub(crate) fn survey(&self, wanted: u64, limit: u64) -> (u64, u64) {
        let mut trials = 0;
        for seen in 0..limit {
            if trials == wanted {
                return (trials, seen);
            }
            trials += u64::from(self.at(seen).is_some());
        }
        (trials, limit)
    }
}

fn meets(trial: &Map<String, Value>, pattern: &ListPattern) -> bool {
    pattern.iter().all(|(name, wanted)| trial.get(name).is_some_and(|value| wanted.contains(&canonical(value))))
}

/// Returns the seed of the generator, from the seed in the file or else from the version of the file.
pub(crate) fn seed(fixed: Option<i64>, version: &str) -> [u8; 32] {
    let text = match fixed {
        Some(seed) => format!("spotsweep seed {seed}"),
        None => format!("spotsweep version {version}"),
    };
    Sha256::digest(text).into()
}

/// A permutation of `0..size`, computed number by number. A Feistel network permutes the next power of four, and is
/// applied until the result is below `size`
/// (<https://en.wikipedia.org/wiki/Format-preserving_encryption#FPE_from_a_prefix_cipher>).
#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    size: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    pub(crate) fn new(size: u64, seed: [u8; 32]) -> Self {
        let mut keys = [0; 4];
        for (key, bytes) in keys.iter_mut().zip(seed.as_chunks::<8>().0) {
            *key = u64::from_le_bytes(*bytes);
        }
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        Self { size, half_bits: bits.div_ceil(2).max(1), keys }
    }

    fn at(&self, number: u64) -> u64 {
        let mut image = self.round_trip(number);
        // The loop ends: it follows one cycle of the network's permutation, and that cycle contains `number`, which is
        // below the size.
        while image >= self.size {
            image = self.round_trip(image);
        }
        image
    }

    fn round_trip(&self, number: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// Applies the finalizer of SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_that_its_seed_decides() {
        for size in [1_u64, 2, 3, 7, 24, 1000, 4097] {
            let order = |fixed| {
                let shuffle = Shuffle::new(size, seed(Some(fixed), ""));
                (0..size).map(|number| shuffle.at(number)).collect::<Vec<_>>()
            };
            let mut sorted = order(1);
            sorted.sort_unstable();
            assert_eq!(sorted, (0..size).collect::<Vec<_>>());
            assert_eq!(order(1), order(1));
            assert!(size < 24 || order(1) != order(2));
        }
    }
}
