//! Stored state in one DynamoDB table.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `SWEEP#<id>` | `META` | the sweep |
//! | `SWEEP#<id>` | `TRIAL#<index, 6 digits>` | a trial, from its first event on |
//! | `SWEEP#<id>` | `LOG#<META or index>#<version>` | one audit row a change |
//! | `RES#<i-…, vol-… or snap-…>` | `TRIAL#<sweep>#<index>` | pointer: the resource belongs to that trial |
//!
//! Audit rows have a prefix of their own, so that reading all trials does not read their history.
//! `open`/`due` is the sparse index over open work, in [`SHARDS`] shards; records that are done
//! move to its partition [`CLOSED`] (sweeps, for listing) or leave it (trials).

mod rows;

use std::collections::{BTreeSet, HashMap};
use std::error::Error;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::emf;
use super::reader::Entry;
use crate::event::{Event, Subject};
use crate::ids::SweepId;
use crate::metrics::Metric;
use crate::store::{Audit, Change, CommitError, Held, Record, Store, View};
use crate::trial::Trial;
use crate::workspace::TrialRef;
use rows::{Row, TRIAL, history, number, sortable, trial_number};

pub(super) use rows::{CLOSED, INDEX, META, SHARDS, field, partition, text, trial_key};

/// Overdue records that one tick takes from one shard; the next tick takes the rest.
const OVERDUE_PER_SHARD: i32 = 500;

type BoxError = Box<dyn Error + Send + Sync>;

/// The store behind the functions.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    pub(super) client: Client,
    pub(super) table: String,
    retention_days: u32,
}

impl DynamoStore {
    /// A store in `table`; what is done is kept for `retention_days` (DynamoDB's TTL deletes it).
    pub fn new(config: &SdkConfig, table: String, retention_days: u32) -> Self {
        Self { client: Client::new(config), table, retention_days }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        sweep: &SweepId,
        sk: String,
    ) -> Result<Option<Held<T>>, BoxError> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("pk", text(partition(sweep)))
            .key("sk", text(sk))
            .consistent_read(true)
            .send()
            .await?;
        found.item.map(rows::held).transpose()
    }

    pub(super) async fn trials(&self, sweep: &SweepId) -> Result<Vec<Trial>, BoxError> {
        self.query(partition(sweep), TRIAL.to_owned(), |row| Ok(rows::held::<Trial>(row)?.record)).await
    }

    /// Audit rows of a trial, or of the sweep itself, in the order in which they were written.
    pub(super) async fn history(&self, sweep: &SweepId, index: Option<u32>) -> Result<Vec<Entry>, BoxError> {
        let of = index.map_or_else(|| META.to_owned(), trial_number);
        self.query(partition(sweep), history(&of), |row| rows::entry(&row)).await
    }

    /// Strongly consistent, because a pointer may have been written a moment ago: a reclaim can follow the attachment
    /// at once. For a resource of somebody else's this is the one read that its event costs.
    async fn referring(&self, resource: &str) -> Result<Vec<TrialRef>, BoxError> {
        let pointed = |row: Row| rows::pointed(&row).ok_or_else(|| "a pointer to no trial".into());
        self.query(rows::resource_partition(resource), TRIAL.to_owned(), pointed).await
    }

    /// Everything of a partition whose sort key has the prefix, in the order of the keys.
    async fn query<T>(
        &self,
        pk: String,
        prefix: String,
        read: impl Fn(Row) -> Result<T, BoxError>,
    ) -> Result<Vec<T>, BoxError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", text(pk))
            .expression_attribute_values(":prefix", text(prefix))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(row) = pages.next().await {
            found.push(read(row?)?);
        }
        Ok(found)
    }

    /// Records past their due time, and when the first of them was due.
    async fn overdue(&self, now: Timestamp) -> Result<View, BoxError> {
        let mut view = View::default();
        for shard in 0..SHARDS {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(INDEX)
                .key_condition_expression("#open = :open AND due <= :now")
                .expression_attribute_names("#open", INDEX)
                .expression_attribute_values(":open", text(format!("due#{shard}")))
                .expression_attribute_values(":now", text(sortable(now)))
                .limit(OVERDUE_PER_SHARD)
                .send()
                .await?;
            view.overdue.extend(page.items().iter().filter_map(rows::overdue_record));
            // The index sorts by due time.
            let oldest = page.items().first().and_then(|row| field(row, "due")?.parse().ok());
            view.oldest_due = view.oldest_due.into_iter().chain(oldest).min();
        }
        Ok(view)
    }

    /// Half the price of a transaction.
    async fn put(&self, put: Put) -> Result<(), CommitError> {
        let request = self.client.put_item().table_name(put.table_name).set_item(Some(put.item));
        let request = request.set_condition_expression(put.condition_expression);
        match request.set_expression_attribute_values(put.expression_attribute_values).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(is_held) => Err(CommitError::Conflict),
            Err(error) => Err(CommitError::Failed(error.into())),
        }
    }

    fn expires(&self, now: Timestamp) -> AttributeValue {
        number(now.as_second().saturating_add(i64::from(self.retention_days) * 86_400))
    }

    /// The puts of one change: the record under its condition, its audit row unless only figures have changed, and
    /// pointers from what it has newly got.
    fn puts(&self, view: &View, change: &Change, audit: &Audit) -> Result<Vec<Put>, BoxError> {
        let held = view.version_of(&change.record);
        let expires = self.expires(audit.at);
        let put = |row: Row| Put::builder().table_name(&self.table).set_item(Some(row));
        let record = put(rows::record_row(change, held + 1, expires.clone())?)
            .condition_expression(if held == 0 { "attribute_not_exists(pk)" } else { "version = :held" })
            .set_expression_attribute_values((held > 0).then(|| HashMap::from([(":held".to_owned(), number(held))])));
        let mut puts = vec![record];
        if !change.figures_only {
            puts.push(put(rows::audit_row(change, held + 1, audit, expires.clone())));
        }
        if let Record::Trial(trial) = &change.record {
            // A transaction takes no row twice.
            let resources: BTreeSet<&str> = view.new_references(change).into_iter().collect();
            puts.extend(resources.into_iter().map(|id| put(rows::pointer_row(id, trial, expires.clone()))));
        }
        puts.into_iter().map(|put| Ok(put.build()?)).collect()
    }
}

