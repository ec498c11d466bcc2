//! Bounds the counts from which the price is computed (tests/tests/stack/counted.rs bounds other counts).

use spotsweep_tests::ceilings::Ceilings;

use super::stage::{Plan, Stage};
use super::tally::{Cause, Spent};
use super::{LINE, TRAINING};

const TRIALS: u32 = 2;

/// The counts for each number of interruptions. For a trial without its reports: invocations, commits, units written
/// and read, and seconds of waiting for volumes; and the units that a report writes.
const TRIALS_TAKE: [(u32, [f64; 6]); 2] =
    [(0, [11.0, 16.0, 37.0, 23.0, 8.0, 1.2]), (1, [25.0, 37.0, 99.0, 56.0, 12.0, 1.7])];

#[tokio::test]
async fn a_trial_takes_few_invocations_and_units() {
    let mut ceilings = Ceilings::default();
    for (interruptions, most) in TRIALS_TAKE {
        let mut stage = Stage::new(Plan { trials: TRIALS, training: TRAINING, interruptions, line: LINE }).await;
        stage.run_until(Stage::is_over).await;
        let of = |cause| stage.tally().of(cause);
        let own = [Cause::Jobs, Cause::Workspaces, Cause::Claims].map(of);
        let each = |figure: fn(&Spent) -> f64| own.iter().map(figure).sum::<f64>() / f64::from(TRIALS);
        let reports = of(Cause::Reports);
        let counted = [
            ("invocations", each(|spent| spent.invocations)),
            ("commits", each(|spent| spent.units.changes)),
            ("units written", each(|spent| spent.units.writes())),
            ("units read", each(|spent| spent.units.reads)),
            ("seconds waited", each(|spent| spent.waited)),
            ("units written by a report", reports.units.writes() / reports.invocations),
        ];
        for ((what, counted), most) in counted.into_iter().zip(most) {
            ceilings.hold(&format!("{interruptions} interruptions: {what}"), counted, most);
        }
    }
}
