//! Drops a sweep file into the bucket, and waits for the answer next to it.

use std::path::Path;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use serde_json::Value;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::upload::{DROP_PREFIX, Given, Upload};
use spotsweep_sweep_file::{Problem, Rejected, Warning};
use tokio::time::{Instant, sleep, timeout};

use crate::signals::requested_stop;
use spotsweep_protocol::failure::{Context, Failure};

const POLL: Duration = Duration::from_millis(100);
/// S3's events take seconds, sometimes over a minute (fact 15).
const ANSWER_DEADLINE: Duration = Duration::from_secs(180);
/// Time for an answer that is just arriving when a person stops the command.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// The file's size limits that of its answer. This is far above.
const ANSWER_LIMIT_BYTES: i64 = 64 << 20;

/// A file that was dropped, or is about to be.
#[derive(Debug)]
pub(crate) struct Dropped {
    client: Client,
    upload: Upload,
    etag: Option<String>,
    /// Marks of answers that existed before the file was dropped, and do not count.
    stale: Vec<String>,
}

/// The control plane's answer to a file.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The content of `<key>.plan.json`.
    Planned(Value),
    /// The content of `<key>.rejected.json`.
    Rejected(Value),
}

impl Dropped {
    /// Puts the file to `sweeps/<file name>`, and does nothing else.
    pub(crate) async fn put(client: Client, bucket: &str, file: &Path, given: Given) -> Result<Self, Failure> {
        let upload = upload(bucket, file)?;
        let unreadable = || Failure::usage(format!("cannot read {}", file.display()));
        let body = ByteStream::from_path(file).await.map_err(|error| unreadable().caused_by(error))?;
        Self::put_body(client, upload, body, given).await
    }

    /// Puts a sweep file's text.
    pub(crate) async fn put_body(
        client: Client,
        upload: Upload,
        body: ByteStream,
        given: Given,
    ) -> Result<Self, Failure> {
        let mut dropped = Self { client, upload, etag: None, stale: Vec::new() };
        for key in dropped.answers() {
            dropped.stale.extend(dropped.mark(&key).await?);
        }
        let Upload { bucket, key, .. } = &dropped.upload;
        let metadata = given.into_metadata();
        let put = dropped.client.put_object().bucket(bucket).key(key).body(body).set_metadata(Some(metadata));
        let put = put.send().await;
        let put = put.context(|| format!("cannot put {key} into the bucket {bucket}"))?;
        dropped.upload.version_id = put.version_id;
        dropped.etag = put.e_tag.map(|etag| etag.trim_matches('"').to_owned());
        Ok(dropped)
    }

    /// Waits as [`Self::answer`] does, until a person stops the command. The failure then names the sweep, which goes
    /// on.
    pub(crate) async fn answer_unless_stopped(&self) -> Result<Answer, Failure> {
        tokio::select! {
            answer = self.answer() => answer,
            signal = requested_stop() => {
                let signal = signal?;
                Err(Failure::new(format!("stopped by {signal}: {}", self.goes_on().await)))
            }
        }
    }

    /// What goes on after the command was stopped. The answer names the sweep. Without an answer the version does,
    /// unless S3's event has none: then the id depends on the event.
    async fn goes_on(&self) -> String {
        let Upload { bucket, key, version_id, .. } = &self.upload;
        let named = match timeout(LAST_LOOK, self.answer()).await {
            Ok(Ok(Answer::Planned(plan))) => plan.get("sweep").and_then(Value::as_str).map(str::to_owned),
            Ok(Ok(Answer::Rejected(_))) => {
                return format!("the file is rejected; see s3://{bucket}/{}", self.upload.rejected_key());
            }
            Ok(Err(_)) | Err(_) => None,
        };
        let derived = || version_id.as_ref().map(|version| SweepId::derive(bucket, key, version).to_string());
        match named.or_else(derived) {
            Some(sweep) => format!(
                "sweep {sweep} goes on; `spotsweep watch {sweep}` follows it, `spotsweep cancel {sweep}` ends it"
            ),
            None => format!("s3://{bucket}/{key} is uploaded, and its sweep goes on; `spotsweep ls` shows it"),
        }
    }

