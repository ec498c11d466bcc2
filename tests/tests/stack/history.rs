//! A record's history in the table: every change is there once and in order, whether its entry is in the record or in a
//! page.

use jiff::{SignedDuration, Timestamp};
use spotsweep_aws::{DynamoStore, RETENTION_DAYS, Reader};
use spotsweep_control_plane::input::Subject;
use spotsweep_control_plane::store::{Audit, Change, CommitError, Record, Store, View};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_records::trial::Trial;
use spotsweep_tests::local::Table;

/// Number of changes, which is enough for a dozen pages.
const CHANGES: usize = 60;

struct Trying {
    table: Table,
    store: DynamoStore,
    reader: Reader,
    trial: Trial,
}

impl Trying {
    async fn new() -> Self {
        let table = Table::serve().await;
        let store = DynamoStore::new(&table.config(), "table".to_owned(), RETENTION_DAYS);
        let reader = Reader::new(&table.config(), "table".to_owned());
        let trial = Trial::new(SweepId::derive("bucket", "key", "version"), 7, JobId::from("job:7".to_owned()));
        Self { table, store, reader, trial }
    }

    async fn load(&self) -> View {
        let subject = Subject::Trial(self.trial.sweep.clone(), self.trial.index);
        self.store.load(&subject, Timestamp::UNIX_EPOCH).await.unwrap()
    }

    async fn commit(&self, view: &mut View, audit: &Audit, figures_only: bool) -> Result<(), CommitError> {
        let change = Change {
            record: Record::Trial(Box::new(self.trial.clone())),
            due: Some(audit.at),
            figures_only,
            reserved: Vec::new(),
        };
        let recent = self.store.commit(view, &change, audit).await?;
        view.apply(change, recent);
        Ok(())
    }

    async fn history(&self) -> Vec<Audit> {
        self.reader.history(&self.trial.sweep, Some(self.trial.index)).await.unwrap()
    }
}

/// The change of this number of a record. Some entries are longer than others.
fn audit(number: usize) -> Audit {
    Audit {
        at: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(number as i64),
        event: "batch-job-state".into(),
        answer: format!("{number} {}", "word ".repeat(number * 7 % 40)),
        state: "RUNNING, attached".to_owned(),
        commands: vec!["describe-jobs".into(); number % 3],
    }
}

#[tokio::test]
async fn every_change_is_shown_once_and_in_order() {
    let trying = Trying::new().await;
    let (mut view, mut expected) = (trying.load().await, Vec::new());
    for number in 0..CHANGES {
        if number % 4 == 0 {
            // The record as another invocation finds it.
            let loaded = trying.load().await;
            assert_eq!(loaded.trial, view.trial);
            view = loaded;
        }
        let figures_only = number % 5 == 3;
        trying.commit(&mut view, &audit(number), figures_only).await.unwrap();
        expected.extend((!figures_only).then(|| audit(number)));
        assert_eq!(trying.history().await, expected, "after change {number}");
    }
}

/// Two invocations load the same version. What the second one puts before its record is true all the same.
#[tokio::test]
async fn who_comes_second_changes_no_history() {
    let trying = Trying::new().await;
    let (mut first, mut expected) = (trying.load().await, Vec::new());
    for number in 0..CHANGES {
        let mut second = first.clone();
        trying.commit(&mut first, &audit(number), false).await.unwrap();
        expected.push(audit(number));
        for figures_only in [false, true] {
            let lost = trying.commit(&mut second, &audit(CHANGES + number), figures_only).await;
            assert!(matches!(lost, Err(CommitError::Conflict)), "{lost:?}");
        }
        assert_eq!(trying.history().await, expected, "after change {number}");
    }
}

/// The SDK repeats a put without an answer. A put that finds its own record there is no conflict. Otherwise its
/// commands would wait until the lease ends.
#[tokio::test]
async fn a_put_without_an_answer_has_happened_once() {
    let trying = Trying::new().await;
    let mut view = trying.load().await;
    for number in 0..3 {
        let mut late = view.clone();
        trying.table.lose_answer();
        trying.commit(&mut view, &audit(number), false).await.unwrap();
        assert!(matches!(trying.commit(&mut late, &audit(number), false).await, Err(CommitError::Conflict)));
    }
    assert_eq!(trying.history().await, [audit(0), audit(1), audit(2)]);
}
