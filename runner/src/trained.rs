//! A training command that has ended.

use std::io;
use std::time::{Duration, SystemTime};

use spotsweep_protocol::claim::{Outputs, Rollback};
use spotsweep_seal::{AtEnd, BadEnd, Sealer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::child::Ended;
use crate::record::Recorded;
use crate::upload::{UploadError, Uploader};
use crate::workplace::Workplace;
use crate::{mlflow, progress};

/// The end of the training command, and its results.
pub(crate) struct Trained {
    pub(crate) ended: Ended,
    pub(crate) started: SystemTime,
    pub(crate) seconds: f64,
    pub(crate) recorded: Recorded,
    pub(crate) place: Workplace,
    /// Whether MLflow was to go on with the run of an earlier attempt.
    pub(crate) goes_on_with_run: bool,
    pub(crate) sealer: Option<(Sealer, AtEnd)>,
    /// The result of the last seal.
    pub(crate) sealed: Option<io::Result<Sealer>>,
    pub(crate) uploading: Uploading,
    /// The outputs that were uploaded.
    pub(crate) outputs: Outputs,
}

/// An upload in the background; `None` when it has ended.
pub(crate) struct Uploading(Option<(JoinHandle<Uploader>, Option<oneshot::Sender<()>>)>);

impl Uploading {
    /// Uploads every `every`.
    pub(crate) fn start(uploader: Uploader, every: Duration) -> Self {
        let (running, stop) = uploader.run(every);
        Self(Some((running, Some(stop))))
    }

    /// Waits until the upload has ended the round that is under way.
    pub(crate) async fn last_round(&mut self) -> Result<Uploader, UploadError> {
        let Some((running, stop)) = &mut self.0 else { return Err(UploadError::NoTime) };
        // Sending fails only if the upload has ended, which the next line reports.
        let _ = stop.take().map(|stop| stop.send(()));
        let uploader = running.await;
        self.0 = None;
        Ok(uploader?)
    }

    /// Ends the upload, and waits until it has closed its files.
    pub(crate) async fn abort(&mut self) {
        if let Some((running, _)) = self.0.take() {
            running.abort();
            let _ = running.await;
        }
    }
}

impl Trained {
    /// Whether the command has failed because MLflow did not go on with the run. The checkpoint is then still good.
    pub(crate) fn is_without_its_run(&self) -> bool {
        self.ended.code != 0 && self.goes_on_with_run && mlflow::has_refused(self.recorded.own_log())
    }

    /// Moves the newest checkpoint away if the command has failed on it: without a new step, without a new checkpoint.
    pub(crate) fn roll_back(&mut self) -> io::Result<Option<Rollback>> {
        let Some((sealer, _)) = &mut self.sealer else { return Ok(None) };
        let disk = self.place.disk();
        let record = self.place.own.metrics()?;
        let has_new_step = record.map_or(Ok(false), |record| progress::has_new_step(record, self.started))?;
        if has_new_step || sealer.has_new_checkpoint(&disk)? {
            return Ok(None);
        }
        let end = BadEnd { exit_code: self.ended.code, error: self.recorded.error() };
        sealer.roll_back(&disk, &end)
    }
}
