//! Uploads outputs to S3: while the command runs, files that have changed and not been written to for a while; at its
//! end, all files.

mod left_out;
mod multipart;
mod names;
mod opened;
mod scan;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{COLLECTED, Collected, CollectedFile, Outputs, Prefix};
use spotsweep_protocol::patterns::Filter;
use spotsweep_seal::collected;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

pub(crate) use self::scan::time;
use crate::exit::Failure;
use crate::log::say;
use crate::own_files::OwnFiles;
use crate::storage::Storage;
use crate::workplace::Workplace;
use opened::Opened;
use scan::{Found, Scan, Stamp, due, nanoseconds, saved, saved_name, scan};

/// Larger files are uploaded in parts.
const MULTIPART_ABOVE_BYTES: u64 = 16 * 1024 * 1024;
/// How many files are uploaded at the same time, each with a few connections.
const FILES_AT_ONCE: usize = 4;
/// While the command runs, a file that was not touched for this long is taken to be whole.
const QUIET: Duration = Duration::from_secs(5);
/// Rounds of uploads at the end, on top of the SDK's own retries.
const FINAL_ROUNDS: u32 = 3;
const FINAL_PAUSE: Duration = Duration::from_secs(1);
/// How many of the files that are left out are named to the control plane.
const MOST_LEFT_OUT: usize = 5;
/// Why a file that the training cannot read is left out.
const UNREADABLE: &str = "its permissions do not let the training's user read it";
/// The runner's own objects. A file of the command with such a name goes below [`OWN`].
const LOG: &str = "train.log";
const METRICS: &str = "metrics.jsonl";
const OWN: &str = "own/";

