//! Limits of AWS that the World does not have: an item's size, a partition's units, and a function's time and answer
//! (fact 65). A function's memory is in the template; `tests/tests/scale` measures how much of it is used.

use std::collections::BTreeMap;
use std::task::Poll;

use spotsweep_control_plane::handle::{HandleError, Report};

/// Most bytes of an item.
pub const ITEM_BYTES: usize = 400 << 10;
/// Read units of one partition key per second.
pub const READ_UNITS: f64 = 3_000.0;
/// Write units of one partition key per second.
pub const WRITE_UNITS: f64 = 1_000.0;
/// Most seconds of an invocation: `Timeout` in the template.
pub const SECONDS: f64 = 60.0;
/// Most bytes of an answer.
pub const ANSWER_BYTES: usize = 6 << 20;

/// Units that an invocation has used of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    /// Read units.
    pub read: f64,
    /// Write units.
    pub written: f64,
}

/// Units that an invocation has used, by partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Used(BTreeMap<String, Units>);

impl Used {
    /// Adds units of a partition.
    pub(crate) fn add(&mut self, partition: &str, units: Units) {
        match self.0.get_mut(partition) {
            Some(of) => {
                of.read += units.read;
                of.written += units.written;
            }
            // The name is copied only the first time, because tests count the allocations of this code.
            None => drop(self.0.insert(partition.to_owned(), units)),
        }
    }

    /// Moves all units of `newer` into this.
    pub(crate) fn take(&mut self, newer: &mut Self) {
        for (partition, units) in std::mem::take(&mut newer.0) {
            self.add(&partition, units);
        }
    }

    /// Read units of all partitions.
    pub fn read(&self) -> f64 {
        self.0.values().map(|units| units.read).sum()
    }

    /// Seconds that the table needs for these units at its rate. Units beyond the rate wait for the next second.
    pub fn seconds(&self) -> f64 {
        let of = |units: &Units| (units.read / READ_UNITS).max(units.written / WRITE_UNITS);
        self.0.values().map(of).fold(0.0, f64::max)
    }
}

/// The limit that an invocation has exceeded so far, at which Lambda ends it.
pub(crate) fn exceeded(used: &Used, so_far: &Poll<Result<Report, HandleError>>) -> Option<String> {
    let seconds = used.seconds();
    if seconds > SECONDS {
        return Some(format!("the table gives its units in {seconds:.0} s, and a function has {SECONDS} s"));
    }
    let bytes = match so_far {
        Poll::Ready(Ok(report)) => report.steps.iter().map(String::len).sum(),
        Poll::Ready(Err(_)) | Poll::Pending => 0,
    };
    (bytes > ANSWER_BYTES).then(|| format!("its answer has {bytes} bytes, and Lambda takes {ANSWER_BYTES}"))
}
