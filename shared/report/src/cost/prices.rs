//! Spot and on-demand prices, from EC2 and the price list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use spotsweep_protocol::claim::Market;
use spotsweep_records::trial::{Attempt, Trial};

/// Instances of one type in one zone, which have one Spot price.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// Instance type, such as `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
}

impl Pool {
    /// Returns the pool of an attempt; `None` if its claim has not named it.
    pub fn of(attempt: &Attempt) -> Option<Self> {
        Some(Self { instance_type: attempt.instance_type.clone()?, zone: attempt.zone.clone()? })
    }
}

/// Returns the pools in which trials have run, and since when.
pub fn pools(trials: &[Trial]) -> (BTreeSet<Pool>, Option<Timestamp>) {
    let attempts = || trials.iter().flat_map(|trial| trial.attempts.values());
    (attempts().filter_map(Pool::of).collect(), attempts().filter_map(|attempt| attempt.started_at).min())
}

/// The Spot price of a pool from one time until its next price.
#[derive(Debug, Clone, PartialEq)]
pub struct SpotPrice {
    /// The pool.
    pub pool: Pool,
    /// The time from which the price holds.
    pub from: Timestamp,
    /// USD per hour.
    pub usd: f64,
}

/// Whether EC2 bills in US dollars in this zone. In the regions of China (partition `aws-cn`) it bills in yuan, and its
/// Spot prices have no currency.
pub fn is_in_dollars(zone: &str) -> bool {
    !zone.starts_with("cn-")
}

/// Spot prices by pool, and on-demand prices by instance type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    spot: BTreeMap<Pool, Vec<(Timestamp, f64)>>,
    on_demand: BTreeMap<String, f64>,
}

impl Prices {
    /// Makes prices from Spot prices in any order and on-demand prices by instance type, in USD per hour. Spot prices
    /// in another currency are left out, so that an attempt there has no known price.
    pub fn new(spot: Vec<SpotPrice>, on_demand: BTreeMap<String, f64>) -> Self {
        let mut by_pool: BTreeMap<Pool, Vec<(Timestamp, f64)>> = BTreeMap::new();
        for price in spot.into_iter().filter(|price| is_in_dollars(&price.pool.zone)) {
            by_pool.entry(price.pool).or_default().push((price.from, price.usd));
        }
        by_pool.values_mut().for_each(|prices| prices.sort_by_key(|(from, _)| *from));
        Self { spot: by_pool, on_demand }
    }

    /// Returns the USD for an instance over a time; `None` if no price is known. The first known Spot price also holds
    /// for the time before it, and the last one for the time after it.
    pub(super) fn usd(&self, pool: &Pool, market: Market, from: Timestamp, until: Timestamp) -> Option<f64> {
        let hours = |from: Timestamp, until: Timestamp| until.duration_since(from).as_secs_f64().max(0.0) / 3600.0;
        match market {
            Market::OnDemand => Some(self.on_demand.get(&pool.instance_type)? * hours(from, until)),
            Market::Spot => {
                let prices = self.spot.get(pool)?;
                let begins = |at: usize| if at == 0 { from } else { prices[at].0.max(from) };
                let ends = |at: usize| prices.get(at + 1).map_or(until, |(next, _)| (*next).min(until));
                let parts = (0..prices.len()).map(|at| prices[at].1 * hours(begins(at), ends(at)));
                Some(parts.sum())
            }
        }
    }
}
