//! The sweep that a command is about, and what its commands have in common.

use std::collections::BTreeSet;

use spotsweep_aws::{Reader, is_gone};
use spotsweep_control_plane::sweep::{Plan, Sweep};
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::ids::SweepId;
use spotsweep_sweep_file::trials;

use crate::target::Table;
use crate::target::{self, Target};
use spotsweep_protocol::failure::{Context, Failure};

/// A sweep as the table has it.
pub(crate) struct Found {
    /// Its record.
    pub(crate) sweep: Sweep,
    /// Reads more of it.
    pub(crate) reader: Reader,
    /// The control plane that it is in.
    pub(crate) target: Target,
}

/// A sweep's id as somebody typed it.
pub(crate) fn id(text: &str) -> Result<SweepId, Failure> {
    SweepId::parse(text).ok_or_else(|| {
        Failure::usage(format!("{text:?} is no sweep id; `spotsweep ls` lists them, such as digits-1a2b3c4d5e6f"))
    })
}

/// Looks a sweep up.
pub(crate) async fn find(table: Table, sweep: &str) -> Result<Found, Failure> {
    let id = id(sweep)?;
    let target = target::table(table.name).await?;
    let reader = Reader::new(&target.config, target.name.clone());
    let sweep = reader.sweep(&id).await.context(|| format!("cannot read the table {}", target.name))?;
    let sweep = sweep.ok_or_else(|| Failure::new(format!("there is no sweep {id}; `spotsweep ls` lists them")))?;
    Ok(Found { sweep, reader, target })
}

impl Found {
    /// Reads its record anew.
    pub(crate) async fn refresh(&mut self) -> Result<(), Failure> {
        let read = self.reader.sweep(&self.sweep.id).await;
        let read = read.context(|| format!("cannot read the table {}", self.target.name))?;
        // A record that has expired in between stays what it was.
        self.sweep = read.unwrap_or_else(|| self.sweep.clone());
        Ok(())
    }

    /// What it runs; a sweep whose file is being read, or was rejected, has none.
    pub(crate) fn plan(&self) -> Result<&Plan, Failure> {
        let Sweep { id, stage, plan, .. } = &self.sweep;
        plan.as_ref().ok_or_else(|| Failure::new(format!("sweep {id} has no trials: it is {}", stage.name())))
    }

    /// Its trials that have ever started.
    pub(crate) async fn trials(&self) -> Result<Vec<Trial>, Failure> {
        let trials = self.reader.trials(&self.sweep.id).await;
        trials.context(|| format!("cannot read the table {}", self.target.name))
    }

    /// The indices without repetition, in order; each must be one of its trials'.
    pub(crate) fn indices(&self, named: &[u32]) -> Result<BTreeSet<u32>, Failure> {
        let Sweep { id, .. } = &self.sweep;
        let trials = self.plan()?.trials;
        match named.iter().find(|index| **index >= trials) {
            Some(index) => Err(Failure::usage(format!(
                "sweep {id} has no trial {index}: its {trials} trials have the indices 0 to {}",
                trials.saturating_sub(1)
            ))),
            None => Ok(named.iter().copied().collect()),
        }
    }

    /// Its bucket.
    pub(crate) fn bucket(&self) -> &str {
        &self.sweep.upload.bucket
    }

    /// Reads its bucket.
    pub(crate) fn s3(&self) -> aws_sdk_s3::Client {
        spotsweep_aws::path_style_s3(&self.target.config)
    }

    /// An object of its bucket; none where there is no such key.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.read_version(key, None).await
    }

    /// A version of an object; none where it is gone.
    pub(crate) async fn read_version(&self, key: &str, version: Option<String>) -> Result<Option<Vec<u8>>, Failure> {
        let cannot_read = || format!("cannot read s3://{}/{key}", self.bucket());
        let got = self.s3().get_object().bucket(self.bucket()).key(key).set_version_id(version).send().await;
        let got = match got {
            Err(error) if is_gone(&error) => return Ok(None),
            got => got.context(cannot_read)?,
        };
        Ok(Some(got.body.collect().await.context(cannot_read)?.to_vec()))
    }

    /// `trials.jsonl`: each trial's parameters, by its index.
    pub(crate) async fn parameters(&self) -> Result<Vec<u8>, Failure> {
        let key = trials::lines_key(&self.sweep.id);
        let read = self.read(&key).await?;
        read.ok_or_else(|| Failure::new(format!("s3://{}/{key} is gone: it has the trials' parameters", self.bucket())))
    }
}
