//! The costs of trials: each attempt's share of its instance at the price of that time, and the volume.
//!
//! Attempts that run on one instance at the same time share its price evenly. So all of them together cost what the
//! instance costs while any of them runs. Its boot, image pull and wait for the next trial belong to no trial, and are
//! not counted.

mod prices;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub use prices::{Pool, Prices, SpotPrice, is_in_dollars, pools};

use spotsweep_protocol::claim::Market;
use spotsweep_records::sweep::Plan;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::Workspace;

/// The prices of gp3 and of snapshots, in USD per GiB and month of 730 hours (fact 31).
const GP3_USD: f64 = 0.08;
const SNAPSHOT_USD: f64 = 0.05;
const HOURS_A_MONTH: f64 = 730.0;
/// S3 Standard, USD per GiB and month (fact 31).
pub const S3_USD: f64 = 0.023;
/// The price of a volume initialization rate of 300 MiB/s, in USD per GiB of snapshot data. Lower rates cost
/// proportionally less (fact 66).
const INITIALIZATION_USD: f64 = 0.0036;
const FASTEST_RATE: f64 = 300.0;

/// The price of the control plane for an attempt without its reports, and for one report, in USD, from what the bench
/// counts (docs/performance.md, "Its price"). A training that is older than 20 minutes has one report a minute.
const USD_AN_ATTEMPT: f64 = 0.000_05;
const USD_A_REPORT: f64 = 0.000_002;
const SECONDS_A_REPORT: f64 = 60.0;

/// What a trial has cost so far, over all its attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The trial's share of its instances, at the price that was paid, in USD.
    pub instance_usd: f64,
    /// The same seconds at the on-demand price, in USD.
    pub on_demand_usd: f64,
    /// The volume, the snapshots and the initialization rates, in USD. A snapshot counts as large as the newest seal.
    pub storage_usd: f64,
    /// The part of [`Cost::storage_usd`] for data that volumes loaded at a billed rate.
    pub initialization_usd: f64,
    /// The part of [`Cost::storage_usd`] for the snapshot that is kept after the trial's end, for the whole time.
    pub kept_usd: f64,
    /// Seconds of attempts without a known price. They are in none of the figures of instances.
    pub unpriced_seconds: f64,
}

impl Cost {
    /// Returns the sum for instances, volume and snapshots.
    pub fn usd(&self) -> f64 {
        self.instance_usd + self.storage_usd
    }
}

/// One attempt with its instance and its time.
struct Run<'a> {
    index: u32,
    instance: Option<&'a str>,
    pool: Option<Pool>,
    market: Market,
    from: Timestamp,
    until: Timestamp,
}

/// Returns what each trial has cost until `now`.
pub fn costs(plan: &Plan, trials: &[Trial], prices: &Prices, now: Timestamp) -> BTreeMap<u32, Cost> {
    let mut costs: BTreeMap<u32, Cost> = BTreeMap::new();
    let mut together: BTreeMap<(Option<&str>, u32), Vec<Run<'_>>> = BTreeMap::new();
    for trial in trials {
        for run in runs(trial, now) {
            // If the instance is not known, the trial counts as the only one on it.
            let alone = if run.instance.is_some() { u32::MAX } else { run.index };
            together.entry((run.instance, alone)).or_default().push(run);
        }
    }
    for runs in together.values() {
        share(runs, prices, &mut costs);
    }
    if let Some(workspace) = &plan.workspace {
        for trial in trials {
            let volume = f64::from(workspace.size_gib) * GP3_USD * held_hours(trial, now);
            let snapshots = sealed_gib(trial) * SNAPSHOT_USD * saved_hours(trial, now);
            let cost = costs.entry(trial.index).or_default();
            let a_gib = workspace.initialization_rate.map_or(0.0, initialization_usd_a_gib);
            cost.initialization_usd = initialized_gib(trial) * a_gib;
            cost.kept_usd = sealed_gib(trial) * SNAPSHOT_USD * kept_hours(trial) / HOURS_A_MONTH;
            cost.storage_usd = (volume + snapshots) / HOURS_A_MONTH + cost.initialization_usd + cost.kept_usd;
        }
    }
    costs
}

/// Returns the sum over all trials, with an estimate for the control plane.
pub fn spent(trials: &[Trial], costs: &BTreeMap<u32, Cost>) -> Spent {
    let attempts: usize = trials.iter().map(|trial| trial.attempts.len()).sum();
    let seconds: f64 = trials.iter().map(Trial::run_seconds).sum();
    let control_plane_usd = attempts as f64 * USD_AN_ATTEMPT + seconds / SECONDS_A_REPORT * USD_A_REPORT;
    let mut spent = Spent { control_plane_usd, ..Spent::default() };
    for cost in costs.values() {
        spent.usd += cost.instance_usd;
        spent.on_demand_usd += cost.on_demand_usd;
        spent.storage_usd += cost.storage_usd;
        spent.initialization_usd += cost.initialization_usd;
        spent.kept_usd += cost.kept_usd;
        spent.unpriced_seconds += cost.unpriced_seconds;
    }
    spent.usd += spent.storage_usd + spent.control_plane_usd;
    spent
}

