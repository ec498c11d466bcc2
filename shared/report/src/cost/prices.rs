//! Spot and on-demand prices, as EC2 and the price list tell them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use spotsweep_protocol::claim::Market;
use spotsweep_records::trial::{Attempt, Trial};

/// Instances of one type in one zone: what a spot price is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// Instance type, such as `g5.xlarge`.
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
}

impl Pool {
    /// Where an attempt ran, if it has told.
    pub fn of(attempt: &Attempt) -> Option<Self> {
        Some(Self { instance_type: attempt.instance_type.clone()?, zone: attempt.zone.clone()? })
    }
}

/// The pools in which trials have run, and since when.
pub fn pools(trials: &[Trial]) -> (BTreeSet<Pool>, Option<Timestamp>) {
    let attempts = || trials.iter().flat_map(|trial| trial.attempts.values());
    (attempts().filter_map(Pool::of).collect(), attempts().filter_map(|attempt| attempt.started_at).min())
}

/// The spot price of a pool from a moment on, until the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct SpotPrice {
    /// The pool.
    pub pool: Pool,
    /// From when on.
    pub from: Timestamp,
    /// USD per hour.
    pub usd: f64,
}

/// Whether EC2 bills in US dollars there. In the regions of China (partition `aws-cn`) it bills in yuan, and tells its
/// Spot prices without a currency.
pub fn is_in_dollars(zone: &str) -> bool {
    !zone.starts_with("cn-")
}

/// Prices by pool and by type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    spot: BTreeMap<Pool, Vec<(Timestamp, f64)>>,
    on_demand: BTreeMap<String, f64>,
}

impl Prices {
    /// In any order; USD per hour, on demand by instance type. Spot prices in another currency are left out: an attempt
    /// without a price is said to have none.
    pub fn new(spot: Vec<SpotPrice>, on_demand: BTreeMap<String, f64>) -> Self {
        let mut by_pool: BTreeMap<Pool, Vec<(Timestamp, f64)>> = BTreeMap::new();
        for price in spot.into_iter().filter(|price| is_in_dollars(&price.pool.zone)) {
            by_pool.entry(price.pool).or_default().push((price.from, price.usd));
        }
        by_pool.values_mut().for_each(|prices| prices.sort_by_key(|(from, _)| *from));
        Self { spot: by_pool, on_demand }
    }

    /// USD for an instance over a span; absent where no price is known. Before the first known spot price, that one
    /// holds; after the last, the last.
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