/// Why a file was not uploaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("listing the output folder failed")]
    List(#[source] std::io::Error),
    #[error("{action} {key} failed")]
    Send {
        action: &'static str,
        key: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("{0} changed while it was uploaded")]
    Changed(String),
    #[error("{count} more failed beside this")]
    Several {
        count: usize,
        #[source]
        first: Box<UploadError>,
    },
    #[error("no time was left to upload all outputs")]
    NoTime,
    #[error("the upload broke off")]
    Broken(#[from] tokio::task::JoinError),
}

impl From<UploadError> for Failure {
    fn from(error: UploadError) -> Self {
        Self::Upload(Box::new(error))
    }
}

impl UploadError {
    fn send(action: &'static str, key: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Send { action, key: key.to_owned(), source: source.into() }
    }
}

/// Uploads the outputs of one trial.
pub(crate) struct Uploader {
    s3: Client,
    destination: Prefix,
    storage: Storage,
    filter: Filter,
    /// The folder of checkpoints, and which of its files are collected.
    checkpoints: Option<(Storage, Arc<spotsweep_seal::Collected>)>,
    /// The files that have arrived, by key, as they were at the last upload.
    arrived: BTreeMap<String, Stamp>,
    /// S3's entity tags of the checkpoints' files, by key.
    etags: BTreeMap<String, String>,
    /// Files that are not uploaded, with the reasons.
    left_out: BTreeMap<String, String>,
}

impl Uploader {
    pub(crate) fn new(s3: Client, destination: Prefix, storage: Storage, filter: Filter) -> Self {
        Self {
            s3,
            destination,
            storage,
            filter,
            checkpoints: None,
            arrived: BTreeMap::new(),
            etags: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Uploads in the background, with a scan every `every`, until it has to stop; then returns the uploader. A failure
    /// is only logged, because the next round tries again.
    pub(crate) fn run(mut self, every: Duration) -> (JoinHandle<Self>, oneshot::Sender<()>) {
        let (stop, mut stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut stopped => return self,
                    () = sleep(every) => {}
                }
                if let Err(error) = self.round(Some(QUIET.min(every))).await {
                    say(&format!("not yet uploaded, trying again: {}", chain(&error)));
                }
            }
        });
        (running, stop)
    }

    /// Adds the checkpoints to what is collected, because the training has succeeded.
    pub(crate) async fn add_checkpoints(&mut self, place: &Workplace) -> Result<(), UploadError> {
        let (disk, folder, which) = (place.disk(), place.checkpoints.clone(), self.filter.checkpoints);
        let files = tokio::task::spawn_blocking(move || collected(&disk, &folder, which)).await?;
        self.checkpoints = Some((place.saved(), Arc::new(files.map_err(UploadError::List)?)));
        Ok(())
    }

    /// Uploads the runner's own two objects, and then all that is left. If one file cannot be uploaded, the others
    /// still are.
    pub(crate) async fn finish(mut self, log: Vec<u8>, own: &OwnFiles) -> Result<Outputs, UploadError> {
        let record = self.put_own(METRICS, metrics(own)).await;
        let log = self.put_own(LOG, log).await;
        let mut outcome = self.round(None).await;
        for _ in 1..FINAL_ROUNDS {
            let Err(error) = outcome else { break };
            say(&format!("upload failed, trying again: {}", chain(&error)));
            sleep(FINAL_PAUSE).await;
            outcome = self.round(None).await;
        }
        outcome.and(record).and(log)?;
        if let Some(collected) = self.newest_checkpoint() {
            let key = format!("{}{COLLECTED}", self.destination.prefix);
            let content = serde_json::to_vec(&collected);
            let content = content.map_err(|error| UploadError::send("writing", &key, error))?;
            put_object(&self.s3, &self.destination.bucket, &key, content.into()).await?;
        }
        let bytes = self.arrived.values().map(|stamp| stamp.bytes).sum();
        let without_files = self.arrived.keys().all(|name| name == LOG || name == METRICS);
        let (files, left_out) = (self.arrived.len() as u64, self.left_out());
        Ok(Outputs { files, bytes, left_out, unread: Vec::new(), without_files })
    }

    /// The newest checkpoint as it has arrived; `None` if a file of it has not arrived, because then it is incomplete.
    fn newest_checkpoint(&self) -> Option<Collected> {
        let (_, collected) = self.checkpoints.as_ref()?;
        let file = |path: &String| {
            let key = saved_name(path);
            let Stamp { bytes, modified, .. } = *self.arrived.get(&key)?;
            let (modified_ns, etag) = (nanoseconds(modified), self.etags.get(&key)?.clone());
            Some(CollectedFile { path: path.clone(), key, bytes, modified_ns, etag })
        };
        let files: Vec<CollectedFile> = collected.newest.iter().map(file).collect::<Option<_>>()?;
        (!files.is_empty()).then(|| Collected { files, links: collected.links.clone() })
    }

    /// Uploads what is due; without `quiet`, every file that differs from what has arrived.
    async fn round(&mut self, quiet: Option<Duration>) -> Result<(), UploadError> {
        let (storage, filter, checkpoints) = (self.storage.clone(), self.filter.clone(), self.checkpoints.clone());
        let most = filter.checkpoints.most_bytes().unwrap_or(u64::MAX);
        let look = move || (scan(&storage, &filter), checkpoints.map(|(storage, of)| saved(&storage, &of.files, most)));
        let (Scan { mut found, mut failures, left_out: mut unread }, saved) = tokio::task::spawn_blocking(look).await?;
        if let Some(saved) = saved {
            found.extend(saved.found);
            failures.extend(saved.failures);
            unread.extend(saved.left_out);
        }
        let mut left_out = left_out::take_out(&mut found, &self.destination.prefix);
        left_out.extend(unread);
        for (name, why) in left_out.iter().filter(|(name, _)| !self.left_out.contains_key(*name)) {
            say(&format!("output {name:?} is left out: {why}"));
        }
        self.left_out = left_out;
        let resting = quiet.map(|quiet| (SystemTime::now(), quiet));
        let mut waiting = due(found, &self.arrived, resting).into_iter();
        let mut underway = JoinSet::new();
        loop {
            while underway.len() < FILES_AT_ONCE {
                let Some(file) = waiting.next() else { break };
                let checkpoints = self.checkpoints.as_ref().filter(|_| file.is_checkpoint);
                let storage = checkpoints.map_or(&self.storage, |(storage, _)| storage).clone();
                underway.spawn(put(self.s3.clone(), self.destination.clone(), storage, file));
            }
            match underway.join_next().await {
                None => break,
                Some(sent) => match sent? {
                    Ok((file, etag)) => {
                        let etag = etag.filter(|_| file.is_checkpoint);
                        self.etags.extend(etag.map(|etag| (file.name.clone(), bare(&etag))));
                        self.arrived.insert(file.name, file.stamp);
                    }
                    Err(error) => failures.push(error),
                },
            }
        }
        let count = failures.len();
        match failures.into_iter().next() {
            None => Ok(()),
            Some(only) if count == 1 => Err(only),
            Some(first) => Err(UploadError::Several { count: count - 1, first: Box::new(first) }),
        }
    }

    /// The first of the files that are left out, as the control plane keeps them.
    fn left_out(&self) -> Vec<String> {
        let more = self.left_out.len().saturating_sub(MOST_LEFT_OUT);
        let named = self.left_out.iter().take(MOST_LEFT_OUT).map(|(name, why)| format!("{name:?}: {why}"));
        named.chain((more > 0).then(|| format!("{more} more: see train.log"))).collect()
    }

    async fn put_own(&mut self, name: &str, content: Vec<u8>) -> Result<(), UploadError> {
        if content.is_empty() {
            return Ok(());
        }
        let key = format!("{}{name}", self.destination.prefix);
        let stamp = Stamp { bytes: content.len() as u64, modified: SystemTime::UNIX_EPOCH, inode: 0 };
        put_object(&self.s3, &self.destination.bucket, &key, content.into()).await?;
        self.arrived.insert(name.to_owned(), stamp);
        Ok(())
    }
}

