//! What a run costs at most, before it starts.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::InstanceType;
use jiff::Timestamp;

use spotsweep_protocol::failure::{Context, Failure};

/// Of all instances together: four trainings of eight minutes, six boots with the image's pull of six minutes each,
/// and six idle times of five minutes are an hour and three quarters.
const INSTANCE_HOURS: f64 = 2.0;
/// One interruption of two action-minutes at 0.10 USD (<https://aws.amazon.com/fis/pricing/>).
const FIS_USD: f64 = 0.20;
/// Disks, addresses, volumes, the control plane and the recording, for two instance-hours: docs/costs.md has their
/// prices. Rounded up to a tenth of a dollar.
const REST_USD: f64 = 0.10;

/// What a run may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Of the dearest instance type in the dearest zone, USD an hour.
    pub(super) hourly_usd: f64,
    /// At most, in USD.
    pub(super) usd: f64,
}

impl Estimate {
    /// At an hourly price.
    pub(super) fn at(hourly_usd: f64) -> Self {
        Self { hourly_usd, usd: hourly_usd * INSTANCE_HOURS + FIS_USD + REST_USD }
    }

    /// Asks EC2 for today's Spot prices.
    pub(super) async fn of(client: &Client, instance_types: &[String]) -> Result<Self, Failure> {
        if let Some(family) = instance_types.iter().find(|name| !name.contains('.')) {
            return Err(Failure::usage(format!(
                "the queue's instances may be any of {family:?}, so no price is known; name a queue with instance types \
                 by --queue"
            )));
        }
        let types = instance_types.iter().map(|name| InstanceType::from(name.as_str())).collect();
        let history = client
            .describe_spot_price_history()
            .set_instance_types(Some(types))
            .product_descriptions("Linux/UNIX")
            .start_time(DateTime::from_secs(Timestamp::now().as_second()));
        let mut pages = history.into_paginator().send();
        let mut hourly_usd: Option<f64> = None;
        while let Some(page) = pages.next().await {
            let page = page.context(|| "cannot read the Spot prices (ec2:DescribeSpotPriceHistory)")?;
            let prices = page.spot_price_history().iter().filter_map(|price| price.spot_price()?.parse::<f64>().ok());
            hourly_usd = prices.chain(hourly_usd).reduce(f64::max);
        }
        let unknown = || Failure::new(format!("EC2 names no Spot price of {}", instance_types.join(", ")));
        hourly_usd.map(Self::at).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limit_is_enough_for_the_default_instance_types() {
        // g5.2xlarge on demand in us-east-1 is 1.212 USD; Spot is mostly half of that, or less.
        assert!(Estimate::at(0.7).usd < 2.0);
        assert!(Estimate::at(1.0).usd > 2.0);
    }
}
