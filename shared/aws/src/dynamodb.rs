//! The stored state in one DynamoDB table.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `SWEEP#<id>` | `META` | the sweep |
//! | `SWEEP#<id>` | `TRIAL#<index, 6 digits>` | a trial, from its first event on |
//! | `SWEEP#<id>` | `PEER#<index, 6 digits>` | a trial for decisions about others: rungs, parameters, end |
//! | `SWEEP#<id>` | `RESERVED#<key>` | a parameter set that a claim is about to take |
//! | `SWEEP#<id>` | `LOG#<META or index>#<version>` | a page of its history: audit entries, to that version |
//! | `RES#<i-…, vol-… or snap-…>` | `TRIAL#<sweep>#<index>` | pointer: the resource belongs to that trial |
//!
//! A record holds the newest entries of its own history, so that a change and its audit entry are one write. Older
//! entries are in pages, which have their own prefix, so that reading all trials does not read their history.
//! `open`/`sk` is the sparse index of open work, in [`SHARDS`] shards. Sweeps that are done move to its partition
//! [`CLOSED`], for listing, and trials that are done leave it. A due time is in its entries and not in their keys,
//! because a new key is two writes
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes>),
//! and due times move often. So `reconcile` reads all entries, some 60 of them for a read unit.

mod history;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::emf;
use history::Kept;
use rows::{Row, TRIAL, number, sortable};
use spotsweep_control_plane::input::{About, Subject};
use spotsweep_control_plane::metrics::{Metric, Telemetry};
use spotsweep_control_plane::store::{
    Audit, Change, CommitError, History, RESERVED, Record, Reservation, Store, Versioned, View,
};
use spotsweep_protocol::ids::SweepId;
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::{LONGEST_KEPT_DAYS, TrialRef};

pub(super) use rows::{CLOSED, INDEX, META, SHARDS, field, partition, text, trial_key};

/// How many overdue records one run of `reconcile` takes. The next run takes the rest.
const OVERDUE_A_TICK: usize = 4000;

/// The attribute that distinguishes one put of a record from all others.
const MARK: &str = "mark";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The store that the functions use.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    pub(super) client: Client,
    pub(super) table: String,
    retention_days: u32,
}

impl DynamoStore {
    /// Makes a store in `table`. DynamoDB's TTL deletes finished records and audit entries after `retention_days`.
    pub fn new(config: &SdkConfig, table: String, retention_days: u32) -> Self {
        Self { client: Client::new(config), table, retention_days }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        sweep: &SweepId,
        sk: String,
    ) -> Result<Option<Versioned<T>>, BoxError> {
        self.row(sweep, sk).await?.map(history::held).transpose()
    }

