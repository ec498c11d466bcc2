//! S3: the dropped file, its answer beside it, the trials.

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use futures_util::FutureExt;

use super::BoxError;
use super::lazy::{Lazy, lazy};
use super::multipart::Writer;
use super::s3::{bytes, is_gone, put};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::decide::sweep_upload::{parse, too_large, whole_file};
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::results::answer::{plan_json, rejection_json};
use spotsweep_control_plane::sweep::continuation::{Continuation, Listed};
use spotsweep_control_plane::sweep::upload::{RUN_CAP_METADATA, Upload};
use spotsweep_control_plane::sweep::{Plan, Prepared};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::secret::Secret;
use spotsweep_sweep_file::trials;
use spotsweep_sweep_file::{Defaults, MAX_FILE_BYTES, Rejected};

/// Reads dropped files, writes trials and answers.
pub fn uploads(config: &SdkConfig) -> impl Service + use<> {
    Uploads(lazy(config, Client::new))
}

#[derive(Debug)]
struct Uploads(Lazy<Client>);

impl Service for Uploads {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let s3 = &self.0;
        Ok(match *command {
            Command::ReadUpload { sweep, upload, defaults } => read(s3, sweep, upload, defaults).boxed(),
            Command::StoreTrials { sweep, bucket, prepared } => store_trials(s3, sweep, bucket, prepared).boxed(),
            Command::ReadSnapshots { sweep, bucket, first } => read_snapshots(s3, sweep, bucket, first).boxed(),
            Command::WritePlan { sweep, upload, plan } => write_plan(s3, sweep, upload, plan).boxed(),
            Command::WriteRejection { sweep, upload, rejected } => write_rejection(s3, sweep, upload, rejected).boxed(),
            other => return Err(Box::new(other)),
        })
    }
}

async fn read(client: &Client, sweep: SweepId, upload: Upload, defaults: Defaults) -> Executed {
    let request = client.get_object().bucket(&upload.bucket).key(&upload.key).set_version_id(upload.version_id.clone());
    let object = match request.send().await {
        Ok(object) => object,
        Err(error) if is_gone(&error) => {
            let message = "the file was deleted before it could be read";
            let problem = whole_file(&upload, message, "drop it again");
            return Ok(vec![Outcome::UploadRead { sweep, file: Err(vec![problem].into()) }]);
        }
        Err(error) => return Err(error.into()),
    };
    let size = object.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    if size > MAX_FILE_BYTES {
        return Ok(vec![Outcome::UploadRead { sweep, file: Err(vec![too_large(&upload, size)].into()) }]);
    }
    let run_cap = object.metadata().and_then(|metadata| metadata.get(RUN_CAP_METADATA)).cloned();
    let bytes = bytes(object).await?;
    let file = parse(&upload, &bytes, run_cap.as_deref(), defaults);
    Ok(vec![Outcome::UploadRead { sweep, file }])
}

/// Streams the trials out: memory stays flat however many there are.
async fn store_trials(client: &Client, sweep: SweepId, bucket: String, prepared: Prepared) -> Executed {
    let mut lines = Writer::new(client, &bucket, trials::lines_key(&sweep), "application/x-ndjson");
    let mut index = trials::Index::default();
    for line in trials::lines(&prepared.file) {
        let line = line?;
        index.push(&line);
        lines.write(&line).await?;
    }
    if let Some(search) = prepared.file.search() {
        put(client, &bucket, trials::space_key(&sweep), serde_json::to_vec(search)?, "application/json").await?;
    }
    for (key, listed) in prepared.starts(&sweep)? {
        put(client, &bucket, key, listed, "application/json").await?;
    }
    let index = put(client, &bucket, trials::index_key(&sweep), index.finish(), "application/octet-stream");
    tokio::try_join!(lines.finish(), index)?;
    Ok(vec![Outcome::TrialsStored { sweep, prepared, token: draw()? }])
}

#[expect(clippy::disallowed_methods, reason = "the outcome brings it to the decision")]
fn draw() -> std::io::Result<Secret> {
    Secret::draw()
}

async fn read_snapshots(client: &Client, sweep: SweepId, bucket: String, first: u32) -> Executed {
    let key = Listed::Snapshots.key(&sweep);
    let read = bytes(client.get_object().bucket(bucket).key(key).send().await?).await?;
    let named: Vec<String> = serde_json::from_slice(&read)?;
    Ok(vec![Outcome::SnapshotsRead(Continuation::page(sweep, first, &named))])
}

async fn write_plan(client: &Client, sweep: SweepId, upload: Upload, plan: Plan) -> Executed {
    put_json(client, &upload.bucket, upload.plan_key(), &plan_json(&sweep, &upload, &plan)).await?;
    Ok(vec![Outcome::PlanWritten(sweep)])
}

async fn write_rejection(client: &Client, sweep: SweepId, upload: Upload, rejected: Rejected) -> Executed {
    put_json(client, &upload.bucket, upload.rejected_key(), &rejection_json(&sweep, &upload, &rejected)).await?;
    Ok(vec![Outcome::RejectionWritten { sweep, problems: rejected.problems }])
}

async fn put_json(client: &Client, bucket: &str, key: String, value: &serde_json::Value) -> Result<(), BoxError> {
    put(client, bucket, key, serde_json::to_vec_pretty(value)?, "application/json").await
}
