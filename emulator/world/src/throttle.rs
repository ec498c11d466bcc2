//! Request rate limits: token buckets as AWS documents them, and random throttling on demand.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{ApiError, Service, World};
use crate::rng::Rng;

/// A bucket's size, and how fast it refills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    burst: i64,
    per_second: i64,
}

/// The limit of SubmitJob: 50 calls a second per account (fact 18).
pub(super) const SUBMIT_JOB: Rate = Rate { burst: 50, per_second: 50 };
/// The limit of a Describe* call without filter, ids and page size (fact 23).
const UNBOUNDED: Rate = Rate { burst: 50, per_second: 10 };

/// Returns the limit of an EC2 action (fact 23); `None` for one that is not limited here.
fn ec2_rate(action: &str) -> Option<Rate> {
    match action {
        "CreateSnapshot" | "CreateVolume" | "DeleteVolume" | "DeleteSnapshot" => {
            Some(Rate { burst: 100, per_second: 5 })
        }
        "CreateTags" => Some(Rate { burst: 100, per_second: 10 }),
        "AttachVolume" | "DetachVolume" => Some(Rate { burst: 50, per_second: 5 }),
        describe if describe.starts_with("Describe") => Some(Rate { burst: 100, per_second: 20 }),
        _unlimited => None,
    }
}

/// A bucket's level, stored as the time at which it will be full.
#[derive(Debug, Default)]
pub(super) struct TokenBucket {
    full_at_micros: i64,
}

impl TokenBucket {
    /// Takes a token. Returns `false` if there is none.
    pub(super) fn take(&mut self, rate: Rate, now: Timestamp) -> bool {
        let now = now.as_microsecond();
        let micros_per_token = 1_000_000 / rate.per_second;
        let full_at = self.full_at_micros.max(now) + micros_per_token;
        let granted = full_at - now <= rate.burst * micros_per_token;
        if granted {
            self.full_at_micros = full_at;
        }
        granted
    }
}

/// The buckets of an account, and the random numbers for throttling.
#[derive(Debug)]
pub(super) struct Throttle {
    buckets: BTreeMap<String, TokenBucket>,
    rng: Rng,
}

impl Throttle {
    pub(super) fn new(seed: u64) -> Self {
        // The stream is not that of the ids, so that the same calls get the same ids with and without throttling.
        Throttle { buckets: BTreeMap::new(), rng: Rng::new(!seed) }
    }

    /// Returns a random number from 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.rng.unit()
    }
}

impl World {
    /// Whether a call is throttled before it has any effect.
    pub(super) fn is_throttled(&mut self, service: Service, action: &str) -> bool {
        let share = self.trouble.throttle_share.get(&service).copied().unwrap_or(0.0);
        let by_chance = share > 0.0 && self.throttle.rng.unit() < share;
        let rate = match service {
            Service::Ec2 if self.trouble.request_limits => ec2_rate(action),
            Service::Ec2 | Service::Batch | Service::Ecs | Service::Fis | Service::Quotas => None,
        };
        by_chance || rate.is_some_and(|rate| !self.take_token(action, rate))
    }

    /// Throttles a Describe* call for everything at once, which has a smaller bucket (fact 23).
    pub(super) fn check_unbounded(&mut self, action: &str) -> Result<(), ApiError> {
        let granted = !self.trouble.request_limits || self.take_token(&format!("{action} of everything"), UNBOUNDED);
        if granted { Ok(()) } else { Err(ApiError::throttled(Service::Ec2)) }
    }

    fn take_token(&mut self, name: &str, rate: Rate) -> bool {
        let now = self.now;
        self.throttle.buckets.entry(name.to_owned()).or_default().take(rate, now)
    }
}
