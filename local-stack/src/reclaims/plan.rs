//! Plans the reclaims. The same number and seed give the same plan.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// How an instance is reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// With an interruption notice.
    Notice,
    /// Without a notice.
    Silent,
    /// With a rebalance recommendation, and a notice after it.
    Rebalance,
    /// All instances of a zone at once.
    Zone,
    /// While the trial's workspace moves to the instance.
    Migration,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Notice, Self::Silent, Self::Rebalance, Self::Zone, Self::Migration];

    /// The kind's name in summaries.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Silent => "silent",
            Self::Rebalance => "rebalance",
            Self::Zone => "zone",
            Self::Migration => "migration",
        }
    }
}

/// One planned reclaim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedReclaim {
    /// How.
    pub kind: Kind,
    /// Whether the instance gets a notice.
    pub notice: bool,
    /// The share of the trials that must have ended before it. After that, it happens as soon as a trial trains.
    pub after: f64,
    /// How long the zone gives no new instance afterwards. None if the zone has capacity left.
    pub blocks: Option<Duration>,
    /// Random number that picks one of the instances.
    pub pick: u64,
}

/// No reclaim is planned after this share of the trials, because a trial must still be training at the last one.
const LAST_AFTER: f64 = 0.6;
/// How long a zone has no capacity after a reclaim.
const BLOCKED: Duration = Duration::from_secs(3);
/// The same after the reclaim of the whole zone.
const ZONE_BLOCKED: Duration = Duration::from_secs(6);

/// Plans `count` reclaims in the order of time. Five or more contain every kind.
pub(crate) fn plan(count: u32, seed: u64) -> Vec<PlannedReclaim> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut kinds = Vec::new();
    while kinds.len() < count as usize {
        let mut all = Kind::ALL;
        shuffle(&mut all, &mut random);
        kinds.extend(all);
    }
    kinds.truncate(count as usize);
    let planned = |(number, kind)| {
        let jitter = unit(&mut random);
        let notice = match kind {
            Kind::Notice | Kind::Rebalance => true,
            Kind::Silent | Kind::Migration => false,
            Kind::Zone => unit(&mut random) < 0.5,
        };
        let blocks = match kind {
            Kind::Zone => Some(ZONE_BLOCKED),
            Kind::Notice | Kind::Silent | Kind::Rebalance | Kind::Migration => {
                (unit(&mut random) < 0.5).then_some(BLOCKED)
            }
        };
        let after = (f64::from(number) + jitter) / f64::from(count) * LAST_AFTER;
        PlannedReclaim { kind, notice, after, blocks, pick: random.next_u64() }
    };
    (0..count).zip(kinds).map(planned).collect()
}

/// Shuffles with the algorithm of Fisher and Yates.
fn shuffle(kinds: &mut [Kind], random: &mut ChaCha8Rng) {
    for end in (1..kinds.len()).rev() {
        kinds.swap(end, choose(random.next_u64(), end + 1));
    }
}

/// One of `of` indexes. `of` is small, so the bias of the remainder does not matter.
pub(crate) fn choose(random: u64, of: usize) -> usize {
    usize::try_from(random % of.max(1) as u64).unwrap_or(0)
}

fn unit(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_plan_is_its_seed_s_and_has_every_kind() {
        for count in [1, 4, 5, 12, 40] {
            for seed in 0..50 {
                let planned = plan(count, seed);
                assert_eq!((planned.len(), &planned), (count as usize, &plan(count, seed)));
                let kinds: BTreeSet<Kind> = planned.iter().map(|planned| planned.kind).collect();
                assert_eq!(kinds.len(), Kind::ALL.len().min(count as usize), "{count} {seed}");
                assert!(planned.is_sorted_by(|left, right| left.after <= right.after));
                assert!(planned.iter().all(|planned| (0.0..=LAST_AFTER).contains(&planned.after)));
            }
        }
        assert_ne!(plan(12, 1), plan(12, 2));
        assert_eq!(plan(0, 1), []);
    }
}
