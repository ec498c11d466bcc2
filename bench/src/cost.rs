//! What the control plane costs: a sweep on the virtual clock, every unit of the table counted, every invocation,
//! put, get and event, at AWS's prices; the functions' own time and log as measured by running the real one.
//!
//! The limit is what nobody could do without: one plain write for each move of a record (a trial's state, its
//! workspace's), and one shortest invocation for it. What the trials themselves take (GPUs, volumes, their outputs'
//! puts) is no part of the control plane.

mod agent;
mod patience;
mod prices;
pub(crate) mod stage;
mod steps;
mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

use prices::{Dollars, least};
use spotsweep_tests::local::Units;
use stage::{Plan, Stage};
use tally::{Cause, Spent, Tally};

use crate::row::{Row, Target};
use crate::setup::Setup;
use crate::track::{self, Own};

/// Trials of the simulated sweep: below the burst of EC2's buckets, so that nothing is throttled.
const TRIALS: u32 = 24;
const QUICK_TRIALS: u32 = 6;

/// Figures are for so many.
const PER_TRIALS: f64 = 1000.0;

const TRAINING: Duration = Duration::from_secs(3600);

/// Two lines of figures in a minute, and a checkpoint.
const LINE: Duration = Duration::from_secs(30);

/// The most beyond what nobody could do without.
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

/// Of a thousand trials of one sweep.
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

    /// Everything but the reports, and the reports of a thousand hours of training.
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

    /// Where it goes: by cause, and by what is paid for.
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

    /// What a trial makes of each cause, and where its write units go.
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