    /// Waits until the control plane has answered this very upload.
    pub(crate) async fn answer(&self) -> Result<Answer, Failure> {
        let deadline = Instant::now() + ANSWER_DEADLINE;
        let [plan, rejection] = self.answers();
        while Instant::now() < deadline {
            if let Some(answer) = self.fresh(&plan).await? {
                return Ok(Answer::Planned(answer));
            }
            if let Some(answer) = self.fresh(&rejection).await? {
                return Ok(Answer::Rejected(answer));
            }
            sleep(POLL).await;
        }
        Err(Failure::new(format!(
            "no answer to s3://{}/{} after {} s: the file is in the bucket, but nothing has read it; look at the log \
             of the function sweep-upload and at the queues FailedEvents and UndeliveredEvents",
            self.upload.bucket,
            self.upload.key,
            ANSWER_DEADLINE.as_secs()
        )))
    }

    fn answers(&self) -> [String; 2] {
        [self.upload.plan_key(), self.upload.rejected_key()]
    }

    /// A mark that distinguishes one put of an object from the next. `None` if there is no object.
    async fn mark(&self, key: &str) -> Result<Option<String>, Failure> {
        let head = self.client.head_object().bucket(&self.upload.bucket).key(key).send().await;
        match head {
            Ok(head) => Ok(head.version_id.or(head.e_tag)),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(None),
            Err(error) => Err(Failure::new(format!("cannot look for {key}")).caused_by(error)),
        }
    }

    /// The answer under this key, if it is of this upload.
    async fn fresh(&self, key: &str) -> Result<Option<Value>, Failure> {
        let got = self.client.get_object().bucket(&self.upload.bucket).key(key).send().await;
        let got = match got {
            Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => return Ok(None),
            got => got.context(|| format!("cannot read {key}"))?,
        };
        let mark = got.version_id().or(got.e_tag());
        if mark.is_some_and(|mark| self.stale.iter().any(|stale| stale == mark)) {
            return Ok(None);
        }
        if got.content_length().is_some_and(|length| length > ANSWER_LIMIT_BYTES) {
            return Err(Failure::new(format!("{key} is larger than {ANSWER_LIMIT_BYTES} bytes")));
        }
        let body = got.body.collect().await.context(|| format!("cannot read {key}"))?.into_bytes();
        let answer: Value = serde_json::from_slice(&body).context(|| format!("{key} is not JSON"))?;
        let is_ours = answer.get("version").and_then(Value::as_str).is_none_or(|version| self.is_version(version));
        Ok(is_ours.then_some(answer))
    }

    /// Whether an answer's `version` is that of this put: its version id or, if S3's event had none, its ETag and a
    /// sequencer. Another put of the same key gets an answer of its own.
    fn is_version(&self, version: &str) -> bool {
        let etag = version.split('/').next();
        self.upload.version_id.as_deref() == Some(version) || (etag.is_some() && self.etag.as_deref() == etag)
    }
}

/// The upload that a put under this key makes.
pub(crate) fn upload_to(bucket: &str, key: String) -> Upload {
    let uploaded_at = jiff::Timestamp::now();
    Upload { bucket: bucket.to_owned(), key, version_id: None, fingerprint: String::new(), size: None, uploaded_at }
}

/// The upload of a file. A name that the rules never match is refused, because nothing would answer it.
pub(crate) fn upload(bucket: &str, file: &Path) -> Result<Upload, Failure> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::usage(format!("{} is not a readable file name", file.display())))?;
    let upload = upload_to(bucket, format!("{DROP_PREFIX}{name}"));
    match name_problem(&upload) {
        None => Ok(upload),
        Some(problem) => Err(Failure::usage(format!("{name}: {}; {}", problem.message, problem.help))),
    }
}

/// Problems with the file's name, because of which the bucket would refuse the file.
pub(crate) fn problems_of_name(file: &Path) -> Vec<Problem> {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    name_problem(&upload_to("", format!("{DROP_PREFIX}{name}"))).into_iter().collect()
}

fn name_problem(upload: &Upload) -> Option<Problem> {
    let name = upload.key.strip_prefix(DROP_PREFIX).unwrap_or(&upload.key);
    let named = Upload { key: name.to_owned(), ..upload.clone() };
    Some(named.problem(upload.key_problem()?, "rename the file, for example to my-sweep.yaml"))
}

/// The problems and warnings in a rejection, as `spotsweep validate` shows them.
pub(crate) fn rejected(rejection: &Value) -> Rejected {
    let problem = |entry: &Value| {
        let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |field| entry.get(field).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        Problem {
            file: text("file"),
            line: number("line").unwrap_or(0),
            column: number("column").unwrap_or(0),
            text: text("text"),
            width: number("width").unwrap_or(0),
            message: text("message"),
            help: text("help"),
        }
    };
    let all = |field| rejection.get(field).and_then(Value::as_array).into_iter().flatten().map(problem);
    Rejected { problems: all("problems").collect(), warnings: all("warnings").map(Warning).collect() }
}
