//! A user's training script: it computes, saves checkpoints as its habits say, and loads the newest one at its start.

pub(super) mod content;
pub(super) mod habits;
pub(super) mod load;
pub(super) mod processes;
mod save;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_world::ebs::FileSystem;

use self::habits::{Habits, OnSignal};
use self::save::Write;

/// Steps of an epoch. A checkpoint's name has the number of completed steps.
pub(super) const STEPS: u32 = 10;

/// Exit code of a process that SIGTERM has ended: 128 plus the signal's number.
const SIGTERM_CODE: i32 = 143;

/// The process of one training.
#[derive(Debug, Clone)]
pub(super) struct Training {
    habits: Habits,
    trial: u32,
    /// Identifies the attempt in what it saves, because a training on a GPU is not deterministic: another attempt
    /// computes different numbers for the same step. It is 0 for trials with an even index, which are deterministic.
    run: u32,
    /// Steps of the whole training.
    total: u32,
    epoch: Duration,
    /// Completed steps, all of them saved or loaded.
    pub(super) step: u32,
    phase: Phase,
    /// The remaining writes of the current save, each with its time.
    writes: VecDeque<(Timestamp, Write)>,
    /// The file that is open for writing.
    open: Option<String>,
    /// The exit code with which it ends after the current save.
    ends_with: Option<i32>,
    /// Whether it stalls after its next save, unless that is its last one.
    hangs: bool,
    helper_has_ended: bool,
}

/// What the training is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Computing {
        since: Timestamp,
    },
    /// `at` is the time of the last write.
    Saving {
        step: u32,
        at: Timestamp,
    },
    /// It waits forever and does not react to a signal.
    Hanging,
    Ended {
        code: i32,
    },
}

impl Training {
    /// Starts after `step`, the step of its newest checkpoint.
    pub(super) fn start(habits: Habits, trial: u32, step: u32, epochs: u32, epoch: Duration, now: Timestamp) -> Self {
        let total = epochs * STEPS;
        let phase = if step >= total { Phase::Ended { code: 0 } } else { Phase::Computing { since: now } };
        let run = if trial.is_multiple_of(2) { 0 } else { u32::try_from(now.as_second()).unwrap_or(u32::MAX) };
        Self {
            habits,
            trial,
            run,
            total,
            epoch,
            step,
            phase,
            writes: VecDeque::new(),
            open: None,
            ends_with: None,
            hangs: false,
            helper_has_ended: false,
        }
    }

    /// Makes it stall after its next save.
    pub(super) fn hang(&mut self) {
        self.hangs = true;
    }

    /// Whether it hangs.
    pub(super) fn hangs(&self) -> bool {
        matches!(self.phase, Phase::Hanging)
    }

    /// Advances the training to `now`.
    pub(super) fn advance(&mut self, files: &mut FileSystem, now: Timestamp) {
        loop {
            match self.phase {
                Phase::Ended { .. } | Phase::Hanging => return,
                Phase::Computing { since } => {
                    let done = since + self.until_next_epoch();
                    if done > now {
                        return;
                    }
                    let step = (self.step / STEPS + 1) * STEPS;
                    self.begin_save(files, step.min(self.total), done);
                }
                Phase::Saving { step, at } => match self.writes.front() {
                    Some((next, _)) if *next > now => return,
                    Some(_) => self.write_next(files, step),
                    None => self.end_save(step, at),
                },
            }
        }
    }

    fn until_next_epoch(&self) -> Duration {
        let left = STEPS - self.step % STEPS;
        self.epoch * left / STEPS
    }

    fn begin_save(&mut self, files: &FileSystem, step: u32, at: Timestamp) {
        let writes = save::writes(&self.habits, self.trial, (step, self.run), files);
        let between = self.habits.save / u32::try_from(writes.len()).unwrap_or(1);
        let times = (0..).map(|number| at + between * number);
        self.writes = times.zip(writes).collect();
        self.phase = Phase::Saving { step, at };
    }

