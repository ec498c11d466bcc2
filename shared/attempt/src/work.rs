//! The work that a process has done. A launcher does almost nothing compared with the process that it starts.

use std::iter::Sum;

/// The CPU time in clock ticks that a launcher may need to import its libraries: ten seconds.
const STARTING: u64 = 1000;
/// Lines that a launcher may print itself.
const OWN_LINES: u64 = 5;

/// What a process has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Clock ticks of CPU time: 100 a second.
    pub ticks: u64,
    /// Calls of write(2) and similar calls.
    pub writes: u64,
    /// Bytes that those calls wrote.
    pub bytes: u64,
}

impl Work {
    /// Reads `/proc/PID/io`, which needs the rights of a debugger. Without them, the writes are unknown.
    pub fn parse(ticks: u64, io: &str) -> Self {
        let figure = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
        Self { ticks, writes: figure("syscw:"), bytes: figure("wchar:") }
    }

    /// Whether there is no sign of work, as in `sleep` and `wait`.
    pub fn is_nothing(self) -> bool {
        self.ticks <= 1 && self.writes == 0
    }

    /// Whether it is so much more that the work of `other` can only be help. A launcher that prints its training's
    /// output has as many calls. It has as many bytes if the training prints in blocks, and may put a time before each
    /// line.
    pub fn is_much_more_than(self, other: Self) -> bool {
        let is_more =
            |own: u64, others: u64, times: u64, free: u64| own > others.saturating_mul(times).saturating_add(free);
        is_more(self.ticks, other.ticks, 2, STARTING)
            || (is_more(self.writes, other.writes, 2, OWN_LINES) && is_more(self.bytes, other.bytes, 8, 0))
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Self>>(works: I) -> Self {
        works.fold(Self::default(), |sum, work| Self {
            ticks: sum.ticks + work.ticks,
            writes: sum.writes + work.writes,
            bytes: sum.bytes + work.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn work(ticks: u64, writes: u64, bytes: u64) -> Work {
        Work { ticks, writes, bytes }
    }

    #[test]
    fn a_training_does_much_more_than_its_helper_and_a_launcher_does_not() {
        for (what, own, below, expected) in [
            ("a launcher at its start", work(9, 1, 60), work(4, 0, 0), false),
            ("a launcher that has imported a framework", work(900, 3, 200), work(30, 9, 140), false),
            ("it prints each line after a time", work(20, 400, 22_000), work(90, 400, 6_400), false),
            ("each line of a training that prints in blocks", work(20, 400, 6_400), work(90, 1, 8_192), false),
            // Measured: papermill 2.7.0 after 36 lines of a notebook, ipykernel 7.4.0.
            ("a notebook's", work(37, 69, 9_062), work(30, 86, 1_314), false),
            ("a training that prints, beside an idle server", work(5, 16, 200), work(5, 1, 13), true),
            (
                "a training that computes, beside one that serves it",
                work(90_000, 90, 2_000),
                work(9_000, 900, 9_000),
                true,
            ),
            (
                "a training that saves, beside a server that computes",
                work(90_000, 90_000, 1 << 30),
                work(300_000, 900, 9_000),
                true,
            ),
        ] {
            assert_eq!(own.is_much_more_than(below), expected, "{what}");
        }
    }

    #[test]
    fn the_kernels_figures_are_read() {
        let io = "rchar: 6976\nwchar: 512\nsyscr: 10\nsyscw: 3\nread_bytes: 0\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
        assert_eq!(Work::parse(7, io), work(7, 3, 512));
        assert!(Work::parse(0, "").is_nothing() && !Work::parse(0, io).is_nothing());
    }
}
