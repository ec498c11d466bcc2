//! Decides from looks at a training whether it shows signs of progress.

use std::time::Duration;

use spotsweep_protocol::stall::StallRule;

/// How many looks there are from the last sign until the first limit.
const LOOKS: u32 = 60;
/// Shortest and longest time between two looks. A process of `nvidia-smi` every half minute is no load.
const TICKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// What one look has found, without the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// Bytes of output and of the metrics file so far.
    pub bytes: u64,
    /// Absent if the folders could not be read.
    pub files: Option<Files>,
}

/// The files below the folders of checkpoints and outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Files {
    /// Their number.
    pub count: u64,
    /// The size of all files together.
    pub bytes: u64,
    /// When the newest file was modified, in nanoseconds since 1970.
    pub newest_ns: i64,
}

impl Files {
    /// Adds files with their sizes in bytes and their times of modification in nanoseconds since 1970.
    #[must_use]
    pub fn with(self, files: impl IntoIterator<Item = (u64, i64)>) -> Self {
        files.into_iter().fold(self, |sum, (bytes, modified_ns)| Self {
            count: sum.count + 1,
            bytes: sum.bytes.saturating_add(bytes),
            newest_ns: sum.newest_ns.max(modified_ns),
        })
    }
}

/// Whether the GPUs of a training compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    /// The training has no GPU.
    Absent,
    /// The training has a GPU, but its utilization is not known.
    Unknown,
    /// The utilization of each GPU is below 1 %.
    Idle,
    /// The utilization of a GPU is 1 % or above.
    Busy,
}

/// What has to be done after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is nothing to do.
    Nothing,
    /// The training is stalled: people have to be notified.
    Warn,
    /// A training that was stalled makes progress again.
    GoesOn,
    /// The attempt has to be ended.
    End,
}

/// The state of the looks at one training so far.
#[derive(Debug, Clone)]
pub struct Stall {
    warn: Duration,
    end: Option<Duration>,
    signs: Signs,
    looked_at: Duration,
    /// The time without a sign of progress.
    silent: Duration,
    /// The part of `silent` during which the state of the GPUs and the folders was known.
    certain: Duration,
    warned: bool,
}

impl Stall {
    /// Starts with a first look; `None` if the rule asks for nothing. `now` counts from any moment, by a monotonic
    /// clock.
    pub fn new(rule: StallRule, signs: Signs, now: Duration) -> Option<Self> {
        let limit = |seconds: Option<u32>| seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let end = limit(rule.end_seconds);
        let warn = limit(rule.warn_seconds).or(end)?;
        let (silent, certain) = (Duration::ZERO, Duration::ZERO);
        Some(Self { warn, end, signs, looked_at: now, silent, certain, warned: false })
    }

    /// The time until the next look.
    pub fn tick(&self) -> Duration {
        let first = self.end.map_or(self.warn, |end| end.min(self.warn));
        (first / LOOKS).clamp(TICKS.0, TICKS.1)
    }

    /// The time without a sign of progress so far.
    pub fn silent(&self) -> Duration {
        self.silent
    }

    /// Whether there is a sign since the last look. If there is none, the GPUs have to be looked at.
    pub fn is_sign(&self, signs: Signs) -> bool {
        let is_written = signs.files.zip(self.signs.files).is_some_and(|(now, before)| now != before);
        signs.bytes != self.signs.bytes || is_written
    }