    fn write_next(&mut self, files: &mut FileSystem, step: u32) {
        let Some((at, write)) = self.writes.pop_front() else { return };
        let now_ns = nanoseconds(at);
        match write {
            Write::Open(path, opened) => {
                files.open(&path, opened, now_ns);
                self.open = Some(path);
            }
            Write::Bytes(path, offset, bytes) => files.write(&path, offset, &bytes, now_ns),
            Write::Close => self.open = None,
            Write::Rename(from, to) => {
                files.rename(&from, &to);
            }
            Write::Link(link, target) => files.symbolic_link(&link, &target),
            Write::Remove(path) => {
                files.remove(&path);
            }
        }
        self.phase = Phase::Saving { step, at };
    }

    fn end_save(&mut self, step: u32, at: Timestamp) {
        self.step = step;
        self.phase = match self.ends_with {
            Some(code) => Phase::Ended { code },
            None if step >= self.total => Phase::Ended { code: 0 },
            None if self.hangs => Phase::Hanging,
            None => Phase::Computing { since: at },
        };
    }

    /// The step that it saves if the stop signal arrives now, and when that save ends. `None` if it saves nothing at
    /// the signal.
    pub(super) fn saves_at_signal(&self, now: Timestamp) -> Option<(u32, Timestamp)> {
        self.code_at_signal()?;
        match self.phase {
            Phase::Ended { .. } | Phase::Hanging => None,
            Phase::Saving { step, .. } if self.habits.abandons_save => {
                Some(((step + 1).min(self.total - 1).max(step), now + self.habits.save))
            }
            // It handles the signal after the save.
            Phase::Saving { step, .. } => Some((step, self.writes.back().map_or(now, |(at, _)| *at))),
            Phase::Computing { since } => {
                let share = Duration::try_from(now.duration_since(since)).unwrap_or_default().as_secs_f64()
                    / self.until_next_epoch().as_secs_f64();
                let left = STEPS - self.step % STEPS;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few steps")]
                let done = (f64::from(left) * share) as u32;
                let finishes = self.habits.on_signal == OnSignal::Finishes && self.step + left >= self.total;
                let step = if finishes { self.total } else { self.step + done.clamp(1, left.max(2) - 1) };
                Some((step, now + self.habits.save))
            }
        }
    }

    /// The exit code after the save at a signal.
    fn code_at_signal(&self) -> Option<i32> {
        match self.habits.on_signal {
            OnSignal::NotHandled | OnSignal::Ignores => None,
            OnSignal::Saves | OnSignal::Finishes => Some(SIGTERM_CODE),
            OnSignal::ExitsZero => Some(0),
        }
    }

    /// The stop signal arrives at the training itself.
    fn signal(&mut self, files: &FileSystem, now: Timestamp) {
        let saves = self.saves_at_signal(now);
        self.ends_with = self.code_at_signal();
        let begins = match self.phase {
            Phase::Computing { .. } => true,
            Phase::Saving { .. } => self.habits.abandons_save,
            Phase::Ended { .. } | Phase::Hanging => false,
        };
        if self.habits.on_signal == OnSignal::Finishes && saves.is_some_and(|(step, _)| step >= self.total) {
            self.ends_with = Some(0);
        }
        if let Some((step, _)) = saves.filter(|_| begins) {
            (self.writes, self.open) = (VecDeque::new(), None);
            self.begin_save(files, step, now);
        }
    }

    /// Its exit code, once it has ended.
    pub(super) fn ended(&self) -> Option<i32> {
        match self.phase {
            Phase::Ended { code } => Some(code),
            Phase::Computing { .. } | Phase::Saving { .. } | Phase::Hanging => None,
        }
    }

    /// Whether it has trained to its end and reports that, even after a signal.
    pub(super) fn is_finished(&self) -> bool {
        self.is_whole() && self.habits.on_signal == OnSignal::Finishes
    }

    /// Whether it has trained to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.step >= self.total
    }

    /// When it acts next.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Ended { .. } | Phase::Hanging => None,
            Phase::Computing { since } => Some(since + self.until_next_epoch()),
            Phase::Saving { .. } => self.writes.front().map(|(at, _)| *at),
        }
    }

    /// The files that are open for writing.
    pub(super) fn open_files(&self) -> BTreeSet<std::path::PathBuf> {
        self.open.iter().map(std::path::PathBuf::from).collect()
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}
