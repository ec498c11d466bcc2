//! One attempt of a trial, and the progress of its runner.

use std::time::Duration;

use spotsweep_simulation::container::Container;

#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) container: Container,
    /// The number of its next step. Steps with other numbers are out of date.
    pub(super) step: u64,
    /// The number of reports.
    sequence: u64,
    /// The time that it has trained, and will have trained when its next report is due.
    pub(super) trained: Duration,
    pub(super) next: Duration,
    /// The time that it had trained at its last seal.
    pub(super) sealed: Duration,
    pub(super) volume: Option<String>,
    pub(super) doing: Doing,
}

/// The next action of the attempt's runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Claiming,
    Mounting,
    Training,
    Leaving,
    Ending,
}

impl Agent {
    pub(super) fn new(container: Container) -> Self {
        Self {
            container,
            step: 0,
            sequence: 0,
            trained: Duration::ZERO,
            next: Duration::ZERO,
            sealed: Duration::ZERO,
            volume: None,
            doing: Doing::Claiming,
        }
    }

    pub(super) fn trains(&self) -> bool {
        self.doing == Doing::Training
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
