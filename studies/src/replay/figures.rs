//! What comes out: one line per policy, over all windows.

use serde_json::{Map, Value, json};
use spotsweep_records::sweep::spent::Spent;

use super::ledger::{Dollars, Outcome};
use super::{Plan, Policy};
use crate::table::Table;

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// The answer.
#[derive(Debug, Clone)]
pub struct Report {
    /// The windows, by name.
    pub windows: Vec<String>,
    /// One of each policy, in the order of [`Policy::ALL`].
    pub policies: Vec<Figures>,
    plan: Plan,
}

/// One policy over all windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Which.
    pub policy: Policy,
    /// From the dropped file to the last trial's end, mean over the windows. A window in which not all were done
    /// counts with its whole length: the truth is longer.
    pub makespan_hours: f64,
    /// Windows in which all trials were done.
    pub finished_windows: usize,
    /// Trials that were done.
    pub finished_trials: u32,
    /// Everything, in USD.
    pub usd: f64,
    /// By what it was paid for: name and USD.
    pub usd_of: [(&'static str, f64); 5],
    /// What the product itself says of it (`spotsweep cost`), where it ran and every window's sweep has ended.
    /// Instances count there from container to container, not from boot to idle, and what EC2 gives for free is paid.
    pub told: Option<Spent>,
    /// USD per hour of training that counts; absent where none does.
    pub usd_per_useful_hour: Option<f64>,
    /// Training that counts, as a share of the time of all instances from request to end.
    pub useful_share: Option<f64>,
    /// Attempts that lost their instance while their container ran.
    pub interruptions: u64,
    /// Training done again, per interruption.
    pub lost_seconds_per_interruption: Option<f64>,
    /// From an interruption until training goes on, without the time in which no zone had capacity.
    pub resume_delay_median_seconds: Option<f64>,
    /// Likewise, the 95th percentile.
    pub resume_delay_p95_seconds: Option<f64>,
    /// AWS API requests of everybody: functions, runners, scripts, parts of S3 objects.
    pub aws_calls: u64,
}

impl Figures {
    fn new(policy: Policy, outcomes: &[Outcome], trials: u32) -> Self {
        let sum = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>();
        let paid = |of: &dyn Fn(&Dollars) -> f64| outcomes.iter().map(|outcome| of(&outcome.usd)).sum::<f64>();
        let per = |amount: f64, of: f64| (of > 0.0).then(|| amount / of);
        let useful_seconds = sum(&|outcome| outcome.useful_seconds);
        let interruptions: u64 = outcomes.iter().map(|outcome| outcome.interruptions).sum();
        let mut delays: Vec<f64> = outcomes.iter().flat_map(|outcome| outcome.delays_seconds.clone()).collect();
        delays.sort_by(f64::total_cmp);
        let usd = paid(&Dollars::total);
        Self {
            policy,
            makespan_hours: sum(&|outcome| outcome.makespan_seconds) / outcomes.len().max(1) as f64 / HOUR,
            finished_windows: outcomes.iter().filter(|outcome| outcome.finished == trials).count(),
            finished_trials: outcomes.iter().map(|outcome| outcome.finished).sum(),
            usd,
            usd_of: [
                ("instances", paid(&|usd| usd.instances)),
                ("volumes", paid(&|usd| usd.volumes)),
                ("snapshots", paid(&|usd| usd.snapshots)),
                ("s3", paid(&|usd| usd.objects)),
                ("control_plane", paid(&|usd| usd.control_plane)),
            ],
            told: told(outcomes),
            usd_per_useful_hour: per(usd, useful_seconds / HOUR),
            useful_share: per(useful_seconds, sum(&|outcome| outcome.instance_seconds)),
            interruptions,
            lost_seconds_per_interruption: per(sum(&|outcome| outcome.lost_seconds), interruptions as f64),
            resume_delay_median_seconds: quantile(&delays, 0.5),
            resume_delay_p95_seconds: quantile(&delays, 0.95),
            aws_calls: outcomes.iter().map(|outcome| outcome.calls).sum(),
        }
    }

    /// Of the functions and their table, in USD.
    pub fn control_plane_usd(&self) -> f64 {
        self.usd_of.iter().filter(|(name, _)| *name == "control_plane").map(|(_, usd)| usd).sum()
    }

    fn json(&self) -> Value {
        let usd_of: Map<String, Value> =
            self.usd_of.iter().map(|(name, usd)| ((*name).to_owned(), json!(usd))).collect();
        json!({
            "name": self.policy.name(),
            "makespan_hours": self.makespan_hours,
            "finished_windows": self.finished_windows,
            "finished_trials": self.finished_trials,
            "usd": self.usd,
            "usd_of": usd_of,
            "told_usd": self.told.map(|spent| spent.usd),
            "usd_per_useful_hour": self.usd_per_useful_hour,
            "useful_share": self.useful_share,
            "interruptions": self.interruptions,
            "lost_seconds_per_interruption": self.lost_seconds_per_interruption,
            "resume_delay_median_seconds": self.resume_delay_median_seconds,
            "resume_delay_p95_seconds": self.resume_delay_p95_seconds,
            "aws_calls": self.aws_calls,
            "control_plane_usd": self.control_plane_usd(),
        })
    }

    fn row(&self, trials: usize) -> Vec<String> {
        let shown =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        vec![
            self.policy.name().to_owned(),
            format!("{}/{trials}", self.finished_trials),
            format!("{:.1}", self.makespan_hours),
            format!("{:.2}", self.usd),
            shown(self.usd_per_useful_hour, 3),
            shown(self.useful_share.map(|share| share * 100.0), 1),
            self.interruptions.to_string(),
            shown(self.lost_seconds_per_interruption, 0),
            format!("{} / {}", shown(self.resume_delay_median_seconds, 0), shown(self.resume_delay_p95_seconds, 0)),
            self.aws_calls.to_string(),
            format!("{:.2}", self.control_plane_usd()),
        ]
    }
}

impl Report {
    pub(super) fn new(plan: &Plan, windows: Vec<String>, runs: impl Iterator<Item = (Policy, Outcome)>) -> Self {
        let runs: Vec<(Policy, Outcome)> = runs.collect();
        let policies = Policy::ALL.map(|policy| {
            let outcomes = runs.iter().filter(|(of, _)| *of == policy).map(|(_, outcome)| outcome.clone());
            Figures::new(policy, &outcomes.collect::<Vec<_>>(), plan.trials)
        });
        Self { windows, policies: policies.into(), plan: plan.clone() }
    }

    /// One policy's figures.
    pub fn of(&self, policy: Policy) -> Option<&Figures> {
        self.policies.iter().find(|figures| figures.policy == policy)
    }

    /// The whole answer as one document.
    pub fn json(&self) -> Value {
        let model = &self.plan.parameters;
        json!({
            "windows": self.windows,
            "zones": self.plan.zones,
            "trials": self.plan.trials,
            "hours": self.plan.hours,
            "parameters": model.json(),
            "policies": self.policies.iter().map(Figures::json).collect::<Vec<_>>(),
        })
    }

    /// The table's header and rows, one row a policy.
    pub fn table(&self) -> Table {
        let header = [
            "policy",
            "done",
            "makespan h",
            "USD",
            "USD/useful h",
            "useful %",
            "interruptions",
            "lost s each",
            "resume s (median / p95)",
            "AWS calls",
            "control USD",
        ];
        let trials = self.windows.len() * self.plan.trials as usize;
        let rows = self.policies.iter().map(|figures| figures.row(trials));
        [header.map(str::to_owned).into()].into_iter().chain(rows).collect()
    }
}

/// Of all windows, where all have it.
fn told(outcomes: &[Outcome]) -> Option<Spent> {
    outcomes.iter().try_fold(Spent::default(), |sum, outcome| {
        let told = outcome.told?;
        Some(Spent {
            usd: sum.usd + told.usd,
            on_demand_usd: sum.on_demand_usd + told.on_demand_usd,
            storage_usd: sum.storage_usd + told.storage_usd,
            initialization_usd: sum.initialization_usd + told.initialization_usd,
            kept_usd: sum.kept_usd + told.kept_usd,
            control_plane_usd: sum.control_plane_usd + told.control_plane_usd,
            unpriced_seconds: sum.unpriced_seconds + told.unpriced_seconds,
        })
    })
}

/// The smallest value that at least such a share of all (in order) does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
