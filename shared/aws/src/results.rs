//! S3 and the price sources: what a sweep's results are made from, and the results.

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use futures_util::FutureExt;

use super::lazy::{Lazy, lazy};
use super::s3::put;
use super::{gather, pages, prices};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::results::inputs::Results as Published;
use spotsweep_control_plane::results::report::Report;
use spotsweep_protocol::ids::SweepId;

/// Draws a report as a file of HTML.
pub type Page = fn(&Report) -> String;

/// Gathers, and publishes with reports drawn by `page`: only who gives it one holds the chart library in its binary.
pub fn results(config: &SdkConfig, page: Page) -> impl Service + use<> {
    Results { s3: lazy(config, Client::new), prices: lazy(config, prices::Clients::new), page }
}

#[derive(Debug)]
struct Results {
    s3: Lazy<Client>,
    prices: Lazy<prices::Clients>,
    page: Page,
}

impl Service for Results {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Gather { wanted, trials } => Ok(gather::gather(&self.s3, &self.prices, wanted, trials).boxed()),
            Command::StorePage { sweep, bucket, page, trials, has_ended } => {
                Ok(pages::store(&self.s3, (sweep, bucket), (page, has_ended), trials).boxed())
            }
            Command::ReadPages { sweep, bucket, pages } => Ok(pages::read(&self.s3, sweep, bucket, pages).boxed()),
            Command::PublishResults { sweep, bucket, results } => Ok(self.publish(sweep, bucket, *results).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

impl Results {
    async fn publish(&self, sweep: SweepId, bucket: String, results: Published) -> Executed {
        let (prefix, page) = (sweep.results_prefix(), (self.page)(&results.report));
        let objects = [
            ("leaderboard.csv", results.leaderboard, "text/csv"),
            ("costs.json", results.costs, "application/json"),
            ("report.html", page, "text/html; charset=utf-8"),
        ];
        for (name, body, content_type) in objects {
            put(&self.s3, &bucket, format!("{prefix}{name}"), body.into_bytes(), content_type).await?;
        }
        // The summary comes last: whoever waits for it finds everything else in place.
        if let Some(summary) = results.summary.clone() {
            let key = format!("{prefix}summary.json");
            put(&self.s3, &bucket, key, summary.into_bytes(), "application/json").await?;
        }
        Ok(vec![Outcome::ResultsPublished { sweep, summary: results.summary }])
    }
}
