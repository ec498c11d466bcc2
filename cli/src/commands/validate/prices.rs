//! Estimates what a sweep costs at today's Spot prices.

use aws_sdk_batch::types::CrType;
use serde::Serialize;
use spotsweep_protocol::failure::Failure;
use spotsweep_protocol::functions::CLAIM;
use spotsweep_protocol::words::dollars;
use spotsweep_sweep_file::expected::Expected;

use super::super::doctor::stack::Deployment;
use crate::queue::{self, Range};
use crate::show;
use crate::target::Target;

/// Today's Spot prices in the queue that a sweep would use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Prices {
    queue: String,
    #[serde(flatten)]
    range: Range,
}

/// USD at the lowest and at the highest price, for trials that have an instance each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Usd {
    trial_hours: f64,
    trial: [f64; 2],
    sweep: [f64; 2],
}

impl Prices {
    /// Prices of the queue that the sweep file names, or else of the deployment's own queue.
    pub(super) async fn find(target: &Target, deployment: &Deployment, queue: Option<String>) -> Result<Self, Failure> {
        let function = format!("{}{CLAIM}", deployment.prefix());
        let queue = queue::named(target, &function, queue, "SPOTSWEEP_QUEUE", "`queue` in the sweep file").await?;
        let mut resources = queue::resources(target, &queue).await?;
        resources.retain(|one| one.r#type() == Some(&CrType::Spot));
        if resources.is_empty() {
            return Err(Failure::new(format!("queue {queue} has no Spot instances")));
        }
        let zones = queue::zones(target, &resources).await?;
        let ec2 = aws_sdk_ec2::Client::new(&target.batch);
        let range = queue::spot_prices(&ec2, &queue::instance_types(&resources), &zones).await?;
        Ok(Self { queue, range })
    }

    /// What so many trials cost.
    pub(super) fn usd(&self, expected: &Expected, trials: u64) -> Usd {
        let hours = expected.billed_hours_with_checkpoints.unwrap_or(expected.billed_hours_without_checkpoints);
        let sweep = [&self.range.lowest, &self.range.highest].map(|price| price.usd * hours);
        Usd { trial_hours: expected.trial_hours, trial: sweep.map(|usd| usd / trials.max(1) as f64), sweep }
    }

    /// Text for people.
    pub(super) fn lines(&self, rows: &[Expected], trials: u64) -> String {
        let Range { lowest, highest } = &self.range;
        let (low, high) = (dollars(lowest.usd), dollars(highest.usd));
        let range = |[low, high]: [f64; 2]| format!("{} to {}", dollars(low), dollars(high));
        let mut text = format!(
            "Spot prices of queue {} now: {low} ({}) to {high} ({}) an hour. Expected, without EBS, with one trial on an \
             instance at a time:\n",
            self.queue, lowest.pool, highest.pool
        );
        for row in rows {
            let usd = self.usd(row, trials);
            let (trial, sweep) = (range(usd.trial), range(usd.sweep));
            text += &format!("  a trial of {}: {trial}; {trials} of them: {sweep}\n", show::hours(row.trial_hours));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Price;

    #[test]
    fn dollars_follow_from_the_hours_that_are_billed() {
        let price = |usd, pool: &str| Price { usd, pool: pool.to_owned() };
        let range =
            Range { lowest: price(0.16, "g4dn.xlarge in us-east-1a"), highest: price(0.4, "g5.xlarge in us-east-1b") };
        let prices = Prices { queue: "q".to_owned(), range };
        // An hour of training is 1.20 billed hours (docs/costs.md).
        let of = |has_workspace| prices.usd(&Expected::of(24, 10.0, None, has_workspace), 24);
        let with = of(true);
        assert!(
            (with.trial[0] - 11.97 * 0.16).abs() < 0.02 && (with.sweep[1] - 24.0 * 11.97 * 0.4).abs() < 0.2,
            "{with:?}"
        );
        assert!(of(false).trial[0] > 4.0 * with.trial[0], "without a workspace most of it is lost");
    }
}
