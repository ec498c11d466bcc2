//! What it costs to compare a trial with the others: a report that reaches a rung, by the size of the sweep.

use std::iter;

use futures_util::StreamExt as _;
use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::handle;
use spotsweep_control_plane::store::{Audit, Change, Record, Store as _, Versioned, View};
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::claim::{Machine, Request};
use spotsweep_protocol::rungs::{Reached, Rung};
use spotsweep_tests::ceilings::Ceilings;
use spotsweep_tests::course::{Course, Idle, Unpublished};
use spotsweep_tests::local::{Table, Units};

use super::{TRIAL, reported, requested};

/// Trials; of a report that reaches a rung: calls of the table, units written and read, bytes both ways.
const COMPARED: [(u32, f64, f64, f64, f64); 3] =
    [(20, 5.0, 2.0, 4.0, 10_000.0), (1000, 5.0, 2.0, 40.0, 300_000.0), (10_000, 8.0, 2.0, 400.0, 3_000_000.0)];

/// Millionths of a dollar: a unit written and read on demand, and a request to Lambda, in us-east-1
/// (<https://aws.amazon.com/dynamodb/pricing/on-demand/>, <https://aws.amazon.com/lambda/pricing/>).
const WRITE: f64 = 0.625;
const READ: f64 = 0.125;
const REQUEST: f64 = 0.2;

/// A trial of an hour reports four times a minute, and passes the rungs 3, 9, 27 and 81.
const REPORTS: f64 = 240.0;
const RUNGS: f64 = 4.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_report_at_a_rung_reads_a_small_row_of_each_trial() {
    let mut ceilings = Ceilings::default();
    for (trials, calls, writes, reads, bytes) in COMPARED {
        let course = Course::comparing("compared", trials).await;
        let table = Table::serve().await;
        let store = &Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
        course.begin(store).await;
        let others = (0..trials).filter(|index| *index != TRIAL);
        futures_util::stream::iter(others).for_each_concurrent(16, |index| other(&course, store, index)).await;
        let ask = async |request: Request| {
            let event = event::parse(requested(&course, request)).unwrap();
            table.take();
            handle(store, &Idle, course.harness.settings(), event, course.harness.now).await.unwrap();
            table.take()
        };
        ask(Request::Claim(Machine::default())).await;
        ask(reported(1, Vec::new())).await;
        let plain = ask(reported(2, Vec::new())).await;
        let rungs = |last: usize| [3, 9].into_iter().take(last).map(reached).collect();
        ask(reported(3, rungs(1))).await;
        let used = ask(reported(4, rungs(2))).await;
        assert_eq!((plain.calls, plain.writes(), plain.reads), (3.0, 1.0, 2.0), "as of a sweep that compares nothing");
        let held = [
            ("calls", used.calls, calls),
            ("write units", used.writes(), writes),
            ("read units", used.reads, reads),
            ("bytes", used.sent + used.received, bytes),
        ];
        for (what, counted, most) in held {
            ceilings.hold(&format!("a report at a rung of {trials} trials: {what}"), counted, most);
        }
        let mean = ((REPORTS - RUNGS) * price(&plain) + RUNGS * price(&used)) / REPORTS;
        println!("mean price of a report of {trials} trials: {:.2} of one without rungs", mean / price(&plain));
        assert!(mean <= 2.0 * price(&plain));
    }
}

fn price(used: &Units) -> f64 {
    REQUEST + WRITE * used.writes() + READ * used.reads
}

/// Hyperband leaves a third at each rung.
async fn other(course: &Course, store: &Unpublished, index: u32) {
    let job = course.sweep.plan.as_ref().unwrap().job_of(index).unwrap();
    let mut trial = Trial::new(course.sweep.id.clone(), index, job);
    let passed = iter::successors(Some((3, 1)), |(step, of)| Some((step * 3, of * 3)));
    let passed = passed.take_while(|(_, of)| index.is_multiple_of(*of)).take(4);
    trial.rungs = passed.map(|(step, _)| (step, figures(index, step))).collect();
    let sweep = Some(Versioned { record: course.sweep.clone(), version: 1, due: None, recent: Default::default() });
    let at = course.harness.now;
    let (record, reserved) = (Record::Trial(Box::new(trial)), Vec::new());
    let audit =
        Audit { at, event: "trial-reported".into(), answer: String::new(), state: record.state(), commands: vec![] };
    let change = Change { record, due: Some(at), figures_only: false, reserved };
    store.commit(&View { sweep, ..View::default() }, &change, &audit).await.unwrap();
}

fn reached(step: u64) -> Reached {
    Reached { step, rung: figures(TRIAL, step) }
}

/// With as many digits as a mean of real losses has.
fn figures(index: u32, step: u64) -> Rung {
    let value = (f64::from(index) + 0.1 * step as f64).sin().abs();
    Rung { value, best: value, mean: value / 3.0 }
}
