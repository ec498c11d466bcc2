//! The results: one line per policy, over all windows.

use serde_json::{Map, Value, json};
use spotsweep_records::sweep::spent::Spent;

use super::ledger::{Dollars, Outcome};
use super::{Plan, Policy};
use crate::table::Table;

const HOUR: f64 = 3600.0;

/// The results of a replay.
#[derive(Debug, Clone)]
pub struct Report {
    /// The names of the windows.
    pub windows: Vec<String>,
    /// The figures of each policy, in the order of [`Policy::ALL`].
    pub policies: Vec<Figures>,
    plan: Plan,
}

/// The figures of one policy over all windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// The policy.
    pub policy: Policy,
    /// The mean time over the windows from the drop of the file to the last trial's end. A window with unfinished
    /// trials counts with its whole length, so the true mean is longer.
    pub makespan_hours: f64,
    /// The windows in which all trials were done.
    pub finished_windows: usize,
    /// The trials that were done.
    pub finished_trials: u32,
    /// All costs, in USD.
    pub usd: f64,
    /// The costs by what is paid for: name and USD.
    pub usd_of: [(&'static str, f64); 5],
    /// The costs that the product itself computes (`spotsweep cost`), if every window's sweep has ended under it. They
    /// count instances from container to container, not from boot to idle, and include what EC2 gives for free.
    pub recorded: Option<Spent>,
    /// The USD per useful hour of training; absent without one.
    pub usd_per_useful_hour: Option<f64>,
    /// The useful training as a share of the time of all instances from request to end.
    pub useful_share: Option<f64>,
    /// The attempts that lost their instance while their container ran.
    pub interruptions: u64,
    /// The seconds of training that were repeated, per interruption.
    pub lost_seconds_per_interruption: Option<f64>,
    /// The median time from an interruption until the training goes on, without the time in which no zone had capacity.
    pub resume_delay_median_seconds: Option<f64>,
    /// The 95th percentile of that time.
    pub resume_delay_p95_seconds: Option<f64>,
    /// All AWS API requests: of functions, runners, and scripts, and for parts of S3 objects.
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
            recorded: recorded(outcomes),
            usd_per_useful_hour: per(usd, useful_seconds / HOUR),
            useful_share: per(useful_seconds, sum(&|outcome| outcome.instance_seconds)),
            interruptions,
            lost_seconds_per_interruption: per(sum(&|outcome| outcome.lost_seconds), interruptions as f64),
            resume_delay_median_seconds: quantile(&delays, 0.5),
            resume_delay_p95_seconds: quantile(&delays, 0.95),
            aws_calls: outcomes.iter().map(|outcome| outcome.calls).sum(),
        }
    }

    /// Returns the costs of the functions and their table, in USD.
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
            "recorded_usd": self.recorded.map(|spent| spent.usd),
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

    /// Returns the figures of a policy.
    pub fn of(&self, policy: Policy) -> Option<&Figures> {
        self.policies.iter().find(|figures| figures.policy == policy)
    }

    /// Returns the whole result as one document.
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

    /// Returns the table's header and rows, one row per policy.
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

/// Returns the sum of the recorded costs of all windows, if all have one.
fn recorded(outcomes: &[Outcome]) -> Option<Spent> {
    outcomes.iter().try_fold(Spent::default(), |sum, outcome| {
        let recorded = outcome.recorded?;
        Some(Spent {
            usd: sum.usd + recorded.usd,
            on_demand_usd: sum.on_demand_usd + recorded.on_demand_usd,
            storage_usd: sum.storage_usd + recorded.storage_usd,
            initialization_usd: sum.initialization_usd + recorded.initialization_usd,
            kept_usd: sum.kept_usd + recorded.kept_usd,
            control_plane_usd: sum.control_plane_usd + recorded.control_plane_usd,
            unpriced_seconds: sum.unpriced_seconds + recorded.unpriced_seconds,
        })
    })
}

/// Returns the smallest value that at least this share of all ordered values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
