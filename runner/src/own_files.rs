//! The runner's own files of one attempt: on the workspace, for later attempts, or else in a temporary folder.
//!
//! Only the runner can write to their folder. [`take_charge`](crate::workspace::take_charge) ensures that on a
//! workspace.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;

use spotsweep_beneath::Folder;
use spotsweep_seal::OWN;

/// Every metric line.
const METRICS: &str = "metrics.jsonl";
/// The end of the log that an interrupted attempt leaves to the next one.
const LOG: &str = "train.log";
/// Values of the metric at which trials are compared.
const SERIES: &str = "rungs.jsonl";
/// This file exists if MLflow has refused to go on with a run.
const NO_RUN: &str = "mlflow-refused";
/// The longest log that the runner writes.
pub(crate) const MOST_LOG_BYTES: u64 = 1024 * 1024;
/// The record of metric lines stops growing here.
pub(crate) const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// The place of the files.
#[derive(Debug, Clone)]
pub(crate) enum OwnFiles {
    /// In the runner's own folder on the workspace with this mount point.
    Workspace(PathBuf),
    /// In this folder, which is deleted with the attempt.
    Temporary(PathBuf),
}

impl OwnFiles {
    fn folder(&self) -> io::Result<Folder> {
        match self {
            Self::Workspace(point) => Folder::trusted(point)?.folder(OWN.as_ref()),
            Self::Temporary(folder) => Folder::trusted(folder),
        }
    }

    /// Opens the record of metric lines to continue it, and returns its size. An incomplete last line of the attempt
    /// before is cut off.
    pub(crate) fn go_on(&self) -> io::Result<(File, u64)> {
        let record = self.folder()?.append(METRICS.as_ref())?;
        let mut written = Vec::new();
        (&record).take(MAX_RECORD_BYTES).read_to_end(&mut written)?;
        let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1);
        record.set_len(whole)?;
        Ok((record, whole))
    }

    /// Opens the record for reading; `None` if there is none.
    pub(crate) fn metrics(&self) -> io::Result<Option<impl Read + use<>>> {
        match self.folder().and_then(|own| own.open(METRICS.as_ref())) {
            Ok(record) => Ok(Some(record.take(MAX_RECORD_BYTES))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The metric's series that the attempts before have logged; `None` if there is none.
    pub(crate) fn series(&self) -> io::Result<Option<impl Read + use<>>> {
        match self.folder().and_then(|own| own.open(SERIES.as_ref())) {
            Ok(series) => Ok(Some(series.take(MAX_RECORD_BYTES))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the series.
    pub(crate) fn keep_series(&self, lines: &[u8]) -> io::Result<()> {
        self.folder()?.write(SERIES.as_ref(), lines)
    }

    /// Continues the series.
    pub(crate) fn append_to_series(&self, lines: &[u8]) -> io::Result<()> {
        self.folder()?.append(SERIES.as_ref())?.write_all(lines)
    }

    /// The log of the attempts before.
    pub(crate) fn log(&self) -> Option<Vec<u8>> {
        let Self::Workspace(_) = self else { return None };
        let mut log = Vec::new();
        let file = self.folder().and_then(|own| own.open(LOG.as_ref())).ok()?;
        file.take(MOST_LOG_BYTES).read_to_end(&mut log).ok()?;
        Some(log)
    }

    /// Keeps the log for the next attempt, if it can find it on a workspace.
    pub(crate) fn keep_log(&self, log: &[u8]) -> io::Result<()> {
        match self {
            Self::Workspace(_) => self.folder()?.write(LOG.as_ref(), log),
            Self::Temporary(_) => Ok(()),
        }
    }

    /// Whether the training may go on with a run of MLflow. Without a workspace the training starts from its beginning,
    /// and so does its run.
    pub(crate) fn may_go_on_with_a_run(&self) -> bool {
        let Self::Workspace(_) = self else { return false };
        let refused = self.folder().and_then(|own| own.open(NO_RUN.as_ref()));
        refused.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Makes each later attempt start its own run of MLflow.
    pub(crate) fn go_on_with_no_run(&self) -> io::Result<()> {
        self.folder()?.write(NO_RUN.as_ref(), b"")
    }
}