/// Uploads one file, whole or in parts, and returns it as it was uploaded, with S3's entity tag.
async fn put(
    s3: Client,
    destination: Prefix,
    storage: Storage,
    found: Found,
) -> Result<(Found, Option<String>), UploadError> {
    let bucket = &destination.bucket;
    let key = format!("{}{}", destination.prefix, found.name);
    let opened = tokio::task::spawn_blocking(move || (Opened::open(&storage, &found), found));
    let (opened, found) = opened.await?;
    let opened = opened.map_err(|error| UploadError::send("reading", &key, error))?;
    let opened = Arc::new(opened.ok_or_else(|| UploadError::Changed(key.clone()))?);
    let etag = if found.stamp.bytes > MULTIPART_ABOVE_BYTES {
        multipart::put(&s3, bucket, &key, &opened).await?
    } else {
        let body =
            opened.body(0, found.stamp.bytes).await.map_err(|error| UploadError::send("reading", &key, error))?;
        let etag = put_object(&s3, bucket, &key, body).await?;
        if !opened.is_unchanged() {
            return Err(UploadError::Changed(key));
        }
        etag
    };
    Ok((found, etag))
}

/// S3's entity tag without the quotation marks that only some answers have.
pub(crate) fn bare(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

/// The record of metrics; empty if there is none.
fn metrics(own: &OwnFiles) -> Vec<u8> {
    let mut content = Vec::new();
    let read = own.metrics().and_then(|record| record.map_or(Ok(0), |mut record| record.read_to_end(&mut content)));
    if let Err(error) = read {
        say(&format!("metrics.jsonl cannot be read: {error}"));
    }
    content
}

async fn put_object(s3: &Client, bucket: &str, key: &str, body: ByteStream) -> Result<Option<String>, UploadError> {
    let sent = s3.put_object().bucket(bucket).key(key).body(body).send().await;
    sent.map(|sent| sent.e_tag).map_err(|error| UploadError::send("uploading", key, error))
}
