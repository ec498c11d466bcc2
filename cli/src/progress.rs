//! Shows progress: a bar at a terminal, and a line every few seconds elsewhere.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use spotsweep_ranking::sets::Mean;
use spotsweep_ranking::{self as ranking, best, leader};
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::{Standing, Trial};

use crate::{out, show};
use spotsweep_protocol::words::{counted, rounded};

/// Time between two lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// The figures of a running sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Number of trials.
    pub(crate) trials: u64,
    /// Trials of which no container runs at present.
    pub(crate) waiting: u64,
    /// Trials with an instance, whose container does not run yet.
    pub(crate) starting: u64,
    /// Trials whose container runs.
    pub(crate) running: u64,
    /// Trials that have succeeded.
    pub(crate) succeeded: u64,
    /// Trials that have failed for good.
    pub(crate) failed: u64,
    /// Trials that a person has cancelled.
    pub(crate) cancelled: u64,
    /// Trials that were stopped early.
    pub(crate) stopped: u64,
    /// Instances by zone and state.
    pub(crate) instances: BTreeMap<String, BTreeMap<String, u64>>,
    /// The best of the trials that have succeeded.
    pub(crate) best: Option<Best>,
    /// The trial that still trains and is better so far.
    pub(crate) leader: Option<Best>,
}

/// The best trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Best {
    /// Name of the metric.
    pub(crate) metric: String,
    /// Value of the metric.
    pub(crate) value: f64,
    /// The trial's index.
    pub(crate) trial: u32,
    /// Mean of its parameter set, if the sweep has repeats.
    pub(crate) mean: Option<Mean>,
}

impl Best {
    /// The value by which it is the best. It is the mean of its set if the sweep has repeats.
    pub(crate) fn ranked_by(&self) -> f64 {
        self.mean.map_or(self.value, |mean| mean.mean)
    }

    /// Text such as `accuracy 0.5000`. For a set it adds over what the mean is.
    pub(crate) fn figure(&self) -> String {
        let Self { metric, value, mean, .. } = self;
        mean.map_or_else(|| format!("{metric} {}", rounded(*value, 4)), |mean| format!("{metric} {mean}"))
    }

    /// Text for a trial that still trains.
    pub(crate) fn so_far(&self) -> String {
        format!("trial {} leads so far: {}", self.trial, self.figure())
    }

    /// The trial as JSON. `key` is the name of the trial's index.
    pub(crate) fn json(&self, key: &str) -> Value {
        let mut json = json!({ key: self.trial, "metric": self.metric, "value": self.value });
        if let Some(mean) = self.mean {
            json["set"] = json!(mean);
        }
        json
    }
}

impl Figures {
    /// Counts trials, and finds the best one.
    pub(crate) fn of(plan: Option<&Plan>, trials: &[Trial]) -> Self {
        let shown = |best: ranking::Best<'_>| Best {
            metric: best.by.name,
            value: best.value,
            trial: best.trial.index,
            mean: best.set.map(|(_, mean)| mean),
        };
        let best = plan.and_then(|plan| best(plan, trials)).map(shown);
        let leader = plan.and_then(|plan| leader(plan, trials)).map(shown);
        Self { best, leader, ..Self::counts(plan.map_or(0, |plan| plan.trials.into()), trials) }
    }

    /// Counts trials. A trial without a record has had no event yet, so it waits.
    pub(crate) fn counts(total: u64, trials: &[Trial]) -> Self {
        let count = |wanted| trials.iter().filter(|trial| trial.standing() == wanted).count() as u64;
        let (starting, running) = (count(Standing::Starting), count(Standing::Running));
        let (succeeded, failed) = (count(Standing::Succeeded), count(Standing::Failed));
        let (cancelled, stopped) = (count(Standing::Cancelled), count(Standing::Stopped));
        Self {
            trials: total,
            waiting: total.saturating_sub(starting + running + succeeded + failed + cancelled + stopped),
            starting,
            running,
            succeeded,
            failed,
            cancelled,
            stopped,
            instances: BTreeMap::new(),
            best: None,
            leader: None,
        }
    }
}

impl Figures {
    fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.cancelled + self.stopped
    }

    /// Counts by state, instances by zone, and the best trial: one sentence each.
    fn sentences(&self) -> Vec<String> {
        let counts = [
            (self.waiting, "waiting"),
            (self.starting, "starting"),
            (self.running, "running"),
            (self.succeeded, "succeeded"),
            (self.failed, "failed"),
            (self.stopped, "stopped early"),
            (self.cancelled, "cancelled"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
        let zone = |(zone, states): (&String, &BTreeMap<String, u64>)| {
            let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
            format!("{zone} {}", states.join(" + "))
        };
        let zones: Vec<String> = self.instances.iter().map(zone).collect();
        let mut sentences = vec![format!("{}: {}", counted(self.trials, "trial"), counts.join(", "))];
        if !zones.is_empty() {
            sentences.push(format!("instances: {}", zones.join(", ")));
        }
        if let Some(best) = &self.best {
            sentences.push(format!("best {} (trial {})", best.figure(), best.trial));
        }
        if let Some(leader) = &self.leader {
            sentences.push(leader.so_far());
        }
        sentences
    }
}

impl Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentences().join(" | "))
    }
}

