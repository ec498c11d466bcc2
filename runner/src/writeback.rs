//! Computes how long it takes until the kernel has written its unwritten data to the volume.

use std::time::Duration;

use rustix::param::page_size;

use crate::kernel;

/// The default speed of a gp3 volume, in bytes per second.
/// <https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html>
const BASELINE: f64 = 125.0 * 1024.0 * 1024.0;
/// The time between two measurements of the speed.
const WINDOW: Duration = Duration::from_secs(1);
/// With this many bytes under way, the kernel writes at full speed. A few pages of a log do not show the speed.
const BUSY: u64 = 4 * 1024 * 1024;

/// The kernel's counters, in bytes, for all volumes of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Changed in memory, and not yet being written.
    dirty: u64,
    /// Being written.
    in_flight: u64,
    /// Written since the machine started.
    written: u64,
}

impl Counters {
    /// The current counters; `None` if the kernel does not report them.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&kernel::text("/proc/vmstat").ok()?)
    }

    fn parse(vmstat: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
            let pages: u64 = lines.find(|(found, _)| *found == name)?.1.parse().ok()?;
            Some(pages * page_size() as u64)
        };
        Some(Self { dirty: bytes("nr_dirty")?, in_flight: bytes("nr_writeback")?, written: bytes("nr_written")? })
    }
}

/// Measures the speed while something is written.
#[derive(Debug)]
pub(crate) struct Writeback {
    /// The measured speed in bytes per second.
    speed: f64,
    /// The beginning of the current window.
    since: Option<(Duration, Counters)>,
}

impl Writeback {
    pub(crate) fn new() -> Self {
        Self { speed: BASELINE, since: None }
    }

    /// The time to write out all of `counters`, at the speed of the last window in which the kernel wrote at full
    /// speed. `at` is a time that increases from look to look.
    pub(crate) fn time(&mut self, at: Duration, counters: Counters) -> Duration {
        match self.since {
            Some((since, _)) if at.saturating_sub(since) < WINDOW => {}
            Some((since, before)) => {
                let written = counters.written.saturating_sub(before.written);
                if before.in_flight.min(counters.in_flight) >= BUSY && written > 0 {
                    #[expect(clippy::cast_precision_loss, reason = "a speed")]
                    let written = written as f64;
                    self.speed = written / at.saturating_sub(since).as_secs_f64();
                }
                self.since = Some((at, counters));
            }
            None => self.since = Some((at, counters)),
        }
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let unwritten = (counters.dirty + counters.in_flight) as f64;
        Duration::try_from_secs_f64(unwritten / self.speed).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn counters(dirty: u64, in_flight: u64, written: u64) -> Counters {
        Counters { dirty: dirty * MIB, in_flight: in_flight * MIB, written: written * MIB }
    }

    #[test]
    fn what_is_not_written_takes_as_long_as_the_last_second_shows() {
        let mut writeback = Writeback::new();
        let mut time = |at, counters| writeback.time(Duration::from_millis(at), counters).as_secs_f64();
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.01, "{found} is not {expected}");
        near(time(0, counters(0, 0, 7)), 0.0);
        near(time(500, counters(250, 0, 7)), 2.0);
        // No bytes were under way at the beginning, so no speed is measured.
        near(time(1000, counters(960, 40, 47)), 8.0);
        near(time(1900, counters(960, 40, 80)), 8.0);
        // 50 MiB within a second.
        near(time(2000, counters(960, 40, 97)), 20.0);
        near(time(3000, counters(760, 40, 297)), 4.0);
        // A few pages.
        near(time(3500, counters(3, 1, 298)), 0.02);
        near(time(4600, counters(3, 1, 299)), 0.02);
        // All bytes are written, so the last speed counts.
        near(time(6000, counters(0, 0, 600)), 0.0);
        near(time(7000, counters(400, 0, 600)), 2.0);
    }

    #[test]
    fn the_kernel_counts_pages() {
        let vmstat = "nr_dirty 3\nnr_writeback 2\nnr_writeback_temp 9\nnr_dirtied 9\nnr_written 5\n";
        let pages = |count: u64| count * page_size() as u64;
        let expected = Counters { dirty: pages(3), in_flight: pages(2), written: pages(5) };
        assert_eq!(Counters::parse(vmstat), Some(expected));
        assert_eq!(Counters::parse("nr_dirty 3\n"), None);
        assert!(Counters::now().is_some());
    }
}
