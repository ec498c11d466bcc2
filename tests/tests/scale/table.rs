//! A page of trials in the table: the store reads the trials of the page and no others.

use jiff::Timestamp;
use spotsweep_aws::{DynamoStore, RETENTION_DAYS};
use spotsweep_control_plane::input::Subject;
use spotsweep_control_plane::store::{Record, Store as _};
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::Trial;
use spotsweep_tests::local::Table;

use crate::{put, records};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_its_own_trials() {
    let (sweep, trial) = records(Stage::Settling, 25);
    for (next, named, expected) in [
        (0, None, 0..10),
        (0, Some(0), 0..10),
        (1, Some(1), 10..20),
        (2, Some(2), 20..25),
        // Either all pages are stored, or the event has come before.
        (3, Some(3), 0..0),
        (1, Some(0), 0..0),
    ] {
        let table = Table::serve().await;
        let store = DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS);
        let plan = Plan { page_trials: 10, ..sweep.plan.clone().unwrap() };
        let mut sweep = Sweep { plan: Some(plan), ..sweep.clone() };
        sweep.pages.next = next;
        for index in 0..25 {
            put(&store, Record::Trial(Box::new(Trial { index, ..trial.clone() }))).await;
        }
        let subject = Subject::Settlement(sweep.id.clone(), named);
        put(&store, Record::Sweep(Box::new(sweep))).await;
        let view = store.load(&subject, Timestamp::UNIX_EPOCH).await.unwrap();
        let found: Vec<u32> = view.trials.iter().map(|trial| trial.index).collect();
        assert_eq!(found, expected.collect::<Vec<_>>(), "{named:?} where {next} is next");
    }
}
