//! Records the sweep's metric at the rungs at which trials are compared.
//!
//! The count of values goes back with the training: what an interrupted attempt has logged after the checkpoint is
//! logged again, and counts once. So each counted value is kept with its time, in the runner's own folder on the
//! workspace. A later attempt keeps the values that are older than the checkpoint from which it goes on. If that
//! checkpoint is not known, it counts from the beginning: a trial is then compared too late, never too early.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};

use serde::{Deserialize, Serialize};
use spotsweep_protocol::metric::Source;
use spotsweep_protocol::rungs::{Reached, Rung, RungPlan, Unit};

use crate::own_files::OwnFiles;

/// How many values are kept. A training that logs more often is compared late after an interruption.
const MOST_KEPT: usize = 200_000;

/// A value that counts, as it is written to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Counted {
    /// Seconds since 1970.
    time: f64,
    step: Option<f64>,
    value: f64,
    source: Source,
}

/// The metric's series so far, and the rungs that the trial has reached.
#[derive(Debug)]
pub(crate) struct Rungs {
    plan: RungPlan,
    source: Source,
    count: u64,
    best: f64,
    mean: f64,
    kept: usize,
    /// The largest step that an earlier attempt has logged: a value with this step or a smaller one is a repetition.
    before: f64,
    reached: Vec<Reached>,
    own: OwnFiles,
}

impl Rungs {
    /// Goes on from the values older than `until`, in seconds since 1970; for `None`, from the beginning.
    pub(crate) fn go_on(plan: RungPlan, own: OwnFiles, until: Option<f64>) -> io::Result<Self> {
        let mut rungs = Self {
            plan,
            source: Source::OfTraining,
            count: 0,
            best: f64::NAN,
            mean: 0.0,
            kept: 0,
            before: f64::NEG_INFINITY,
            reached: Vec::new(),
            own,
        };
        let series = match until {
            Some(until) => rungs.own.series()?.map_or(Ok(Vec::new()), |series| read(series, until))?,
            None => Vec::new(),
        };
        rungs.own.keep_series(&lines(&series))?;
        rungs.kept = series.len();
        let mut before = f64::NEG_INFINITY;
        for value in series {
            rungs.count(value);
            before = value.step.map_or(before, |step| step.max(before));
        }
        rungs.before = before;
        Ok(rungs)
    }

    /// Adds a value of the metric. Returns whether the trial has reached a rung.
    pub(crate) fn take(&mut self, time: f64, step: Option<f64>, value: f64, source: Source) -> io::Result<bool> {
        let is_repeated = step.is_some_and(|step| step <= self.before);
        if !value.is_finite() || !source.is_counted() || source < self.source || is_repeated {
            return Ok(false);
        }
        if source > self.source {
            // This is another series; the one so far was of a less reliable source.
            (self.source, self.count, self.best, self.mean, self.kept) = (source, 0, f64::NAN, 0.0, 0);
            self.own.keep_series(&[])?;
        }
        let value = Counted { time, step, value, source };
        let has_reached = self.count(value);
        if self.kept < MOST_KEPT {
            self.own.append_to_series(&lines(&[value]))?;
            self.kept += 1;
        }
        Ok(has_reached)
    }

    /// The next rung at which the trial is compared; `None` beyond the last one.
    pub(crate) fn next(&self) -> Option<u64> {
        let is_reached = |step: &u64| self.reached.iter().any(|reached| reached.step == *step);
        self.plan.steps.iter().copied().find(|step| !is_reached(step))
    }

    /// All rungs that the trial has reached.
    pub(crate) fn reached(&self) -> &[Reached] {
        &self.reached
    }

    fn count(&mut self, Counted { step, value, source, .. }: Counted) -> bool {
        self.source = source;
        self.count += 1;
        // A value replaces NaN.
        self.best = if self.plan.maximize { self.best.max(value) } else { self.best.min(value) };
        self.mean += (value - self.mean) / self.count as f64;
        let position = match self.plan.unit {
            Unit::Reports => self.count,
            // The cast saturates; a negative step is before every rung.
            Unit::Step => step.unwrap_or(0.0) as u64,
        };
        let rung = Rung { value, best: self.best, mean: self.mean };
        let known = self.reached.len();
        let is_new = |step: &u64| *step <= position && !self.reached.iter().any(|reached| reached.step == *step);
        if rung.is_usable() {
            let new: Vec<u64> = self.plan.steps.iter().copied().filter(is_new).collect();
            self.reached.extend(new.into_iter().map(|step| Reached { step, rung }));
        }
        self.reached.len() > known
    }
}

/// Reads the values that are not later than `until`. An unreadable line ends the series: values are written line by
/// line, so only the last line can be cut off.
fn read(series: impl Read, until: f64) -> io::Result<Vec<Counted>> {
    let mut values = Vec::new();
    for line in BufReader::new(series).lines() {
        match serde_json::from_str::<Counted>(&line?) {
            Ok(value) if value.time <= until => values.push(value),
            Ok(_later) => {}
            Err(_unfinished) => break,
        }
    }
    Ok(values)
}

