//! Interruptions as decisions: compares ending an interrupted trial that others have passed with moving it.

use serde_json::{Value, json};
use spotsweep_world::trace::Trace;

use super::curves::{Curves, Study};
use super::ledger::Outcome;
use super::{Plan, Policy, ReplayError, Run, check, run_all};
use crate::table::Table;

const HOUR: f64 = 3600.0;

/// The same sweeps with and without decisions, over all windows.
#[derive(Debug, Clone)]
pub struct Decisions {
    /// The windows, by name.
    pub windows: Vec<String>,
    /// The sweeps in which every interrupted trial is moved.
    pub moved: Course,
    /// The sweeps in which an interrupted trial ends if others have passed it.
    pub ended: Course,
    plan: Plan,
}

/// The results of one of the two.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Trials that trained to their end.
    pub finished_trials: u32,
    /// Trials that were ended when they were interrupted.
    pub ended_trials: u32,
    /// All costs, in USD.
    pub usd: f64,
    /// The hours of instances, from request to end.
    pub instance_hours: f64,
    /// The mean hours until the last trial of a window had ended.
    pub makespan_hours: f64,
    /// The USD in all windows until the trial with the best final value had finished.
    pub usd_until_best: f64,
    /// The mean hours until then.
    pub hours_until_best: f64,
    /// The best final value of each window.
    pub best: Vec<f64>,
}

/// Replays windows twice, with and without decisions. Each trial has a learning curve of a task.
///
/// # Errors
/// Returns a [`ReplayError`] that states what to change.
pub fn decisions(plan: &Plan, curves: &Curves, windows: &[(String, Trace)]) -> Result<Decisions, ReplayError> {
    check(plan, windows)?;
    let mut runs = Vec::new();
    for ends in [false, true] {
        for (number, window) in windows.iter().enumerate() {
            let study = Some(curves.of_window(number, plan.trials, ends)?);
            runs.push(Run { window, policy: Policy::Spotsweep, study });
        }
    }
    let outcomes = run_all(plan, &runs)?;
    let mut courses = outcomes.chunks(windows.len()).zip(runs.chunks(windows.len())).map(|(outcomes, runs)| {
        let studies = runs.iter().filter_map(|run| run.study.as_ref());
        Course::new(&studies.zip(outcomes).collect::<Vec<_>>())
    });
    let none = || ReplayError::Asked("no window is left to replay".into());
    let (moved, ended) = (courses.next().ok_or_else(none)?, courses.next().ok_or_else(none)?);
    let windows = windows.iter().map(|(name, _)| name.clone()).collect();
    Ok(Decisions { windows, moved, ended, plan: plan.clone() })
}

/// Returns the finished trial with the best value: value, USD until then, seconds until then.
fn best(study: &Study, outcome: &Outcome) -> Option<(f64, f64, f64)> {
    let finishes = (0..).zip(&outcome.finishes);
    let finished = finishes.filter_map(|(trial, finish)| finish.map(|finish| (study.last(trial), finish)));
    let best = finished.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some((best.0, best.1.usd, best.1.seconds))
}

impl Course {
    fn new(outcomes: &[(&Study, &Outcome)]) -> Self {
        let sum = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(|(_, outcome)| of(outcome)).sum::<f64>();
        let windows = outcomes.len().max(1) as f64;
        let best: Vec<_> = outcomes.iter().filter_map(|(study, outcome)| best(study, outcome)).collect();
        Self {
            finished_trials: outcomes.iter().map(|(_, outcome)| outcome.finished).sum(),
            ended_trials: outcomes.iter().map(|(_, outcome)| outcome.ended).sum(),
            usd: sum(&|outcome| outcome.usd.total()),
            instance_hours: sum(&|outcome| outcome.instance_seconds) / HOUR,
            makespan_hours: sum(&|outcome| outcome.makespan_seconds) / windows / HOUR,
            usd_until_best: best.iter().map(|(_, usd, _)| usd).sum(),
            hours_until_best: best.iter().map(|(_, _, seconds)| seconds).sum::<f64>() / windows / HOUR,
            best: best.iter().map(|(value, _, _)| *value).collect(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "finished_trials": self.finished_trials,
            "ended_trials": self.ended_trials,
            "usd": self.usd,
            "instance_hours": self.instance_hours,
            "makespan_hours": self.makespan_hours,
            "usd_until_best": self.usd_until_best,
            "hours_until_best": self.hours_until_best,
            "best": self.best,
        })
    }

    fn row(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.finished_trials.to_string(),
            self.ended_trials.to_string(),
            format!("{:.2}", self.usd),
            format!("{:.0}", self.instance_hours),
            format!("{:.1}", self.makespan_hours),
            format!("{:.2}", self.usd_until_best),
            format!("{:.1}", self.hours_until_best),
            format!("{:.3}", self.best.iter().sum::<f64>() / self.best.len().max(1) as f64),
        ]
    }
}

impl Decisions {
    /// Returns the number of windows in which both find the same best value.
    pub fn same_best(&self) -> usize {
        self.moved.best.iter().zip(&self.ended.best).filter(|(moved, ended)| moved == ended).count()
    }

    /// Returns the whole result as one document.
    pub fn json(&self) -> Value {
        json!({
            "windows": self.windows,
            "zones": self.plan.zones,
            "trials": self.plan.trials,
            "hours": self.plan.hours,
            "parameters": self.plan.parameters.json(),
            "moved": self.moved.json(),
            "ended": self.ended.json(),
            "same_best": self.same_best(),
        })
    }

    /// Returns the table's header and its two rows.
    pub fn table(&self) -> Table {
        let header = [
            "interrupted trials",
            "finished",
            "ended",
            "USD",
            "instance h",
            "makespan h",
            "USD until best",
            "h until best",
            "best, mean",
        ];
        vec![header.map(str::to_owned).into(), self.moved.row("moved"), self.ended.row("moved or ended")]
    }
}
