//! Estimates before a run what it will cost, and at which cost it is ended.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_ec2::Client;

use super::sweep::Pace;
use crate::queue::spot_prices;
use spotsweep_protocol::failure::Failure;
use spotsweep_protocol::words::dollars;

/// Hours of all instances together: four trainings of fourteen minutes, six boots with image pull of six minutes each,
/// and six idle times of five minutes.
const EXPECTED_HOURS: f64 = 2.0;
/// Price of one interruption, which is two action-minutes at 0.10 USD (<https://aws.amazon.com/fis/pricing/>).
const FIS_USD: f64 = 0.20;
/// Disks, addresses, volumes, the control plane and the recording, rounded up to a tenth of a dollar. docs/costs.md has
/// their prices.
const REST_USD: f64 = 0.10;

/// What a run is expected to cost, and when it is ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// USD an hour of the most expensive instance type in the most expensive of the deployment's zones.
    pub(super) hourly_usd: f64,
    /// Expected cost in USD.
    pub(super) usd: f64,
    /// Time of all instances together after which the run ends its jobs, in hours of the pace.
    pub(super) most: Duration,
    /// Cost of that time in USD.
    pub(super) most_usd: f64,
}

impl Estimate {
    /// Estimates at an hourly price. A run is ended when its instances have used what `max_usd` pays for, or as much
    /// time as all attempts of all trials have together. That limits what starts and idle times add to the trainings.
    pub(super) fn at(hourly_usd: f64, max_usd: f64, pace: Pace) -> Self {
        let cost = |hours: f64| hourly_usd * hours + FIS_USD + REST_USD;
        let affordable = ((max_usd - FIS_USD - REST_USD) / hourly_usd).max(0.0);
        let hours = affordable.min(pace.most_training().as_secs_f64() / pace.hour.as_secs_f64());
        Self { hourly_usd, usd: cost(EXPECTED_HOURS), most: pace.hour.mul_f64(hours), most_usd: cost(hours) }
    }

    /// Asks EC2 for today's Spot prices in these zones. Fails if the run is expected to cost more than `max_usd`.
    pub(super) async fn of(
        client: &Client,
        instance_types: &[String],
        zones: &BTreeSet<String>,
        max_usd: f64,
        pace: Pace,
    ) -> Result<Self, Failure> {
        let highest = spot_prices(client, instance_types, zones).await?.highest;
        let estimate = Self::at(highest.usd, max_usd, pace);
        match estimate.beyond(max_usd, &highest.pool) {
            Some(too_much) => Err(Failure::usage(too_much)),
            None => Ok(estimate),
        }
    }

    /// A message if the price of this pool makes the run too expensive. It says what to pass then.
    fn beyond(&self, max_usd: f64, pool: &str) -> Option<String> {
        let Self { hourly_usd, usd, .. } = self;
        let (hourly, expected) = (dollars(*hourly_usd), dollars(*usd));
        let enough = (usd * 100.0).ceil() / 100.0;
        (*usd > max_usd).then(|| {
            format!(
                "the Spot price of {pool} is {hourly} an hour now, so a run is expected to cost {expected} \
                 ({EXPECTED_HOURS} instance-hours), more than --max-usd {max_usd}: pass --max-usd {enough:.2} or more, \
                 name a queue of cheaper instances by --queue, or wait for a lower price"
            )
        })
    }

    /// The estimate as a line for people.
    pub(super) fn line(&self) -> String {
        let Self { hourly_usd, usd, most_usd, .. } = self;
        let hours = (most_usd - FIS_USD - REST_USD) / hourly_usd;
        let (usd, hourly, most) = (dollars(*usd), dollars(*hourly_usd), dollars(*most_usd));
        format!(
            "a run is expected to cost {usd} ({EXPECTED_HOURS} instance-hours at {hourly}); it ends its jobs at \
             {hours:.1} instance-hours, {most}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limit_is_enough_for_the_default_instance_types() {
        // g5.2xlarge on demand in us-east-1 is 1.212 USD. Spot usually costs half of that, or less.
        assert!(Estimate::at(0.7, 2.0, Pace::AWS).usd < 2.0);
        assert!(Estimate::at(1.0, 2.0, Pace::AWS).usd > 2.0);
    }

    #[test]
    fn a_price_that_is_too_high_is_explained_with_what_to_pass() {
        let said = Estimate::at(1.234_567, 2.0, Pace::AWS).beyond(2.0, "g5.2xlarge in us-east-1b").unwrap();
        assert!(said.contains("g5.2xlarge in us-east-1b is $1.23 an hour"), "{said}");
        let (_, rest) = said.split_once("pass --max-usd ").unwrap();
        let enough: f64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(enough < 2.78 && Estimate::at(1.234_567, enough, Pace::AWS).beyond(enough, "").is_none(), "{said}");
    }

    /// The run never costs more than the limit, and never takes more time than all attempts have.
    #[test]
    fn a_run_ends_at_its_limit_or_when_its_attempts_are_used_up() {
        let expensive = Estimate::at(0.68, 2.0, Pace::AWS);
        assert!(
            (expensive.most_usd - 2.0).abs() < 1e-9 && expensive.most == Duration::from_secs(9_000),
            "{expensive:?}"
        );
        let cheap = Estimate::at(0.1, 2.0, Pace::AWS);
        assert_eq!(cheap.most, Pace::AWS.most_training());
        assert!(cheap.most_usd < 1.0, "{cheap:?}");
        assert_eq!(Estimate::at(0.1, 0.2, Pace::AWS).most, Duration::ZERO);
    }
}
