//! The inputs of a sweep's results besides its records, and the results.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;

use crate::cost::{self, Cost, Pool, Prices};
use crate::diagnosis::{Diagnosis, diagnose};
use crate::leaderboard::{leaderboard_csv, summary_json};
use crate::page::curves::Curve;
use crate::page::{MAX_FAILURES, MAX_LOG_LINES, MAX_ROWS, Report, Sources};
use crate::parameters::with_suggested;
use crate::warnings::{searched, warnings};
use spotsweep_protocol::claim::Preparation;
use spotsweep_protocol::ids::SweepId;
use spotsweep_ranking::ranked;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::{Standing, Trial};

/// The inputs that have to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The sweep.
    pub sweep: SweepId,
    /// The sweep file, which the report shows.
    pub upload: Upload,
    /// Trials whose `metrics.jsonl` is read.
    pub curves: Vec<u32>,
    /// Metrics that are read from these files.
    pub metrics: Vec<String>,
    /// Trials for which the end of `train.log` is read.
    pub logs: Vec<u32>,
    /// Pools whose prices are read.
    pub pools: BTreeSet<Pool>,
    /// The time from which prices are needed.
    pub since: Option<Timestamp>,
}

/// The inputs that were found. Only the parameters are always there.
#[derive(Debug, Default, PartialEq)]
pub struct ReportInputs {
    /// `trials.jsonl`.
    pub parameters: Vec<u8>,
    /// The sweep file's text.
    pub file: Option<String>,
    /// Curves by trial and metric.
    pub curves: BTreeMap<u32, BTreeMap<String, Curve>>,
    /// The last lines of trials' logs.
    pub logs: BTreeMap<u32, Vec<String>>,
    /// The prices that AWS has returned.
    pub prices: Prices,
}

/// The objects that are written under `results/<sweep>/`.
#[derive(Debug, Clone)]
pub struct Results {
    /// `leaderboard.csv`.
    pub leaderboard: String,
    /// `costs.json`.
    pub costs: String,
    /// The data of `report.html`.
    pub report: Report,
    /// `summary.json`, on one line; absent while the sweep has not ended.
    pub summary: Option<String>,
    /// What a person should know before trusting the results.
    pub warnings: Vec<String>,
}

impl Wanted {
    /// Returns the inputs for the results of a sweep in its present state.
    pub fn of(sweep: &Sweep, plan: &Plan, trials: &[Trial]) -> Self {
        let best = ranked(plan, trials).into_iter().take(MAX_ROWS).map(|ranked| ranked.trial);
        let failed = trials.iter().filter(|trial| trial.standing() == Standing::Failed);
        let (pools, since) = cost::pools(trials);
        Self {
            sweep: sweep.id.clone(),
            upload: sweep.upload.clone(),
            // An attempt uploads its `metrics.jsonl` when it ends.
            curves: best.filter(|trial| trial.end.is_some()).map(|trial| trial.index).collect(),
            metrics: Report::charted(plan, trials),
            logs: failed.take(MAX_FAILURES).map(|trial| trial.index).chain(searched(plan, trials)).collect(),
            pools,
            since,
        }
    }
}

impl ReportInputs {
    /// Hides the credentials in the code's URL, because Git and other programs print the URL or a part of it.
    fn logs_without_secrets(&self, plan: &Plan) -> BTreeMap<u32, Vec<String>> {
        let secrets = plan.preparation.as_ref().map(Preparation::credentials).unwrap_or_default();
        let hidden = |lines: &Vec<String>| lines.iter().map(|line| secrets.hide(line)).collect();
        self.logs.iter().map(|(index, lines)| (*index, hidden(lines))).collect()
    }

    /// Returns the results of a sweep in its present state, and what it has cost. There is a summary only once it has
    /// ended.
    ///
    /// # Errors
    /// Returns an error if the parameters are not the sweep's `trials.jsonl`.
    pub fn results(
        &self,
        sweep: &Sweep,
        plan: &Plan,
        trials: &[Trial],
        has_ended: bool,
        now: Timestamp,
    ) -> Result<(Results, Spent), csv::Error> {
        let costs = cost::costs(plan, trials, &self.prices, now);
        let spent = cost::spent(trials, &costs).or_known(sweep.spent);
        let logs = self.logs_without_secrets(plan);
        let diagnoses: BTreeMap<u32, Diagnosis> = trials
            .iter()
            .filter(|trial| matches!(trial.standing(), Standing::Failed | Standing::Cancelled))
            .map(|trial| {
                let log = logs.get(&trial.index).cloned().unwrap_or_default();
                (trial.index, diagnose(trial, log))
            })
            .collect();
        let warned = warnings(plan, trials, &logs, now);
        let warnings: Vec<String> = warned.into_iter().map(|warned| warned.text).collect();
        let parameters = with_suggested(&self.parameters, trials);
        let report = Report::of(&Sources {
            sweep,
            plan,
            trials,
            parameters: &parameters,
            file: self.file.as_deref(),
            curves: &self.curves,
            costs: &costs,
            control_plane_usd: Some(spent.control_plane_usd),
            diagnoses: &diagnoses,
            warnings: &warnings,
            now,
        });
        let results = Results {
            leaderboard: leaderboard_csv(plan, trials, &parameters, &costs, &diagnoses)?,
            costs: costs_json(sweep, &costs, &spent, now),
            report,
            summary: has_ended
                .then(|| summary_json(sweep, plan, trials, &parameters, &spent, &warnings))
                .transpose()?,
            warnings,
        };
        Ok((results, spent))
    }
}

/// Returns the last lines of a log whose end was read.
pub fn last_lines(end: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_LOG_LINES)..].iter().copied().map(str::to_owned).collect()
}

fn costs_json(sweep: &Sweep, costs: &BTreeMap<u32, Cost>, spent: &Spent, now: Timestamp) -> String {
    let trial = |(index, cost): (&u32, &Cost)| {
        json!({
            "index": index,
            "instance_usd": cost.instance_usd,
            "on_demand_usd": cost.on_demand_usd,
            "storage_usd": cost.storage_usd,
            "initialization_usd": cost.initialization_usd,
            "unpriced_seconds": cost.unpriced_seconds,
        })
    };
    let document = json!({
        "sweep": sweep.id.as_str(),
        "at": now,
        "spent": spent,
        "saving": spent.saving(),
        "trials": costs.iter().map(trial).collect::<Vec<_>>(),
        "basis": "Instances: each attempt from its container's start to its end, at the spot price of its zone at the \
            time, divided evenly among attempts on one instance at the same time; without boot, image pull and idle \
            time. Storage: gp3 at 0.08 USD a GiB and month from the first attempt to the last, and from the first \
            interruption on snapshots of what was sealed last at 0.05, and volumes that were loaded at an \
            initialization rate at 0.0036 USD a GiB of the snapshot's data at 300 MiB/s, proportional to the rate. Control \
            plane: estimated. S3, logs and data transfer are not in it. Prices of regions of China are not in USD, so attempts \
            there have no known price.",
    });
    document.to_string()
}
