//! S3 and the price sources: gathers the inputs of a sweep's results, and publishes the results.

use super::objects::{JSON, put};
use super::prices::PriceSources;
use super::{Executed, Service, Taken, gather, pages};
use crate::calls::{Ec2, Pricing, S3};
use crate::command::Command;
use crate::outcome::Outcome;
use spotsweep_protocol::ids::SweepId;
use spotsweep_report::inputs::Results as Published;
use spotsweep_report::page::render;

/// Returns the service that gathers the inputs of results, with the prices of a region, and publishes the results.
pub fn results(s3: impl S3, (ec2, list, region): (impl Ec2, impl Pricing, String)) -> impl Service {
    Results { s3, prices: PriceSources { ec2, list, region } }
}

#[derive(Debug)]
struct Results<S, C, P> {
    s3: S,
    prices: PriceSources<C, P>,
}

impl<S: S3, C: Ec2, P: Pricing> Service for Results<S, C, P> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let s3 = &self.s3;
        Ok(match *command {
            Command::Gather { wanted, trials } => Box::pin(gather::gather(s3, &self.prices, wanted, trials)),
            Command::StorePage { sweep, bucket, page, trials, has_ended } => {
                Box::pin(pages::store(s3, (sweep, bucket), (page, has_ended), trials))
            }
            Command::ReadPages { sweep, bucket, pages } => Box::pin(pages::read_all(s3, sweep, bucket, pages)),
            Command::PublishResults { sweep, bucket, results } => Box::pin(self.publish(sweep, bucket, *results)),
            other => return Err(Box::new(other)),
        })
    }
}

impl<S: S3, C: Ec2, P: Pricing> Results<S, C, P> {
    async fn publish(&self, sweep: SweepId, bucket: String, results: Published) -> Executed {
        let (prefix, page) = (sweep.results_prefix(), render(&results.report));
        let objects = [
            ("leaderboard.csv", results.leaderboard, "text/csv"),
            ("costs.json", results.costs, JSON),
            ("report.html", page, "text/html; charset=utf-8"),
        ];
        for (name, body, content_type) in objects {
            put(&self.s3, &bucket, format!("{prefix}{name}"), body.into_bytes(), content_type).await?;
        }
        // The summary is written last, so that whoever waits for it finds everything else.
        if let Some(summary) = results.summary.clone() {
            put(&self.s3, &bucket, format!("{prefix}summary.json"), summary.into_bytes(), JSON).await?;
        }
        Ok(vec![Outcome::ResultsPublished { sweep, summary: results.summary }])
    }
}
