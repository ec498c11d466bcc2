//! Which reclaims there will be: the same number and seed give the same plan.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// How an instance is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// With an interruption notice.
    Notice,
    /// Without a word.
    Silent,
    /// A rebalance recommendation, then the notice.
    Rebalance,
    /// Everything in a zone at once.
    Zone,
    /// While the trial's workspace is on its way to it.
    Migration,
}

impl Kind {
    /// All kinds.
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

/// One reclaim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Strike {
    /// How.
    pub kind: Kind,
    /// Whether EC2 says so before.
    pub notice: bool,
    /// When: as soon as this share of the trials has ended and a trial trains.
    pub after: f64,
    /// How long the zone then gives no new instance; absent where it has capacity left.
    pub blocks: Option<Duration>,
    /// Picks among the instances that may be hit.
    pub pick: u64,
}

/// The last trials are left to end in peace: a trial must still be training at the last reclaim.
const LAST_AFTER: f64 = 0.6;
/// How long a zone is without capacity.
const BLOCKED: Duration = Duration::from_secs(3);
/// The same where all of it was taken.
const ZONE_BLOCKED: Duration = Duration::from_secs(6);

/// `count` strikes in the order of their time; from five on, every kind is among them.
pub(crate) fn plan(count: u32, seed: u64) -> Vec<Strike> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut kinds = Vec::new();
    while kinds.len() < count as usize {
        let mut all = Kind::ALL;
        shuffle(&mut all, &mut random);
        kinds.extend(all);
    }
    kinds.truncate(count as usize);
    let strike = |(number, kind)| {
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
        Strike { kind, notice, after, blocks, pick: random.next_u64() }
    };
    (0..count).zip(kinds).map(strike).collect()
}

/// Fisher and Yates.
fn shuffle(kinds: &mut [Kind], random: &mut ChaCha8Rng) {
    for end in (1..kinds.len()).rev() {
        kinds.swap(end, choose(random.next_u64(), end + 1));
    }
}

/// One of `of` places; `of` is small, so the bias is not seen.
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
                let strikes = plan(count, seed);
                assert_eq!((strikes.len(), &strikes), (count as usize, &plan(count, seed)));
                let kinds: BTreeSet<Kind> = strikes.iter().map(|strike| strike.kind).collect();
                assert_eq!(kinds.len(), Kind::ALL.len().min(count as usize), "{count} {seed}");
                assert!(strikes.is_sorted_by(|left, right| left.after <= right.after));
                assert!(strikes.iter().all(|strike| (0.0..=LAST_AFTER).contains(&strike.after)));
            }
        }
        assert_ne!(plan(12, 1), plan(12, 2));
        assert_eq!(plan(0, 1), []);
    }
}
