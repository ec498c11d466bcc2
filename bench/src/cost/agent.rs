//! One attempt of a trial: its instance, and the progress of its runner.

use std::time::Duration;

use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_world::{AttemptKey, Start};

#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) key: AttemptKey,
    pub(super) instance: String,
    /// The number of its next step. Steps with other numbers are out of date.
    pub(super) step: u64,
    pub(super) zone: String,
    pub(super) sweep: String,
    pub(super) index: u32,
    pub(super) attempt: u32,
    pub(super) token: Option<Secret>,
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
    pub(super) fn new(start: &Start, zone: String) -> Self {
        let number = |name: &str| start.number(name).unwrap_or(0);
        Self {
            key: start.attempt.clone(),
            instance: start.instance.clone(),
            step: 0,
            zone,
            sweep: start.variable("SPOTSWEEP_SWEEP").unwrap_or_default().to_owned(),
            index: number("SPOTSWEEP_FIRST_INDEX") + number("AWS_BATCH_JOB_ARRAY_INDEX"),
            attempt: number("SPOTSWEEP_FIRST_ATTEMPT") + start.attempt.attempt,
            token: start.variable(TOKEN_VARIABLE).and_then(|token| token.parse().ok()),
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
