//! What results are made from, and the results.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use spotsweep_control_plane::execute::Executed;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::results::cost::{Pool, Prices, SpotPrice};
use spotsweep_control_plane::results::inputs::{ReportInputs, Results, Wanted, last_lines};
use spotsweep_control_plane::results::report::curves;
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::trials;

use super::Cloud;

/// Prices in USD per hour, the same everywhere and always.
const SPOT_USD: f64 = 0.25;
const ON_DEMAND_USD: f64 = 1.0;

impl Cloud {
    /// As on AWS: only the parameters have to be there.
    pub(super) async fn gather(&self, wanted: Wanted, trials: Arc<[Trial]>) -> Executed {
        let parameters = self.get_object(&trials::lines_key(&wanted.sweep)).await?.ok_or("NoSuchKey")?;
        let file = self.get_object(&wanted.upload.key).await.ok().flatten();
        let mut gathered = ReportInputs {
            parameters,
            file: file.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            ..ReportInputs::default()
        };
        let object = |index, name| format!("{}{name}", wanted.sweep.trial_prefix(index));
        for index in &wanted.curves {
            if let Ok(Some(record)) = self.get_object(&object(*index, "metrics.jsonl")).await {
                gathered.curves.insert(*index, curves::read(&record, &wanted.metrics));
            }
        }
        for index in &wanted.logs {
            if let Ok(Some(log)) = self.get_object(&object(*index, "train.log")).await {
                gathered.logs.insert(*index, last_lines(&log));
            }
        }
        if !wanted.pools.is_empty() {
            let usd = |pool: &Pool| SpotPrice { pool: pool.clone(), from: Timestamp::UNIX_EPOCH, usd: SPOT_USD };
            let spot = self.calls.call("DescribeSpotPriceHistory", || wanted.pools.iter().map(usd).collect()).await;
            let list = || wanted.pools.iter().map(|pool| (pool.instance_type.clone(), ON_DEMAND_USD)).collect();
            let on_demand = self.calls.call("GetProducts", list).await;
            let charged = self.prices.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let flat = Prices::new(spot.unwrap_or_default(), on_demand.unwrap_or_default());
            gathered.prices = charged.unwrap_or(flat);
        }
        Ok(vec![Outcome::ReportInputs { sweep: wanted.sweep, trials, gathered: Arc::new(gathered) }])
    }

    pub(super) async fn publish(&self, sweep: SweepId, results: Results) -> Executed {
        let prefix = sweep.results_prefix();
        let report = serde_json::to_vec(&results.report)?;
        self.put_object(format!("{prefix}leaderboard.csv"), results.leaderboard.into_bytes()).await?;
        self.put_object(format!("{prefix}costs.json"), results.costs.into_bytes()).await?;
        self.put_object(format!("{prefix}report.html"), report).await?;
        if let Some(summary) = &results.summary {
            self.put_object(format!("{prefix}summary.json"), summary.clone().into_bytes()).await?;
        }
        Ok(vec![Outcome::ResultsPublished { sweep, summary: results.summary }])
    }
}
