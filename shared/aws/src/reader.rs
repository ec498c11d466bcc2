//! Reads the stored state for people: for `ls`, `status` and the live view.

use std::ops::Range;

use aws_config::SdkConfig;

use super::dynamodb::{CLOSED, DynamoStore, INDEX, META, SHARDS, field, text, trial_key};
use spotsweep_control_plane::store::Audit;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;

/// The error of a failed read of the table.
#[derive(Debug, thiserror::Error)]
#[error("reading {what} failed")]
pub struct ReadError {
    what: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Reads the table, and never writes it.
#[derive(Debug, Clone)]
pub struct Reader(DynamoStore);

impl Reader {
    /// Makes a reader of `table`.
    pub fn new(config: &SdkConfig, table: String) -> Self {
        Self(DynamoStore::new(config, table, super::RETENTION_DAYS))
    }

    /// Returns one sweep; `None` if there is none of that id.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn sweep(&self, id: &SweepId) -> Result<Option<Sweep>, ReadError> {
        let found = self.0.get::<Sweep>(id, META.into()).await;
        Ok(found.map_err(failed("a sweep"))?.map(|held| held.record))
    }

    /// Returns the trials of a sweep that have a row, by index. Trials that have never started have none.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn trials(&self, id: &SweepId) -> Result<Vec<Trial>, ReadError> {
        self.0.trials(id).await.map_err(failed("the trials"))
    }

    /// Returns those trials of a range of indexes that have a row.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn trials_among(&self, id: &SweepId, indexes: Range<u32>) -> Result<Vec<Trial>, ReadError> {
        self.0.page(id, indexes).await.map_err(failed("some trials"))
    }

    /// Returns one trial by its index; `None` if it has never started.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn trial(&self, id: &SweepId, index: u32) -> Result<Option<Trial>, ReadError> {
        let found = self.0.get::<Trial>(id, trial_key(index)).await;
        Ok(found.map_err(failed("a trial"))?.map(|held| held.record))
    }

    /// Returns the history of a trial, or without an index that of the sweep itself, oldest first. It is empty if
    /// nothing has changed yet, or if it is older than the deployment's retention.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn history(&self, id: &SweepId, index: Option<u32>) -> Result<Vec<Audit>, ReadError> {
        let history = self.0.history(id, index).await.map_err(failed("the history"))?;
        Ok(history.into_values().collect())
    }

    /// Returns every sweep in the table, newest first.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn sweeps(&self) -> Result<Vec<Sweep>, ReadError> {
        self.of_partitions(open_partitions().chain([CLOSED.to_owned()])).await
    }

    /// Returns the sweeps that are not over, newest first. The others are not read.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
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
        // A sweep that moved to another partition between two queries was found in both.
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
