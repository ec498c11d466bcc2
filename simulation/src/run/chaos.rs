//! What goes wrong in a run.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

/// What goes wrong, as shares from 0 to 1 where not said otherwise.
#[derive(Debug, Clone)]
pub struct Chaos {
    /// Best-effort events (`aws.ec2`) that never arrive.
    pub lost: f64,
    /// Events that arrive twice.
    pub doubled: f64,
    /// Longest time that an event is under way; each takes another time, which changes their order.
    pub delay: Duration,
    /// Invocations that die at some call.
    pub killed: f64,
    /// The one fault point of the whole run at which an invocation dies, beside those by chance.
    pub killed_at: Option<usize>,
    /// EC2 calls that are throttled.
    pub throttled: f64,
    /// Mean time between two reclaims; none where absent.
    pub reclaim_every: Option<Duration>,
    /// Reclaims without a notice.
    pub unannounced: f64,
    /// Reclaims that take a whole zone, for some minutes.
    pub zone_wide: f64,
    /// The first so many reclaims only: what comes after must settle.
    pub most_reclaims: usize,
}

impl Chaos {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self {
            lost: 0.0,
            doubled: 0.0,
            delay: Duration::ZERO,
            killed: 0.0,
            killed_at: None,
            throttled: 0.0,
            reclaim_every: None,
            unannounced: 0.0,
            zone_wide: 0.0,
            most_reclaims: 0,
        }
    }

    /// Everything goes wrong.
    pub fn all() -> Self {
        Self {
            lost: 0.5,
            doubled: 0.3,
            delay: Duration::from_secs(40),
            killed: 0.1,
            killed_at: None,
            throttled: 0.1,
            reclaim_every: Some(Duration::from_secs(120)),
            unannounced: 0.4,
            zone_wide: 0.2,
            most_reclaims: 40,
        }
    }

    /// A mixture that the dice decide.
    pub(super) fn mixed(rng: &mut ChaCha8Rng) -> Self {
        let mut share = |most: f64| most * f64::from(rng.next_u32() % 5) / 4.0;
        Self {
            lost: share(1.0),
            doubled: share(0.5),
            delay: Duration::from_secs(60).mul_f64(share(1.0)),
            killed: share(0.2),
            killed_at: None,
            throttled: share(0.3),
            reclaim_every: Some(Duration::from_secs(90).mul_f64(1.0 + share(4.0))),
            unannounced: share(1.0),
            zone_wide: share(0.4),
            most_reclaims: 12,
        }
    }
}
