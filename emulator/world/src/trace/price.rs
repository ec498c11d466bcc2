//! The recorded Spot prices of one zone.

use std::time::Duration;

/// First tick and USD per hour of each run of equal prices; empty if none was recorded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prices(Vec<(usize, f64)>);

impl Prices {
    /// Makes prices from runs. They must cover the trace from its start, be in order, and have a price.
    pub(super) fn new(runs: &[(usize, f64)]) -> Result<Self, String> {
        if runs.first().is_some_and(|(tick, _)| *tick != 0) {
            return Err("spot_price must begin with tick 0".into());
        }
        if let Some(pair) = runs.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(format!("spot_price: tick {} comes after tick {}", pair[1].0, pair[0].0));
        }
        match runs.iter().find(|(_, usd)| !usd.is_finite() || *usd < 0.0) {
            Some((tick, usd)) => Err(format!("spot_price of tick {tick} is {usd}: it must be USD per hour")),
            None => Ok(Self(runs.to_vec())),
        }
    }

    pub(super) fn since(&self, tick: Duration) -> impl Iterator<Item = (Duration, f64)> {
        self.0.iter().map(move |(first, usd)| (tick.mul_f64(*first as f64), *usd))
    }

    pub(super) fn dollars(&self, tick: Duration, from: Duration, until: Duration) -> Option<f64> {
        let starts = |(first, _): &(usize, f64)| tick.as_secs_f64() * *first as f64;
        let ends = self.0.iter().skip(1).map(starts).chain([f64::INFINITY]);
        let parts = self.0.iter().zip(ends).map(|(run, end)| {
            let seconds = until.as_secs_f64().min(end) - from.as_secs_f64().max(starts(run));
            run.1 * seconds.max(0.0) / 3600.0
        });
        (!self.0.is_empty()).then(|| parts.sum())
    }
}