fn lines(values: &[Counted]) -> Vec<u8> {
    let mut text = Vec::new();
    for value in values {
        // Neither writing to memory nor turning numbers and a word into JSON can fail.
        let _ = serde_json::to_writer(&mut text, value);
        let _ = text.write_all(b"\n");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn plan(unit: Unit, steps: &[u64]) -> RungPlan {
        RungPlan { unit, steps: steps.to_vec(), maximize: true }
    }

    fn steps(rungs: &Rungs) -> Vec<(u64, f64)> {
        rungs.reached().iter().map(|reached| (reached.step, reached.rung.value)).collect()
    }

    #[test]
    fn what_is_logged_again_after_an_interruption_counts_once() {
        for has_steps in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let own = OwnFiles::Temporary(folder.path().to_owned());
            let start = |until| Rungs::go_on(plan(Unit::Reports, &[3, 6, 9]), own.clone(), until).unwrap();
            let log = |rungs: &mut Rungs, epochs: std::ops::RangeInclusive<u32>, shift: f64| {
                for epoch in epochs {
                    let (time, step) = (f64::from(epoch) + shift, has_steps.then_some(f64::from(epoch)));
                    rungs.take(time, step, f64::from(epoch) / 10.0, Source::Text).unwrap();
                }
            };
            let mut first = start(None);
            log(&mut first, 1..=5, 0.0);
            assert_eq!(steps(&first), [(3, 0.3)], "no rung at 6 yet");
            // The second attempt starts from epoch 4 and repeats epoch 5; the third starts from epoch 7.
            let mut second = start(Some(4.5));
            log(&mut second, 5..=8, 100.0);
            assert_eq!(steps(&second), [(3, 0.3), (6, 0.6)]);
            let mut third = start(Some(107.5));
            log(&mut third, 8..=9, 200.0);
            assert_eq!(steps(&third), [(3, 0.3), (6, 0.6), (9, 0.9)]);
            let last = third.reached().last().unwrap().rung;
            assert!((last.mean - 0.5).abs() < 1e-9 && last.best == 0.9, "{last:?}");
            // A script that does not find its checkpoint starts over.
            let mut again = start(Some(208.5));
            log(&mut again, 1..=2, 300.0);
            assert_eq!(again.count, if has_steps { 8 } else { 10 });
            assert_eq!(again.next(), has_steps.then_some(9));
            let none = start(None);
            assert_eq!((none.count, none.next()), (0, Some(3)), "nothing to go on from");
        }
    }

    #[test]
    fn a_more_reliable_source_begins_another_series() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFiles::Temporary(folder.path().to_owned());
        let mut rungs = Rungs::go_on(plan(Unit::Reports, &[2]), own.clone(), None).unwrap();
        for (source, value, expected) in [
            (Source::ProgressBar, 0.9, false),
            (Source::ProgressBar, 0.9, false),
            (Source::Text, 0.1, false),
            (Source::Text, f64::NAN, false),
            (Source::Recorded, 0.2, false),
            (Source::Text, 0.9, false),
            (Source::Recorded, 0.3, true),
            (Source::Recorded, 0.4, false),
        ] {
            assert_eq!(rungs.take(1.0, None, value, source).unwrap(), expected, "{source:?} {value}");
        }
        assert_eq!(steps(&rungs), [(2, 0.3)]);
        assert_eq!(Rungs::go_on(plan(Unit::Reports, &[2]), own, Some(1.0)).unwrap().count, 3);
    }

    #[test]
    fn a_moving_average_alone_reaches_the_rungs() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFiles::Temporary(folder.path().to_owned());
        let mut rungs = Rungs::go_on(plan(Unit::Reports, &[2, 3]), own.clone(), None).unwrap();
        for (source, value, expected) in [
            (Source::OfTraining, 0.9, false),
            (Source::Smoothed, 0.1, false),
            (Source::Found, 0.9, false),
            (Source::ProgressBar, 0.9, false),
            (Source::Smoothed, 0.2, true),
        ] {
            assert_eq!(rungs.take(1.0, None, value, source).unwrap(), expected, "{source:?} {value}");
        }
        let mut next = Rungs::go_on(plan(Unit::Reports, &[2, 3]), own, Some(1.0)).unwrap();
        assert!(next.take(2.0, None, 0.3, Source::Smoothed).unwrap(), "it goes on from these values");
        assert_eq!(steps(&next), [(2, 0.2), (3, 0.3)]);
    }

    #[test]
    fn by_step_the_first_value_at_or_after_a_rung_counts() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnFiles::Temporary(folder.path().to_owned());
        let mut rungs = Rungs::go_on(plan(Unit::Step, &[10, 20, 30]), own, None).unwrap();
        for (step, value) in [(None, 0.9), (Some(-3.0), 0.9), (Some(9.0), 0.1), (Some(25.0), 0.2), (Some(30.0), 0.3)] {
            rungs.take(0.0, step, value, Source::Stated).unwrap();
        }
        assert_eq!(steps(&rungs), [(10, 0.2), (20, 0.2), (30, 0.3)]);
    }
}
