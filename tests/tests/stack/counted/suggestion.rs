//! Counts what it costs to suggest a trial's parameters at its first claim, for different sizes of the sweep.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::decide::TrialClaim;
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::{ExecuteError, Executor, handle};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_protocol::claim::{Machine, Request};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_records::trial::{JobStatus, Suggested, Trial};
use spotsweep_search::suggest::Basis;
use spotsweep_sweep_file::Search;
use spotsweep_tests::ceilings::Ceilings;
use spotsweep_tests::course::{Course, Unpublished};
use spotsweep_tests::local::Table;

use super::{Figures, TRIAL, WRITTEN, figures, hold, requested};

/// Number of finished trials, and the first claim of another one: calls on the table, units written and read, bytes
/// both ways.
const CLAIMED: [(u32, Figures); 3] =
    [(20, [7.0, 5.0, 2.6, 11_500.0]), (1000, [7.0, 5.0, 28.0, 320_000.0]), (10_000, [8.0, 5.0, 260.0, 3_200_000.0])];

/// Answers requests for the search space, and no others.
struct Space(Arc<Search>);

impl Executor for Space {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        Ok(match command {
            Command::ReadSpace { request, .. } => {
                vec![Outcome::SpaceRead { request, search: Arc::clone(&self.0) }]
            }
            _other => Vec::new(),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_reads_a_small_row_of_each_trial() {
    let mut ceilings = Ceilings::default();
    for (trials, most) in CLAIMED {
        let (course, search) = Course::searching("searched", trials).await;
        let table = Table::serve().await;
        let store = &Unpublished(DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS));
        course.begin(store).await;
        let written = trials.min(WRITTEN);
        for index in (0..written).filter(|index| *index != TRIAL) {
            course.put(store, finished(&course, index)).await;
        }
        table.repeat_peers(&course.sweep.id, written, trials);
        let claim = event::parse(requested(&course, Request::Claim(Machine::default()))).unwrap();
        table.take();
        let (executor, settings) = (Space(search), course.harness.settings());
        let handled = handle(store, &executor, &[&TrialClaim], settings, claim, course.harness.now);
        let report = handled.await.unwrap();
        assert!(report.steps.iter().any(|step| step.contains("is given")), "{report:?}");
        let what = format!("a suggestion after {trials} trials");
        hold(&mut ceilings, &what, figures(&table.take()), most);
    }
}

/// A finished trial, with as many digits as suggested parameters and real losses have.
fn finished(course: &Course, index: u32) -> Trial {
    let job = course.sweep.plan.as_ref().unwrap().job_of(index).unwrap();
    let mut trial = Trial::new(course.sweep.id.clone(), index, job);
    let place = |of: u32| (f64::from(index * 7 + of) + 0.1).sin().abs();
    let (rate, dropout, layers) = (10_f64.powf(-1.0 - 4.0 * place(1)), place(2) / 2.0, 1 + index % 8);
    let optimizer = if index.is_multiple_of(2) { "adam" } else { "sgd" };
    let parameters = json!({ "dropout": dropout, "layers": layers, "learning_rate": rate, "optimizer": optimizer });
    let parameters: Map<String, Value> = serde_json::from_value(parameters).unwrap();
    let loss = place(3) + dropout;
    let basis = Some(Basis::Model { mean: loss * 1.1, deviation: loss / 7.0 });
    trial.suggested = Some(Suggested::new(&parameters, basis));
    trial.metrics = [("loss".to_owned(), Metric::of(loss, None, Source::Stated))].into();
    trial.status = JobStatus::Succeeded;
    trial
}
