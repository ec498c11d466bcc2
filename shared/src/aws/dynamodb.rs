//! Stored state in one DynamoDB table.
//!
//! | pk | sk | what |
//! |---|---|---|
//! | `SWEEP#<id>` | `META` | the sweep |
//! | `SWEEP#<id>` | `TRIAL#<index, 6 digits>` | a trial, from its first event on |
//! | `SWEEP#<id>` | `LOG#<META or index>#<version>` | one audit row a change |
//!
//! Audit rows have a prefix of their own, so that reading all trials does not read their history.
//! `open`/`due` is the sparse index over open work, in [`SHARDS`] shards; records that are done
//! move to its partition [`CLOSED`] (sweeps, for listing) or leave it (trials).

use std::collections::HashMap;
use std::error::Error;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::command::DescribedJob;
use crate::event::Subject;
use crate::ids::{JobId, SweepId};
use crate::lifecycle::Sweep;
use crate::store::{Audit, Change, CommitError, Held, Overdue, Record, Store, View};
use crate::trial::Trial;

pub(super) const INDEX: &str = "open";
pub(super) const CLOSED: &str = "closed";
pub(super) const META: &str = "META";

/// Spreads open work over this many index partitions.
pub(super) const SHARDS: u32 = 8;

/// Overdue records that one tick takes from one shard; the next tick takes the rest.
const OVERDUE_PER_SHARD: i32 = 500;

type Row = HashMap<String, AttributeValue>;
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
        found.item.map(held).transpose()
    }

    pub(super) async fn trials(&self, sweep: &SweepId) -> Result<Vec<Trial>, BoxError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :pk AND begins_with(sk, :trial)")
            .expression_attribute_values(":pk", text(partition(sweep)))
            .expression_attribute_values(":trial", text("TRIAL#"))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut trials = Vec::new();
        while let Some(row) = pages.next().await {
            trials.push(held::<Trial>(row?)?.record);
        }
        Ok(trials)
    }

    async fn overdue(&self, now: Timestamp) -> Result<Vec<Overdue>, BoxError> {
        let mut overdue = Vec::new();
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
            overdue.extend(page.items().iter().filter_map(overdue_record));
        }
        Ok(overdue)
    }

    fn row(&self, change: &Change, version: u64, now: Timestamp) -> Result<Row, BoxError> {
        let (sweep, sk, shard) = address(&change.record);
        let mut row = Row::from([
            ("pk".to_owned(), text(partition(sweep))),
            ("sk".to_owned(), text(sk)),
            ("version".to_owned(), number(version)),
        ]);
        match &change.record {
            Record::Sweep(sweep) => row.insert("record".to_owned(), attribute(sweep)?),
            Record::Trial(trial) => {
                row.insert("job".to_owned(), text(trial.job.to_string()));
                row.insert("record".to_owned(), attribute(trial)?)
            }
        };
        match (change.due, &change.record) {
            (Some(due), _) => {
                row.insert(INDEX.to_owned(), text(format!("due#{shard}")));
                row.insert("due".to_owned(), text(sortable(due)));
            }
            (None, record) => {
                row.insert("expires".to_owned(), self.expires(now));
                if let Record::Sweep(sweep) = record {
                    row.insert(INDEX.to_owned(), text(CLOSED));
                    row.insert("due".to_owned(), text(sortable(sweep.upload.uploaded_at)));
                }
            }
        }
        Ok(row)
    }

    fn audit_row(&self, change: &Change, version: u64, audit: &Audit) -> Row {
        let (sweep, sk, _) = address(&change.record);
        let of = sk.strip_prefix("TRIAL#").unwrap_or(&sk);
        let commands = audit.commands.iter().map(|command| text(*command)).collect();
        Row::from([
            ("pk".to_owned(), text(partition(sweep))),
            ("sk".to_owned(), text(format!("LOG#{of}#{version:010}"))),
            ("at".to_owned(), text(sortable(audit.at))),
            ("event".to_owned(), text(audit.event)),
            ("answer".to_owned(), text(&audit.answer)),
            ("commands".to_owned(), AttributeValue::L(commands)),
            ("expires".to_owned(), self.expires(audit.at)),
        ])
    }

    fn expires(&self, now: Timestamp) -> AttributeValue {
        number(now.as_second().saturating_add(i64::from(self.retention_days) * 86_400))
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
            Subject::Overdue => View { overdue: self.overdue(now).await?, ..View::default() },
        })
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<(), CommitError> {
        let held = view.version_of(&change.record);
        let row = self.row(change, held + 1, audit.at).map_err(CommitError::Failed)?;
        let record = Put::builder()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression(if held == 0 { "attribute_not_exists(pk)" } else { "version = :held" })
            .set_expression_attribute_values((held > 0).then(|| HashMap::from([(":held".to_owned(), number(held))])));
        let log = Put::builder().table_name(&self.table).set_item(Some(self.audit_row(change, held + 1, audit)));
        let mut transaction = self.client.transact_write_items();
        for put in [record, log] {
            let put = put.build().map_err(|error| CommitError::Failed(error.into()))?;
            transaction = transaction.transact_items(TransactWriteItem::builder().put(put).build());
        }
        match transaction.send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(is_conflict) => Err(CommitError::Conflict),
            Err(error) => Err(CommitError::Failed(error.into())),
        }
    }
}