/// Shows figures as they come.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: Option<(Instant, Figures)>,
}

impl Progress {
    /// Starts with nothing shown.
    pub(crate) fn new(trials: u64) -> Self {
        let bar = out::notes_are_on_terminal().then(|| bar(trials));
        Self { bar, started: Instant::now(), shown: None }
    }

    /// Shows figures. Without a terminal it shows them only from time to time, and only when they have changed.
    pub(crate) fn show(&mut self, figures: &Figures) {
        if let Some(bar) = &self.bar {
            bar.set_position(figures.ended());
            message(bar, &figures.sentences());
            return;
        }
        let is_due = match &self.shown {
            None => true,
            Some((at, shown)) => shown != figures && (at.elapsed() >= LINE_EVERY || figures.ended() == figures.trials),
        };
        if is_due {
            out::note(format_args!("{:>4} s  {figures}", self.started.elapsed().as_secs()));
            self.shown = Some((Instant::now(), figures.clone()));
        }
    }
}

impl Progress {
    /// Prints a line, above the bar if there is one.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| out::note(format_args!("{line}"))),
            None => out::note(format_args!("{:>4} s  {line}", self.started.elapsed().as_secs())),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows downloaded bytes, if there is a terminal.
#[derive(Debug)]
pub(crate) struct Transfer(Option<ProgressBar>);

impl Transfer {
    /// Starts with 0 of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let style = ProgressStyle::with_template("{elapsed:>4} [{wide_bar}] {bytes}/{total_bytes} {eta}\n     {msg}");
        Self(out::notes_are_on_terminal().then(|| {
            let bar = ProgressBar::new(bytes);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        }))
    }

    /// Adds bytes that have arrived, which belong to this file.
    pub(crate) fn add(&mut self, bytes: u64, file: &str) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
            message(bar, &[file]);
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Lines under a bar. They contain names that others have chosen, and a terminal would obey control characters in them.
#[expect(clippy::disallowed_methods)]
fn message<T: Display>(bar: &ProgressBar, lines: &[T]) {
    let lines: Vec<String> = lines.iter().map(show::line).collect();
    bar.set_message(lines.join("\n     "));
}

/// A bar without colours, so that none have to be turned off.
fn bar(trials: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} [{wide_bar}] {pos}/{len}\n     {msg}");
    let bar = ProgressBar::new(trials);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;
    use spotsweep_records::trial::JobStatus;

    fn plan(more: &Value) -> Plan {
        let mut plan = json!({ "trials": 6, "queue": "q", "definition": "d:1", "attempts": 1, "parts": [],
            "metric": { "name": "accuracy", "maximize": true } });
        plan.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(plan).unwrap()
    }

    fn trial(index: u32, status: JobStatus, accuracy: Option<f64>) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        trial.status = status;
        if let Some(last) = accuracy {
            trial
                .metrics
                .insert("accuracy".into(), Metric { min: 0.0, max: 1.0, ..Metric::of(last, None, Source::Stated) });
        }
        trial
    }

    #[test]
    fn figures_read_as_a_person_would_say_them() {
        let trials = [
            trial(0, JobStatus::Succeeded, Some(0.5)),
            trial(1, JobStatus::Running, Some(0.75)),
            trial(2, JobStatus::Runnable, None),
            trial(3, JobStatus::Failed, Some(f64::NEG_INFINITY)),
        ];
        let plan = plan(&json!({}));
        let mut figures = Figures::of(Some(&plan), &trials);
        figures.instances.entry("us-east-1a".into()).or_default().insert("running".into(), 2);
        assert_eq!(
            figures.to_string(),
            "6 trials: 3 waiting, 1 running, 1 succeeded, 1 failed | instances: us-east-1a 2 running \
             | best accuracy 0.5000 (trial 0)"
        );
        assert_eq!(Figures::of(Some(&plan), &[]).to_string(), "6 trials: 6 waiting");
    }

    #[test]
    fn the_best_of_repeated_sets_is_shown_with_its_mean() {
        let plan = plan(&json!({ "repeats": { "parameter": "seed", "values": [1, 2], "sets": 3 } }));
        let ended = |index, accuracy| trial(index, JobStatus::Succeeded, Some(accuracy));
        let best = |trials: &[Trial]| Figures::of(Some(&plan), trials).best;
        assert_eq!(best(&[ended(0, 0.5), ended(1, 0.75)]), None, "of one result of two there is no mean");
        let found = best(&[ended(0, 0.75), ended(1, 1.0), ended(3, 0.5)]).unwrap();
        assert_eq!((found.figure().as_str(), found.trial), ("accuracy 0.6250 ± 0.1250 (mean of 2)", 0));
        assert_eq!((&found.json("trial")["set"]["results"], found.ranked_by()), (&json!(2), 0.625));
    }
}