impl Store for DynamoStore {
    async fn load(&self, subject: &Subject, now: Timestamp) -> Result<View, BoxError> {
        Ok(match subject {
            Subject::Sweep(sweep) => View { sweep: self.get(sweep, META.into()).await?, ..View::default() },
            Subject::Trial(id, index) => {
                let (sweep, trial) = tokio::try_join!(self.get(id, META.into()), self.get(id, trial_key(*index)))?;
                View { sweep, trial, ..View::default() }
            }
            Subject::Settlement(id) => {
                let (sweep, trials) = tokio::try_join!(self.get(id, META.into()), self.trials(id))?;
                View { sweep, trials, ..View::default() }
            }
            Subject::Resource(id) => View { referring: self.referring(id).await?, ..View::default() },
            Subject::Overdue => self.overdue(now).await?,
        })
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<(), CommitError> {
        let mut puts = self.puts(view, change, audit).map_err(CommitError::Failed)?;
        if puts.len() == 1 {
            return self.put(puts.remove(0)).await;
        }
        let writes = puts.into_iter().map(|put| TransactWriteItem::builder().put(put).build()).collect();
        match self.client.transact_write_items().set_transact_items(Some(writes)).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(is_conflict) => Err(CommitError::Conflict),
            Err(error) => Err(CommitError::Failed(error.into())),
        }
    }

    fn measured(&self, event: &Event, metrics: &[Metric], now: Timestamp) {
        emf::publish(&self.table, event, metrics, now);
    }
}

/// Another writer was first, or its transaction is at it at this moment.
fn is_held(error: &PutItemError) -> bool {
    error.is_conditional_check_failed_exception() || error.is_transaction_conflict_exception()
}

/// Another writer was first, or is at it at this moment.
fn is_conflict(error: &TransactWriteItemsError) -> bool {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return error.is_transaction_in_progress_exception();
    };
    let conflicts = ["ConditionalCheckFailed", "TransactionConflict"];
    cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).any(|code| conflicts.contains(&code))
}
