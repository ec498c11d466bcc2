//! Counts what the comparison of a trial with the others costs: a report that reaches a rung, for different sizes of
//! the sweep.

use std::iter;

use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::handle;
use spotsweep_protocol::claim::{Machine, Request};
use spotsweep_protocol::rungs::{Reached, Rung};
use spotsweep_records::trial::Trial;
use spotsweep_simulation::nouns;
use spotsweep_tests::ceilings::Ceilings;
use spotsweep_tests::course::{Course, Idle, Unpublished};
use spotsweep_tests::local::{Table, Units};

use super::{Figures, TRIAL, WRITTEN, figures, hold, reported, requested};

/// Number of trials, and the mean of a report that reaches a rung: calls on the table, units written and read, bytes
/// both ways.
const COMPARED: [(u32, Figures); 3] =
    [(20, [6.0, 3.0, 2.6, 11_500.0]), (1000, [6.0, 3.0, 22.0, 240_000.0]), (10_000, [7.0, 3.0, 200.0, 2_300_000.0])];

/// Prices in millionths of a dollar, for a unit written and a unit read on demand and for a request to Lambda, in
/// us-east-1 (<https://aws.amazon.com/dynamodb/pricing/on-demand/>, <https://aws.amazon.com/lambda/pricing/>).
const WRITE: f64 = 0.625;
const READ: f64 = 0.125;
const REQUEST: f64 = 0.2;

/// Number of reports of a trial of an hour, which reports four times a minute.
const REPORTS: f64 = 240.0;
/// The rungs that the trial passes.
const RUNGS: [u64; 4] = [3, 9, 27, 81];

#[tokio::test(flavor = "multi_thread")]
async fn a_report_at_a_rung_reads_a_small_row_of_each_trial() {
    let mut ceilings = Ceilings::default();
    for (trials, most) in COMPARED {
        let course = Course::comparing("compared", trials).await;
        let table = Table::serve().await;
        let store = &Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
        course.begin(store).await;
        let written = trials.min(WRITTEN);
        for index in (0..written).filter(|index| *index != TRIAL) {
            other(&course, store, index).await;
        }
        table.repeat_peers(&course.sweep.id, written, trials);
        // Figures are counted from the start of the container on.
        let mut own =
            Trial::new(course.sweep.id.clone(), TRIAL, course.sweep.plan.as_ref().unwrap().job_of(TRIAL).unwrap());
        own.attempt(1).started_at = Some(course.harness.now);
        course.put(store, own).await;
        let ask = async |request: Request| {
            let event = event::parse(requested(&course, request)).unwrap();
            table.take();
            handle(store, &Idle, nouns::ALL, course.harness.settings(), event, course.harness.now).await.unwrap();
            table.take()
        };
        ask(Request::Claim(Machine::default())).await;
        ask(reported(1, Vec::new())).await;
        let plain = ask(reported(2, Vec::new())).await;
        let mut used = Vec::new();
        for (passed, sequence) in (1..=RUNGS.len()).zip(3..) {
            let rungs = RUNGS.into_iter().take(passed).map(reached).collect();
            used.push(ask(reported(sequence, rungs)).await);
        }
        let mean = |figure: &dyn Fn(&Units) -> f64| used.iter().map(figure).sum::<f64>() / used.len() as f64;
        assert_eq!((plain.calls, plain.writes(), plain.reads), (3.0, 1.0, 2.0), "as of a sweep that compares nothing");
        let mean_figures = std::array::from_fn(|at| mean(&|used| figures(used)[at]));
        hold(&mut ceilings, &format!("a report at a rung of {trials} trials"), mean_figures, most);
        let rungs = RUNGS.len() as f64;
        let ratio = 1.0 + rungs / REPORTS * (mean(&price) / price(&plain) - 1.0);
        println!("{trials} trials: a report costs {ratio:.2} times as much as without rungs, on average");
        println!("{trials} trials: at a rung {:.2} millionths of a dollar, else {:.2}", mean(&price), price(&plain));
        assert!(ratio <= 2.0);
    }
}

fn price(used: &Units) -> f64 {
    REQUEST + WRITE * used.writes() + READ * used.reads
}

/// Writes another trial. Hyperband leaves a third of the trials at each rung.
async fn other(course: &Course, store: &Unpublished, index: u32) {
    let job = course.sweep.plan.as_ref().unwrap().job_of(index).unwrap();
    let mut trial = Trial::new(course.sweep.id.clone(), index, job);
    let passed = iter::successors(Some((3, 1)), |(step, of)| Some((step * 3, of * 3)));
    let passed = passed.take_while(|(_, of)| index.is_multiple_of(*of)).take(4);
    trial.rungs = passed.map(|(step, _)| (step, rung(index, step))).collect();
    course.put(store, trial).await;
}

/// A trial at this step that no rung has stopped.
fn reached(step: u64) -> Reached {
    let rung = Rung { value: -1.0, ..rung(TRIAL, step) };
    Reached { step, rung }
}

/// A rung whose value has as many digits as a mean of real losses.
fn rung(index: u32, step: u64) -> Rung {
    let value = (f64::from(index) + 0.1 * step as f64).sin().abs();
    Rung { value, best: value, mean: value / 3.0 }
}