fn runs(trial: &Trial, now: Timestamp) -> impl Iterator<Item = Run<'_>> {
    trial.attempts.iter().filter_map(move |(number, attempt)| {
        let is_open = !trial.is_over() && *number > trial.ended;
        let until = attempt.stopped_at.or(is_open.then_some(now))?;
        Some(Run {
            index: trial.index,
            instance: attempt.instance.as_deref(),
            pool: Pool::of(attempt),
            market: attempt.market.unwrap_or(Market::Spot),
            from: attempt.started_at.filter(|from| *from < until)?,
            until,
        })
    })
}

/// Divides the price of one instance among the attempts that ran on it. In each interval in which the same attempts
/// run, it is divided evenly.
fn share(runs: &[Run<'_>], prices: &Prices, costs: &mut BTreeMap<u32, Cost>) {
    let mut changes: Vec<Timestamp> = runs.iter().flat_map(|run| [run.from, run.until]).collect();
    changes.sort_unstable();
    changes.dedup();
    let mut waiting: Vec<&Run<'_>> = runs.iter().collect();
    waiting.sort_by_key(|run| std::cmp::Reverse(run.from));
    let mut running: Vec<&Run<'_>> = Vec::new();
    for slice in changes.windows(2) {
        running.retain(|run| run.until > slice[0]);
        while let Some(run) = waiting.pop_if(|run| run.from <= slice[0]) {
            running.push(run);
        }
        for run in &running {
            let cost = costs.entry(run.index).or_default();
            let of = running.len() as f64;
            let paid = run.pool.as_ref().and_then(|pool| prices.usd(pool, run.market, slice[0], slice[1]));
            let on_demand = run.pool.as_ref().and_then(|pool| prices.usd(pool, Market::OnDemand, slice[0], slice[1]));
            match paid {
                Some(usd) => cost.instance_usd += usd / of,
                None => cost.unpriced_seconds += slice[1].duration_since(slice[0]).as_secs_f64(),
            }
            cost.on_demand_usd += on_demand.filter(|_| paid.is_some()).unwrap_or(0.0) / of;
        }
    }
}

/// Returns the hours from the first attempt's start to the last one's end, which is about as long as the trial has a
/// volume.
fn held_hours(trial: &Trial, now: Timestamp) -> f64 {
    hours_since(trial.attempts.values().filter_map(|attempt| attempt.started_at).min(), trial, now)
}

/// Returns the hours from the first interruption to the trial's end, which is about as long as the trial has a
/// snapshot.
fn saved_hours(trial: &Trial, now: Timestamp) -> f64 {
    hours_since(trial.interruptions().filter_map(|(_, attempt)| attempt.stopped_at).min(), trial, now)
}

/// Returns the hours from the trial's end until its kept workspace is deleted.
fn kept_hours(trial: &Trial) -> f64 {
    let until = trial.workspace.as_ref().and_then(Workspace::kept).map(|kept| kept.until);
    let ended = trial.stopped_at().filter(|_| trial.is_over());
    ended.zip(until).map_or(0.0, |(ended, until)| until.duration_since(ended).as_secs_f64().max(0.0) / 3600.0)
}

/// Returns the price of a GiB of snapshot data that is loaded at `rate` MiB/s, in USD.
pub fn initialization_usd_a_gib(rate: u32) -> f64 {
    INITIALIZATION_USD * f64::from(rate) / FASTEST_RATE
}

/// Returns the most that a snapshot of one trial's whole volume costs in so many seconds, in USD.
pub fn most_kept_usd(size_gib: u32, seconds: u32) -> f64 {
    f64::from(size_gib) * SNAPSHOT_USD * f64::from(seconds) / 3600.0 / HOURS_A_MONTH
}

fn hours_since(from: Option<Timestamp>, trial: &Trial, now: Timestamp) -> f64 {
    let until = if trial.is_over() { trial.stopped_at() } else { Some(now) };
    let seconds = from.zip(until).map_or(0.0, |(from, until)| until.duration_since(from).as_secs_f64());
    seconds.max(0.0) / 3600.0
}

/// Returns the GiB that a snapshot adds to what the volume was made from, as the runner has reported them.
fn sealed_gib(trial: &Trial) -> f64 {
    let seal = trial.workspace.as_ref().and_then(|workspace| workspace.seal.as_ref());
    seal.map_or(0.0, |seal| gib(seal.bytes))
}

/// Returns the GiB of snapshot data that were loaded at a billed rate.
fn initialized_gib(trial: &Trial) -> f64 {
    trial.workspace.as_ref().map_or(0.0, |workspace| gib(workspace.initialized.bytes))
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

#[cfg(test)]
mod tests;
