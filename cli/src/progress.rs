//! The live view: a bar at a terminal, a line every few seconds anywhere else.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use spotsweep_control_plane::results::ranking::best;
use spotsweep_control_plane::sweep::Ranking;
use spotsweep_control_plane::trial::{Standing, Trial};

use crate::{out, show};
use spotsweep_protocol::words::counted;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(3);

/// What there is to see of a running sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Number of trials.
    pub(crate) trials: u64,
    /// Trials that nothing runs for yet, or again.
    pub(crate) waiting: u64,
    /// Trials with an instance, whose container does not run yet.
    pub(crate) starting: u64,
    /// Trials in training.
    pub(crate) running: u64,
    /// Trials that are done.
    pub(crate) succeeded: u64,
    /// Trials that have failed for good.
    pub(crate) failed: u64,
    /// Trials that a person cancelled.
    pub(crate) cancelled: u64,
    /// Trials that were stopped early.
    pub(crate) stopped: u64,
    /// Instances by zone and state.
    pub(crate) instances: BTreeMap<String, BTreeMap<String, u64>>,
    /// Metric name, its best value among the trials that have succeeded, and the trial that has it.
    pub(crate) best: Option<(String, f64, u32)>,
}

impl Figures {
    /// Counts trials; those without a record have had no event yet, so they wait.
    pub(crate) fn of(total: u64, trials: &[Trial], ranking: Option<&Ranking>) -> Self {
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
            best: ranking.and_then(|by| {
                let (trial, value) = best(by, trials)?;
                Some((by.name.clone(), value, trial.index))
            }),
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
        if let Some((name, value, index)) = &self.best {
            sentences.push(format!("best {name} {value:.4} (trial {index})"));
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

    /// Shows figures; without a terminal only now and then, and only when they have changed.
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
    /// Says something in between, above the bar where there is one.
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

/// Bytes on their way, where there is a terminal.
#[derive(Debug)]
pub(crate) struct Transfer(Option<ProgressBar>);

impl Transfer {
    /// Starts at none of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let style = ProgressStyle::with_template("{elapsed:>4} [{wide_bar}] {bytes}/{total_bytes} {eta}\n     {msg}");
        Self(out::notes_are_on_terminal().then(|| {
            let bar = ProgressBar::new(bytes);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        }))
    }

    /// So many more have arrived, with this file.
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

/// Lines beneath a bar. What others have named is in them, and a terminal would obey it.
#[expect(clippy::disallowed_methods)]
fn message<T: Display>(bar: &ProgressBar, lines: &[T]) {
    let lines: Vec<String> = lines.iter().map(show::line).collect();
    bar.set_message(lines.join("\n     "));
}

/// No colours: nothing to turn off.
fn bar(trials: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} [{wide_bar}] {pos}/{len}\n     {msg}");
    let bar = ProgressBar::new(trials);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::ids::{JobId, SweepId};
    use spotsweep_protocol::metric::{Metric, Source};

    use super::*;
    use spotsweep_control_plane::sweep::Over;
    use spotsweep_control_plane::trial::JobStatus;

    fn trial(index: u32, status: JobStatus, accuracy: Option<f64>) -> Trial {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
        trial.status = status;
        if let Some(last) = accuracy {
            trial
                .metrics
                .insert("accuracy".into(), Metric { last, step: None, min: 0.0, max: 1.0, source: Source::Stated });
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
        let ranking = Ranking { name: "accuracy".into(), maximize: true, over: Over::Last };
        let mut figures = Figures::of(6, &trials, Some(&ranking));
        figures.instances.entry("us-east-1a".into()).or_default().insert("running".into(), 2);
        assert_eq!(
            figures.to_string(),
            "6 trials: 3 waiting, 1 running, 1 succeeded, 1 failed | instances: us-east-1a 2 running \
             | best accuracy 0.5000 (trial 0)"
        );
        assert_eq!(Figures::of(6, &[], None).to_string(), "6 trials: 6 waiting");
    }
}
