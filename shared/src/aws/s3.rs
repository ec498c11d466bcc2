//! S3: the dropped file, its answer beside it, the trials, the results.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};

use super::executor::{Outcome, Page};
use super::multipart::Writer;
use crate::answer::{plan_json, rejection_json};
use crate::claim::Prefix;
use crate::command::Prepared;
use crate::decide::sweep_upload::{too_large, whole_file};
use crate::event::{Event, TrialRequest};
use crate::gathered::Results;
use crate::ids::SweepId;
use crate::lifecycle::Plan;
use crate::sweep::{MAX_FILE_BYTES, Problem};
use crate::trials;
use crate::upload::Upload;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(super) async fn read_upload(client: &Client, sweep: SweepId, upload: &Upload) -> Outcome {
    let request = client.get_object().bucket(&upload.bucket).key(&upload.key).set_version_id(upload.version_id.clone());
    let object = match request.send().await {
        Ok(object) => object,
        Err(error) if is_gone(&error) => {
            let message = "the file was deleted before it could be read";
            let problem = whole_file(upload, message, "drop it again");
            return Ok(vec![Event::UploadUnreadable { sweep, problem }]);
        }
        Err(error) => return Err(error.into()),
    };
    let size = object.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
    if size > MAX_FILE_BYTES {
        return Ok(vec![Event::UploadUnreadable { sweep, problem: too_large(upload, size) }]);
    }
    let bytes = bytes(object).await?;
    Ok(vec![Event::UploadRead { sweep, bytes }])
}

/// The object, or the version of it, or the delete marker that stands in its place.
fn is_gone(error: &SdkError<GetObjectError>) -> bool {
    let SdkError::ServiceError(service) = error else {
        return false;
    };
    let code = aws_sdk_s3::error::ProvideErrorMetadata::code(service.err());
    service.err().is_no_such_key() || code == Some("NoSuchVersion") || service.raw().status().as_u16() == 405
}

pub(super) async fn bytes(object: GetObjectOutput) -> Result<Vec<u8>, BoxError> {
    Ok(object.body.collect().await?.to_vec())
}

/// Streams the trials out: memory stays flat however many there are.
pub(super) async fn store_trials(client: &Client, sweep: SweepId, bucket: &str, prepared: Prepared) -> Outcome {
    let mut lines = Writer::new(client, bucket, trials::lines_key(&sweep), "application/x-ndjson");
    let mut index = trials::Index::default();
    for line in trials::lines(&prepared.file) {
        let line = line?;
        index.push(&line);
        lines.write(&line).await?;
    }
    lines.finish().await?;
    put(client, bucket, trials::index_key(&sweep), index.finish(), "application/octet-stream").await?;
    Ok(vec![Event::TrialsStored { sweep, prepared }])
}

pub(super) async fn write_plan(client: &Client, sweep: SweepId, upload: &Upload, plan: &Plan) -> Outcome {
    put_json(client, &upload.bucket, upload.plan_key(), &plan_json(&sweep, upload, plan)).await?;
    Ok(vec![Event::PlanWritten(sweep)])
}

pub(super) async fn write_rejection(client: &Client, sweep: SweepId, upload: &Upload, problems: &[Problem]) -> Outcome {
    put_json(client, &upload.bucket, upload.rejected_key(), &rejection_json(&sweep, upload, problems)).await?;
    Ok(vec![Event::RejectionWritten { sweep, problems: problems.to_vec() }])
}

pub(super) async fn publish_results(
    client: &Client,
    sweep: SweepId,
    bucket: &str,
    results: Results,
    page: Page,
) -> Outcome {
    let prefix = sweep.results_prefix();
    let page = page(&results.report);
    let objects = [
        ("leaderboard.csv", results.leaderboard, "text/csv"),
        ("costs.json", results.costs, "application/json"),
        ("report.html", page, "text/html; charset=utf-8"),
    ];
    for (name, body, content_type) in objects {
        put(client, bucket, format!("{prefix}{name}"), body.into_bytes(), content_type).await?;
    }
    // The summary comes last: whoever waits for it finds everything else in place.
    if let Some(summary) = &results.summary {
        put(client, bucket, format!("{prefix}summary.json"), summary.clone().into_bytes(), "application/json").await?;
    }
    Ok(vec![Event::ResultsPublished { sweep, summary: results.summary }])
}

pub(super) async fn find_line(client: &Client, request: TrialRequest, bucket: String) -> Outcome {
    let (first, last) = trials::entries_range(request.index);
    let read = client.get_object().bucket(&bucket).key(trials::index_key(&request.sweep));
    let entries = bytes(read.range(format!("bytes={first}-{last}")).send().await?).await?;
    let line = trials::line_range(&request.sweep, &bucket, &entries)
        .ok_or_else(|| format!("trials.idx has no entry for trial {}", request.index))?;
    let outputs = Prefix { bucket, prefix: request.sweep.trial_prefix(request.index) };
    Ok(vec![Event::LineFound { request, line, outputs }])
}

async fn put_json(client: &Client, bucket: &str, key: String, value: &serde_json::Value) -> Result<(), BoxError> {
    put(client, bucket, key, serde_json::to_vec_pretty(value)?, "application/json").await
}

async fn put(client: &Client, bucket: &str, key: String, body: Vec<u8>, content_type: &str) -> Result<(), BoxError> {
    client.put_object().bucket(bucket).key(key).content_type(content_type).body(body.into()).send().await?;
    Ok(())
}