    async fn row(&self, sweep: &SweepId, sk: String) -> Result<Option<Row>, BoxError> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("pk", text(partition(sweep)))
            .key("sk", text(sk))
            .consistent_read(true)
            .send()
            .await?;
        Ok(found.item)
    }

    pub(super) async fn trials(&self, sweep: &SweepId) -> Result<Vec<Trial>, BoxError> {
        self.query(partition(sweep), TRIAL.to_owned(), Some(rows::RECORD), rows::record).await
    }

    /// Returns those trials of a page that have a record.
    pub(super) async fn page(&self, sweep: &SweepId, indexes: Range<u32>) -> Result<Vec<Trial>, BoxError> {
        if indexes.is_empty() {
            return Ok(Vec::new());
        }
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", text(partition(sweep)))
            .expression_attribute_values(":first", text(trial_key(indexes.start)))
            .expression_attribute_values(":last", text(trial_key(indexes.end - 1)))
            .projection_expression("#only")
            .expression_attribute_names("#only", rows::RECORD)
            .consistent_read(true);
        collected(query, rows::record).await
    }

    /// Returns the audit entries of a trial, or of the sweep itself.
    pub(super) async fn history(&self, sweep: &SweepId, index: Option<u32>) -> Result<History, BoxError> {
        let sk = index.map_or_else(|| META.to_owned(), trial_key);
        // The record is read before the pages, so that an entry that moves from it to a page meanwhile is found twice
        // rather than never.
        let held = self.row(sweep, sk.clone()).await?;
        let mut entries = held.map_or_else(|| Ok(History::new()), |row| history::entries(&row))?;
        for page in self.query(partition(sweep), history::prefix(&sk), None, |row| history::entries(&row)).await? {
            entries.extend(page);
        }
        Ok(entries)
    }

    /// Returns the trials that a resource belongs to. The read is strongly consistent, because the pointer may be new:
    /// a reclaim can follow the attachment at once. This read is all that an event about a resource of others costs.
    async fn referring(&self, resource: &str) -> Result<Vec<TrialRef>, BoxError> {
        let pointed = |row: Row| rows::pointed(&row).ok_or_else(|| "a pointer to no trial".into());
        self.query(rows::resource_partition(resource), TRIAL.to_owned(), None, pointed).await
    }

    /// Returns the rows of a partition whose sort key has the prefix, in the order of the keys, or one attribute of
    /// each.
    async fn query<T>(
        &self,
        pk: String,
        prefix: String,
        attribute: Option<&str>,
        read: impl Fn(Row) -> Result<T, BoxError>,
    ) -> Result<Vec<T>, BoxError> {
        let query = self.of_partition(pk, prefix).consistent_read(true);
        let query = match attribute {
            // The query uses a placeholder for the attribute's name, because DynamoDB reserves many words.
            Some(name) => query.projection_expression("#only").expression_attribute_names("#only", name),
            None => query,
        };
        collected(query, read).await
    }

    /// Makes the query for the rows of a partition whose sort key has the prefix.
    fn of_partition(&self, pk: String, prefix: String) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", text(pk))
            .expression_attribute_values(":prefix", text(prefix))
    }

    /// Puts the row about a trial for decisions about others, unless a row of a later version of the record is there.
    async fn put_peer(&self, row: Row, version: u64) -> Result<(), CommitError> {
        let request = self.client.put_item().table_name(&self.table).set_item(Some(row));
        let put = request
            .condition_expression("attribute_not_exists(pk) OR version < :version")
            .expression_attribute_values(":version", number(version));
        match conditional(put.send().await) {
            Ok(()) | Err(CommitError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reserves something, unless another owner has reserved it.
    async fn reserve(&self, sweep: &SweepId, reservation: &Reservation, now: Timestamp) -> Result<(), CommitError> {
        let until = now.checked_add(RESERVED).unwrap_or(now);
        let row = rows::reservation_row(sweep, reservation, until);
        let request = self.client.put_item().table_name(&self.table).set_item(Some(row));
        // The request uses placeholders for the attributes' names, because DynamoDB reserves many words.
        let put = request
            .condition_expression("attribute_not_exists(pk) OR #owner = :owner OR #until < :now")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":owner", number(reservation.owner))
            .expression_attribute_values(":now", number(now.as_second()));
        conditional(put.send().await)
    }

    /// Returns the records past their due time, those with the earliest due time first, and that earliest due time.
    async fn overdue(&self, now: Timestamp) -> Result<View, BoxError> {
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            let mut rows = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(INDEX)
                .key_condition_expression("#open = :open")
                .filter_expression("due <= :now")
                .expression_attribute_names("#open", INDEX)
                .expression_attribute_values(":open", text(format!("due#{shard}")))
                .expression_attribute_values(":now", text(sortable(now)))
                .into_paginator()
                .items()
                .send();
            while let Some(row) = rows.next().await {
                found.extend(rows::overdue_record(&row?));
            }
        }
        found.sort_by_key(|(due, _)| *due);
        let oldest_due = found.first().map(|(due, _)| *due);
        let overdue = found.into_iter().take(OVERDUE_A_TICK).map(|(_, record)| record).collect();
        Ok(View { overdue, oldest_due, ..View::default() })
    }

    /// Puts a row that has the same content whenever it is put.
    async fn put(&self, row: Row) -> Result<(), CommitError> {
        let request = self.client.put_item().table_name(&self.table).set_item(Some(row));
        request.send().await.map(drop).map_err(|error| CommitError::Failed(error.into()))
    }

    /// Puts a record if the stored version is the one before. The SDK repeats a put whose answer is lost. No other put
    /// has its mark, so the repeated one finds by the mark that the first one took effect.
    async fn put_record(&self, row: Row, before: u64, mark: AttributeValue) -> Result<(), CommitError> {
        let request = self.client.put_item().table_name(&self.table).set_item(Some(row));
        let request = match before {
            0 => request.condition_expression("attribute_not_exists(pk) OR mark = :mark"),
            held => request
                .condition_expression("version = :held OR mark = :mark")
                .expression_attribute_values(":held", number(held)),
        };
        conditional(request.expression_attribute_values(":mark", mark).send().await)
    }

    /// Returns when a row expires. Nothing expires while a kept snapshot may need it.
    fn expires(&self, now: Timestamp) -> AttributeValue {
        let days = i64::from(self.retention_days).max(LONGEST_KEPT_DAYS);
        number(now.as_second().saturating_add(days * 86_400))
    }

    /// Returns the rows that one change writes.
    fn writes(&self, view: &View, change: &Change, audit: &Audit) -> Result<Writes, BoxError> {
        let before = view.version_of(&change.record);
        let expires = self.expires(audit.at);
        let mark = number(mark());
        let mut record = rows::record_row(change, before + 1, expires.clone())?;
        record.insert(MARK.to_owned(), mark.clone());
        let newest = (!change.figures_only).then(|| (before + 1, audit.clone()));
        let Kept { record, recent, page } = history::keep(record, &view.recent_of(&change.record), newest)?;
        let mut ahead: Vec<Row> = page.into_iter().map(|page| rows::expiring(page, expires.clone())).collect();
        if let Record::Trial(trial) = &change.record {
            let resources: BTreeSet<&str> = view.new_references(change).into_iter().collect();
            ahead.extend(resources.into_iter().map(|id| rows::expiring(rows::pointer_row(id, trial), expires.clone())));
        }
        Ok(Writes { ahead, record, before, mark, recent })
    }
}

