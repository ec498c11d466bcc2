//! Reads stored state for people: `ls`, `status`, the live view.

use std::ops::Range;

use aws_config::SdkConfig;

use super::dynamodb::{CLOSED, DynamoStore, INDEX, META, SHARDS, field, text, trial_key};
use spotsweep_control_plane::store::Audit;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;

/// The table could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {what} failed")]
pub struct ReadError {
    what: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Reads the table, never writes it.
#[derive(Debug, Clone)]
pub struct Reader(DynamoStore);

impl Reader {
    /// A reader of `table`.
    pub fn new(config: &SdkConfig, table: String) -> Self {
        Self(DynamoStore::new(config, table, super::RETENTION_DAYS))
    }

    /// One sweep, or none of that id.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn sweep(&self, id: &SweepId) -> Result<Option<Sweep>, ReadError> {
        let found = self.0.get::<Sweep>(id, META.into()).await;
        Ok(found.map_err(failed("a sweep"))?.map(|held| held.record))
    }

    /// A sweep's trials that have a row, by index: those that have ever started.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn trials(&self, id: &SweepId) -> Result<Vec<Trial>, ReadError> {
        self.0.trials(id).await.map_err(failed("the trials"))
    }

    /// Those trials of a range of indexes that have a row.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn trials_among(&self, id: &SweepId, indexes: Range<u32>) -> Result<Vec<Trial>, ReadError> {
        self.0.page(id, indexes).await.map_err(failed("some trials"))
    }

    /// One trial by its index; none where it has never started.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn trial(&self, id: &SweepId, index: u32) -> Result<Option<Trial>, ReadError> {
        let found = self.0.get::<Trial>(id, trial_key(index)).await;
        Ok(found.map_err(failed("a trial"))?.map(|held| held.record))
    }

    /// The history of a trial, or without an index of the sweep itself, oldest first; empty where nothing has changed
    /// yet, or where it is older than the deployment's retention.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn history(&self, id: &SweepId, index: Option<u32>) -> Result<Vec<Audit>, ReadError> {
        let history = self.0.history(id, index).await.map_err(failed("the history"))?;
        Ok(history.into_values().collect())
    }

    /// Every sweep that the table has, newest first.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn sweeps(&self) -> Result<Vec<Sweep>, ReadError> {
        self.of_partitions(open_partitions().chain([CLOSED.to_owned()])).await
    }

    /// The sweeps that are not over, newest first; the others are not read.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn open_sweeps(&self) -> Result<Vec<Sweep>, ReadError> {
        self.of_partitions(open_partitions()).await
    }

    async fn of_partitions(&self, partitions: impl Iterator<Item = String>) -> Result<Vec<Sweep>, ReadError> {
        let mut sweeps: Vec<Sweep> = Vec::new();
        for partition in partitions {
            for id in self.ids(partition).await.map_err(failed("the sweeps"))? {
                sweeps.extend(self.sweep(&id).await?);
            }
        }
        sweeps.sort_by_key(|sweep| (std::cmp::Reverse(sweep.upload.uploaded_at), sweep.id.clone()));
        // One that changed its partition between two of the queries was found in both.
        sweeps.dedup_by(|left, right| left.id == right.id);
        Ok(sweeps)
    }

    async fn ids(&self, partition: String) -> Result<Vec<SweepId>, Box<dyn std::error::Error + Send + Sync>> {
        let mut rows = self
            .0
            .client
            .query()
            .table_name(&self.0.table)
            .index_name(INDEX)
            .key_condition_expression("#open = :open AND sk = :sweep")
            .expression_attribute_names("#open", INDEX)
            .expression_attribute_values(":open", text(partition))
            .expression_attribute_values(":sweep", text(META))
            .into_paginator()
            .items()
            .send();
        let mut ids = Vec::new();
        while let Some(row) = rows.next().await {
            ids.extend(field(&row?, "pk").and_then(|pk| SweepId::parse(pk.strip_prefix("SWEEP#")?)));
        }
        Ok(ids)
    }
}

fn open_partitions() -> impl Iterator<Item = String> {
    (0..SHARDS).map(|shard| format!("due#{shard}"))
}

fn failed(what: &'static str) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> ReadError {
    move |source| ReadError { what, source }
}
