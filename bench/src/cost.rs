//! Measures the cost of the control plane. It runs a sweep on the virtual clock, and counts every unit of the table and
//! every invocation, put, get and event, at AWS's prices. The functions' own time and log are measured with the real
//! function.
//!
//! The limit is the unavoidable work: one plain write for each move of a record (of a trial's state or of its
//! workspace's), and one shortest invocation for it. The costs of the trials themselves (GPUs, volumes, puts of their
//! outputs) are not part of the control plane.

mod agent;
mod prices;
pub(crate) mod stage;
mod steps;
mod tally;
#[cfg(test)]
mod tests;
mod virtual_wait;

use std::time::Duration;

use prices::{Dollars, least};
use spotsweep_tests::local::Units;
use stage::{Plan, Stage};
use tally::{Cause, Spent, Tally};

use crate::row::{Row, Target};
use crate::setup::Setup;
use crate::track::{self, Own};

/// The trials of the simulated sweep. They are fewer than the burst of EC2's buckets, so that nothing is throttled.
const TRIALS: u32 = 24;
const QUICK_TRIALS: u32 = 6;

/// The number of trials that the figures are for.
const PER_TRIALS: f64 = 1000.0;

const TRAINING: Duration = Duration::from_secs(3600);

/// The time between two lines of figures. Every second line comes with a checkpoint.
const LINE: Duration = Duration::from_secs(30);

/// The most dollars beyond the limit.
const BEYOND_USD: f64 = 0.01;

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let own = track::own(setup).await;
    let trials = if setup.quick { QUICK_TRIALS } else { TRIALS };
    let mut rows = Vec::new();
    for interruptions in [0, 1, 3] {
        let mut stage = Stage::new(Plan { trials, training: TRAINING, interruptions, line: LINE }).await;
        stage.run_until(Stage::is_over).await;
        let bill = Bill { name: format!("cost/{interruptions} interruptions"), trials, tally: stage.tally(), own };
        rows.extend(bill.sums());
        if interruptions == 1 {
            rows.extend(bill.split());
            rows.extend(bill.units());
        }
    }
    rows
}

/// The costs of a thousand trials of one sweep.
struct Bill<'a> {
    name: String,
    trials: u32,
    tally: &'a Tally,
    own: Own,
}

impl Bill<'_> {
    fn spent(&self, cause: Cause) -> Spent {
        self.tally.scaled(cause, PER_TRIALS / f64::from(self.trials))
    }

    fn dollars(&self, cause: Cause) -> Dollars {
        Dollars::of(&self.spent(cause), self.own)
    }

    fn usd(&self, what: &str, dollars: f64) -> Row {
        Row::new(format!("{}/{what}", self.name), "USD", &[dollars])
    }

    /// Returns the costs without the reports, and those of the reports of a thousand hours of training.
    fn sums(&self) -> Vec<Row> {
        let others = || Cause::ALL.into_iter().filter(|cause| *cause != Cause::Reports);
        let rest: f64 = others().map(|cause| self.dollars(cause).total()).sum();
        let floor: f64 = others().map(|cause| least(&self.spent(cause))).sum();
        let hours = PER_TRIALS * TRAINING.as_secs_f64() / 3600.0;
        let reports = self.dollars(Cause::Reports).total() * 1000.0 / hours;
        vec![
            self.usd("without reports", rest).limit(floor).target(Target::AtMost(floor + BEYOND_USD)),
            self.usd("reports, 1 000 h", reports),
        ]
    }

    /// Returns the costs by cause, and by what is paid for.
    fn split(&self) -> Vec<Row> {
        let mut all = Dollars::default();
        let mut rows = Vec::new();
        for cause in Cause::ALL {
            let dollars = self.dollars(cause);
            rows.push(self.usd(&format!("for {}", cause.name()), dollars.total()).limit(least(&self.spent(cause))));
            all.add(&dollars);
        }
        let parts = [
            ("writes", all.writes),
            ("reads", all.reads),
            ("Lambda", all.lambda),
            ("logs", all.logs),
            ("S3", all.s3),
            ("events", all.events),
        ];
        rows.extend(parts.map(|(part, dollars)| self.usd(&format!("as {part}"), dollars)));
        rows
    }

    /// Returns the units of a trial for each cause, and what its write units are for.
    fn units(&self) -> Vec<Row> {
        let figure = |what: String, count: f64, unit| Row::new(format!("{}/{what}", self.name), unit, &[count]);
        let mut rows = Vec::new();
        let mut all = Units::default();
        for cause in Cause::ALL {
            let Spent { invocations, units, waited, .. } = self.spent(cause);
            rows.push(figure(format!("{}, invocations a trial", cause.name()), invocations / PER_TRIALS, ""));
            rows.push(figure(format!("{}, commits a trial", cause.name()), units.changes / PER_TRIALS, ""));
            rows.push(figure(format!("{}, writes a trial", cause.name()), units.writes() / PER_TRIALS, "units"));
            if waited > 0.0 {
                rows.push(figure(format!("{}, waits for volumes a trial", cause.name()), waited / PER_TRIALS, "s"));
            }
            all += units;
        }
        let kinds =
            [("records", all.records), ("audit rows", all.audits), ("pointers", all.pointers), ("index", all.index)];
        rows.extend(kinds.map(|(kind, count)| figure(format!("{kind}, writes a trial"), count / PER_TRIALS, "units")));
        rows
    }
}