/// The rows that one change writes, in this order. Until the record is written, the rows ahead of it do not change what
/// is read of the record.
struct Writes {
    /// The last page of the history, if it is full, and pointers from the record's new resources.
    ahead: Vec<Row>,
    record: Row,
    /// The version of the stored record before the change.
    before: u64,
    /// The mark, which no other put of the record has.
    mark: AttributeValue,
    /// The audit entries that are stored in the record after the change.
    recent: History,
}

impl Store for DynamoStore {
    async fn load(&self, subject: &Subject, now: Timestamp) -> Result<View, BoxError> {
        Ok(match subject {
            Subject::Sweep(sweep) => View { sweep: self.get(sweep, META.into()).await?, ..View::default() },
            Subject::Trial(id, index) => {
                let (sweep, trial) = tokio::try_join!(self.get(id, META.into()), self.get(id, trial_key(*index)))?;
                View { sweep, trial, ..View::default() }
            }
            Subject::Comparison(id, index) => {
                let (sweep, trial) = (self.get(id, META.into()), self.get(id, trial_key(*index)));
                let (sweep, trial, peers) = tokio::try_join!(sweep, trial, self.peers(id))?;
                View { sweep, trial, peers: Some(peers), ..View::default() }
            }
            Subject::Settlement(id, page) => {
                let sweep: Option<Versioned<Sweep>> = self.get(id, META.into()).await?;
                let indexes = sweep.as_ref().map_or(0..0, |held| held.record.page(*page));
                View { sweep, trials: self.page(id, indexes).await?, ..View::default() }
            }
            Subject::Resource(id) => View { referring: self.referring(id).await?, ..View::default() },
            Subject::Overdue => self.overdue(now).await?,
        })
    }

    /// The read is not strongly consistent, which costs half. A row that it misses counts in the next decision.
    async fn peers(&self, sweep: &SweepId) -> Result<BTreeMap<u32, Peer>, BoxError> {
        let query = self.of_partition(partition(sweep), rows::PEER.to_owned());
        let rows = collected(query.consistent_read(false), |row| rows::peer(&row)).await?;
        Ok(rows.into_iter().collect())
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<History, CommitError> {
        let Writes { ahead, record, before, mark, recent } =
            self.writes(view, change, audit).map_err(CommitError::Failed)?;
        let (sweep, ..) = rows::address(&change.record);
        for reservation in &change.reserved {
            self.reserve(sweep, reservation, audit.at).await?;
        }
        for row in ahead {
            self.put(row).await?;
        }
        self.put_record(record, before, mark).await?;
        if let Some((trial, peer, version)) = view.peer_of(change) {
            self.put_peer(rows::peer_row(trial, &peer, version, self.expires(audit.at)), version).await?;
        }
        Ok(recent)
    }
}

impl Telemetry for DynamoStore {
    fn measured(&self, about: &About, metrics: &[Metric], now: Timestamp) {
        emf::publish(&self.table, about, metrics, now);
    }
}

/// Reads all pages of a query, in order.
async fn collected<T>(
    query: QueryFluentBuilder,
    read: impl Fn(Row) -> Result<T, BoxError>,
) -> Result<Vec<T>, BoxError> {
    let mut pages = query.into_paginator().items().send();
    let mut found = Vec::new();
    while let Some(row) = pages.next().await {
        found.push(read(row?)?);
    }
    Ok(found)
}

/// Treats a put whose condition does not hold as a conflict.
fn conditional<T>(put: Result<T, SdkError<PutItemError>>) -> Result<(), CommitError> {
    match put {
        Ok(_) => Ok(()),
        Err(error) if error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception) => {
            Err(CommitError::Conflict)
        }
        Err(error) => Err(CommitError::Failed(error.into())),
    }
}

/// Returns a random number, which differs between two calls and between two processes.
#[expect(clippy::disallowed_types, reason = "nothing is decided by it")]
fn mark() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