/// Another writer was first, or is at it at this moment.
fn is_conflict(error: &TransactWriteItemsError) -> bool {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return error.is_transaction_in_progress_exception();
    };
    let conflicts = ["ConditionalCheckFailed", "TransactionConflict"];
    cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).any(|code| conflicts.contains(&code))
}

pub(super) fn partition(sweep: &SweepId) -> String {
    format!("SWEEP#{sweep}")
}

fn trial_key(index: u32) -> String {
    format!("TRIAL#{index:06}")
}

/// Where a record lies, and its shard of the index.
fn address(record: &Record) -> (&SweepId, String, u32) {
    let shard = |id: &SweepId, index: u32| {
        let sum = id.as_str().bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        sum.wrapping_add(index) % SHARDS
    };
    match record {
        Record::Sweep(Sweep { id, .. }) => (id, META.to_owned(), shard(id, 0)),
        Record::Trial(Trial { sweep, index, .. }) => (sweep, trial_key(*index), shard(sweep, *index)),
    }
}

/// Reads an index row: keys, and the job where it is a trial's.
fn overdue_record(row: &Row) -> Option<Overdue> {
    let field = |name: &str| row.get(name)?.as_s().ok();
    let sweep = SweepId::parse(field("pk")?.strip_prefix("SWEEP#")?)?;
    let sk = field("sk")?;
    if sk == META {
        return Some(Overdue::Sweep(sweep));
    }
    let index = sk.strip_prefix("TRIAL#")?.parse().ok()?;
    Some(Overdue::Trial(DescribedJob { sweep, index: Some(index), job: JobId::from(field("job")?.clone()) }))
}

pub(super) fn held<T: DeserializeOwned>(mut row: Row) -> Result<Held<T>, BoxError> {
    let record = row.remove("record").ok_or("a row without its record")?;
    let version = row.get("version").and_then(|value| value.as_n().ok()).ok_or("a row without its version")?;
    let version = version.parse()?;
    let is_open = row.get(INDEX).and_then(|value| value.as_s().ok()).is_some_and(|open| open != CLOSED);
    let due =
        row.get("due").filter(|_| is_open).and_then(|value| value.as_s().ok()).map(|due| due.parse()).transpose()?;
    Ok(Held { record: serde_dynamo::from_attribute_value(record)?, version, due })
}

fn attribute<T: Serialize>(record: &T) -> Result<AttributeValue, BoxError> {
    Ok(serde_dynamo::to_attribute_value(record)?)
}

pub(super) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// RFC 3339 with always three decimals, so that text order is time order.
fn sortable(time: Timestamp) -> String {
    format!("{time:.3}")
}