    /// Adds a look. Each counts for two ticks at most: if the machine or this program was paused meanwhile, the
    /// training could not show any sign.
    pub fn look(&mut self, now: Duration, signs: Signs, gpu: Gpu) -> Step {
        let time = now.saturating_sub(self.looked_at).min(self.tick() * 2);
        self.looked_at = now;
        let is_sign = self.is_sign(signs) || gpu == Gpu::Busy;
        self.signs = Signs { files: signs.files.or(self.signs.files), ..signs };
        if is_sign {
            (self.silent, self.certain) = (Duration::ZERO, Duration::ZERO);
            return if std::mem::take(&mut self.warned) { Step::GoesOn } else { Step::Nothing };
        }
        self.silent += time;
        if signs.files.is_some() && gpu != Gpu::Unknown {
            self.certain += time;
        }
        if !self.warned && self.silent >= self.warn {
            self.warned = true;
            return Step::Warn;
        }
        let is_over = self.warned && self.end.is_some_and(|end| self.certain >= end);
        if is_over { Step::End } else { Step::Nothing }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const RULE: StallRule = StallRule { warn_seconds: Some(600), end_seconds: Some(1200), is_last: false };
    const SIGNS: Signs = Signs { bytes: 7, files: Some(Files { count: 1, bytes: 9, newest_ns: 5 }) };

    type Looks = Box<dyn Fn(u64) -> (Signs, Gpu)>;
    /// What the training does, its rule, the looks at it, and the steps that follow with their times.
    type Case = (&'static str, StallRule, Looks, &'static [(u64, Step)]);

    /// Looks every ten seconds; returns the time in seconds of each step that is not `Nothing`.
    fn steps(rule: StallRule, look: impl Fn(u64) -> (Signs, Gpu)) -> Vec<(u64, Step)> {
        let mut stall = Stall::new(rule, SIGNS, Duration::ZERO).unwrap();
        let mut steps = Vec::new();
        for second in (10..=3000).step_by(10) {
            let (signs, gpu) = look(second);
            let step = stall.look(Duration::from_secs(second), signs, gpu);
            steps.extend((step != Step::Nothing).then_some((second, step)));
            if step == Step::End {
                break;
            }
        }
        steps
    }

    #[test]
    fn a_training_is_ended_only_when_no_sign_has_come_for_all_of_the_limit() {
        let printed = |bytes| Signs { bytes, ..SIGNS };
        let written = |newest_ns| Signs { files: Some(Files { newest_ns, ..Files::default() }), ..SIGNS };
        let unread = Signs { files: None, ..SIGNS };
        let both: &[(u64, Step)] = &[(600, Step::Warn), (1200, Step::End)];
        let cases: [Case; 13] = [
            ("silence", RULE, Box::new(|_| (SIGNS, Gpu::Absent)), both),
            ("silence, and an idle GPU", RULE, Box::new(|_| (SIGNS, Gpu::Idle)), both),
            ("output now and then", RULE, Box::new(move |at| (printed(at / 500), Gpu::Idle)), &[]),
            ("checkpoints now and then", RULE, Box::new(move |at| (written((at / 500).cast_signed()), Gpu::Idle)), &[]),
            (
                "a busy GPU now and then",
                RULE,
                Box::new(|at| (SIGNS, if at % 500 == 0 { Gpu::Busy } else { Gpu::Idle })),
                &[],
            ),
            ("a GPU without a figure", RULE, Box::new(|_| (SIGNS, Gpu::Unknown)), &[(600, Step::Warn)]),
            (
                "one figure that is missing",
                RULE,
                Box::new(|at| (SIGNS, if at == 900 { Gpu::Unknown } else { Gpu::Idle })),
                &[(600, Step::Warn), (1210, Step::End)],
            ),
            ("folders that cannot be read", RULE, Box::new(move |_| (unread, Gpu::Idle)), &[(600, Step::Warn)]),
            (
                "folders that cannot be read once",
                RULE,
                Box::new(move |at| (if at == 300 { unread } else { SIGNS }, Gpu::Idle)),
                &[(600, Step::Warn), (1210, Step::End)],
            ),
            (
                "output after the warning",
                RULE,
                Box::new(move |at| (printed(if at < 1190 { 0 } else { 1 }), Gpu::Idle)),
                &[(610, Step::Warn), (1190, Step::GoesOn), (1790, Step::Warn), (2390, Step::End)],
            ),
            (
                "a warning alone",
                StallRule { end_seconds: None, ..RULE },
                Box::new(|_| (SIGNS, Gpu::Idle)),
                &[(600, Step::Warn)],
            ),
            (
                "one limit for both",
                StallRule { warn_seconds: Some(1200), ..RULE },
                Box::new(|_| (SIGNS, Gpu::Absent)),
                &[(1200, Step::Warn), (1210, Step::End)],
            ),
            (
                "an end alone",
                StallRule { warn_seconds: None, ..RULE },
                Box::new(|_| (SIGNS, Gpu::Absent)),
                &[(1200, Step::Warn), (1210, Step::End)],
            ),
        ];
        for (what, rule, look, expected) in cases {
            assert_eq!(steps(rule, look), expected, "{what}");
        }
        assert!(Stall::new(StallRule::OFF, SIGNS, Duration::ZERO).is_none());
    }

    /// A machine that was paused for hours: the training could not show any sign meanwhile.
    #[test]
    fn time_in_which_nothing_was_looked_at_does_not_count() {
        let mut stall = Stall::new(RULE, SIGNS, Duration::ZERO).unwrap();
        assert_eq!(stall.tick(), Duration::from_secs(10));
        for hours in 1..30 {
            let step = stall.look(Duration::from_secs(hours * 3600), SIGNS, Gpu::Absent);
            assert_eq!(step, Step::Nothing, "{hours}");
        }
        assert_eq!(stall.silent(), Duration::from_secs(29 * 20));
    }

    #[test]
    fn looks_are_as_frequent_as_the_first_limit_needs() {
        for (warn, end, tick) in [(Some(3600), None, 30.0), (Some(600), Some(60), 1.0), (None, Some(1), 0.1)] {
            let rule = StallRule { warn_seconds: warn, end_seconds: end, is_last: false };
            let stall = Stall::new(rule, SIGNS, Duration::ZERO).unwrap();
            assert_eq!(stall.tick(), Duration::from_secs_f64(tick), "{rule:?}");
        }
    }
}
