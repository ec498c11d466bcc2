//! The prices of AWS, us-east-1 without tax, and the assumptions about Lambda's times.

use super::tally::Spent;
use crate::track::Own;

/// A million write and read units on demand (fact 31; aws.amazon.com/dynamodb/pricing/on-demand/).
const WRITES_USD: f64 = 0.625;
const READS_USD: f64 = 0.125;

/// A GB-second on arm64, and a million invocations (fact 31; aws.amazon.com/lambda/pricing/).
const GB_SECOND_USD: f64 = 0.000_013_333_4;
const INVOCATIONS_USD: f64 = 0.20;

/// A function's memory (infra/control-plane.yaml), and the memory that comes with a whole vCPU
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>).
const FUNCTION_GB: f64 = 0.125;
const VCPU_GB: f64 = 1.769;

/// Lambda's smallest function and its smallest bill (aws.amazon.com/lambda/pricing/).
const LEAST_GB: f64 = 0.125;
const LEAST_SECONDS: f64 = 0.001;

/// A thousand puts and gets (aws.amazon.com/s3/pricing/, S3 Standard).
const PUTS_USD: f64 = 0.005;
const GETS_USD: f64 = 0.0004;

/// A million events of our own (fact 31; aws.amazon.com/eventbridge/pricing/). AWS's own are free.
const EVENTS_USD: f64 = 1.0;

/// A GB of log (aws.amazon.com/cloudwatch/pricing/).
const LOG_USD: f64 = 0.50;

/// The seconds of a call on AWS. They are assumptions: DynamoDB states "single-digit milliseconds", EC2, Batch and S3
/// state nothing.
const TABLE_SECONDS: f64 = 0.005;
const CALL_SECONDS: f64 = 0.1;

/// Dollars, by what is paid for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dollars {
    pub(super) writes: f64,
    pub(super) reads: f64,
    pub(super) lambda: f64,
    pub(super) logs: f64,
    pub(super) s3: f64,
    pub(super) events: f64,
}

impl Dollars {
    pub(super) fn of(spent: &Spent, own: Own) -> Self {
        let million = |count: f64, usd: f64| count * usd / 1e6;
        let thousand = |count: f64, usd: f64| count * usd / 1e3;
        let invocations = spent.invocations;
        let waits = spent.units.calls * TABLE_SECONDS + spent.calls * CALL_SECONDS + spent.waited;
        // The function's own time was measured with a whole CPU.
        let seconds = invocations * own.seconds * (VCPU_GB / FUNCTION_GB) + waits;
        Self {
            writes: million(spent.units.writes(), WRITES_USD),
            reads: million(spent.units.reads, READS_USD),
            lambda: seconds * FUNCTION_GB * GB_SECOND_USD + million(invocations, INVOCATIONS_USD),
            logs: invocations * own.log_bytes / 1e9 * LOG_USD,
            s3: thousand(spent.puts, PUTS_USD) + thousand(spent.gets, GETS_USD),
            events: million(spent.events, EVENTS_USD),
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.writes + self.reads + self.lambda + self.logs + self.s3 + self.events
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.reads += other.reads;
        self.lambda += other.lambda;
        self.logs += other.logs;
        self.s3 += other.s3;
        self.events += other.events;
    }
}

/// Returns the cost of the limit: a plain write of each record that moves, and the shortest invocation of the smallest
/// function for each of them.
pub(super) fn least(spent: &Spent) -> f64 {
    spent.units.least * WRITES_USD / 1e6
        + spent.moving * (INVOCATIONS_USD / 1e6 + LEAST_GB * LEAST_SECONDS * GB_SECOND_USD)
}
