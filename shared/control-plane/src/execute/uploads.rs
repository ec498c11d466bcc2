//! S3: reads the dropped file, and writes its answer and the trials.

use super::listing::pin;
use super::multipart::Writer;
use super::objects::{JSON, put, read};
use super::{Executed, Service, Taken};
use crate::calls::{Body as _, CallError, Draw, GetObject, NO_SUCH_KEY, Place, S3};
use crate::command::Command;
use crate::outcome::{Dropped, Outcome};
use spotsweep_protocol::claim::{Preparation, packed_key};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::continuation::{Continuation, Listed};
use spotsweep_records::sweep::upload::{Given, Upload};
use spotsweep_records::sweep::{Plan, Prepared};
use spotsweep_report::answer::{plan_json, rejection_json};
use spotsweep_sweep_file::trials;
use spotsweep_sweep_file::{MAX_FILE_BYTES, Rejected};

/// Returns the service that reads dropped files, and writes trials and answers.
pub fn uploads(s3: impl S3, secrets: impl Draw) -> impl Service {
    Uploads { s3, secrets }
}

#[derive(Debug)]
struct Uploads<C, D> {
    s3: C,
    secrets: D,
}

impl<C: S3, D: Draw> Service for Uploads<C, D> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let s3 = &self.s3;
        Ok(match *command {
            Command::ReadUpload { sweep, upload } => Box::pin(read_upload(s3, sweep, upload)),
            Command::StoreTrials { sweep, bucket, prepared } => Box::pin(self.store_trials(sweep, bucket, prepared)),
            Command::ReadSnapshots { sweep, bucket, first } => Box::pin(read_snapshots(s3, sweep, bucket, first)),
            Command::WritePlan { sweep, upload, plan } => Box::pin(write_plan(s3, sweep, upload, plan)),
            Command::WriteRejection { sweep, upload, rejected } => {
                Box::pin(write_rejection(s3, sweep, upload, rejected))
            }
            other => return Err(Box::new(other)),
        })
    }
}

async fn read_upload(s3: &impl S3, sweep: SweepId, upload: Upload) -> Executed {
    let wanted = GetObject { version: upload.version_id.clone(), ..GetObject::of(&upload.bucket, &upload.key) };
    let object = match s3.get_object(wanted).await {
        Ok(object) => object,
        Err(error) if error.refusal() == Some(NO_SUCH_KEY) => {
            return Ok(vec![Outcome::UploadRead { sweep, file: Dropped::Gone }]);
        }
        Err(error) => return Err(error.into()),
    };
    if object.length > MAX_FILE_BYTES {
        return Ok(vec![Outcome::UploadRead { sweep, file: Dropped::TooLarge(object.length) }]);
    }
    let given = Given::of(&object.metadata);
    let bytes = object.body.bytes().await?;
    Ok(vec![Outcome::UploadRead { sweep, file: Dropped::Read { bytes, given } }])
}

impl<C: S3, D: Draw> Uploads<C, D> {
    /// Writes the trials as a stream, so that memory does not grow with their number.
    async fn store_trials(&self, sweep: SweepId, bucket: String, mut prepared: Prepared) -> Executed {
        let s3 = &self.s3;
        if let Some(sha256) = prepared.plan.packed_code()
            && !has_code(s3, &bucket, &sha256).await?
        {
            return Ok(vec![Outcome::CodeMissing { sweep, prepared }]);
        }
        match pin(s3, (&sweep, &bucket), &prepared.file.settings.data).await? {
            Ok(data) => {
                prepared.plan.preparation = Preparation::with_data(prepared.plan.preparation, data);
            }
            Err(problems) => return Ok(vec![Outcome::DataRefused { sweep, prepared, problems }]),
        }
        let (key, content_type) = (trials::lines_key(&sweep), "application/x-ndjson");
        let mut lines = Writer::new(s3, Place { bucket: bucket.clone(), key, content_type });
        let mut index = trials::Index::default();
        for line in trials::lines(&prepared.file) {
            let line = line?;
            index.push(&line);
            lines.write(&line).await?;
        }
        if let Some(search) = prepared.file.search() {
            put(s3, &bucket, trials::space_key(&sweep), serde_json::to_vec(search)?, JSON).await?;
        }
        for (key, listed) in prepared.starts(&sweep)? {
            put(s3, &bucket, key, listed, JSON).await?;
        }
        let index = put(s3, &bucket, trials::index_key(&sweep), index.finish(), "application/octet-stream");
        tokio::try_join!(lines.finish(), index)?;
        Ok(vec![Outcome::TrialsStored { sweep, prepared, token: self.secrets.draw()? }])
    }
}

/// Whether the packed folder is in the bucket.
async fn has_code(s3: &impl S3, bucket: &str, sha256: &str) -> Result<bool, CallError> {
    let first_byte = Some("bytes=0-0".to_owned());
    let wanted = GetObject { range: first_byte, ..GetObject::of(bucket, packed_key(sha256)) };
    match s3.get_object(wanted).await {
        Ok(_) => Ok(true),
        Err(error) if error.refusal() == Some(NO_SUCH_KEY) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn read_snapshots(s3: &impl S3, sweep: SweepId, bucket: String, first: u32) -> Executed {
    let listed = read(s3, GetObject::of(bucket, Listed::Snapshots.key(&sweep))).await?;
    let named: Vec<String> = serde_json::from_slice(&listed)?;
    Ok(vec![Outcome::SnapshotsRead(Continuation::page(sweep, first, &named))])
}

async fn write_plan(s3: &impl S3, sweep: SweepId, upload: Upload, plan: Plan) -> Executed {
    put_json(s3, &upload.bucket, upload.plan_key(), &plan_json(&sweep, &upload, &plan)).await?;
    Ok(vec![Outcome::PlanWritten(sweep)])
}

async fn write_rejection(s3: &impl S3, sweep: SweepId, upload: Upload, rejected: Rejected) -> Executed {
    put_json(s3, &upload.bucket, upload.rejected_key(), &rejection_json(&sweep, &upload, &rejected)).await?;
    Ok(vec![Outcome::RejectionWritten { sweep, problems: rejected.problems }])
}

async fn put_json(s3: &impl S3, bucket: &str, key: String, value: &serde_json::Value) -> Result<(), CallError> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| CallError::Unclear(error.into()))?;
    put(s3, bucket, key, text, JSON).await
}
