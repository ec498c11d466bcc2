//! Fetches the collected checkpoint of another trial, from which this trial starts.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_sdk_s3::primitives::ByteStreamError;
use spotsweep_beneath::{Folder, Owner, give_file};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{COLLECTED, Collected, CollectedFile, Prefix};
use spotsweep_protocol::words::counted;
use spotsweep_seal::disk::{Disk as _, MountedDisk};
use spotsweep_seal::{CHECKPOINTS, OWN, Restoration, restoration, restored};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::sleep;

use crate::exit::{Cause, Failure};
use crate::log::say;
use crate::upload::{bare, time};

/// How many files are fetched at the same time.
const FILES_AT_ONCE: usize = 4;
/// How often a file is fetched if its bytes do not all arrive, on top of the SDK's own retries.
const ROUNDS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// The largest record, in bytes. A record of a hundred thousand files has half of that.
const MOST_RECORD_BYTES: i64 = 64 << 20;

/// Why the checkpoint cannot be put on the workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error(
        "s3://{bucket}/{key} could not be read; without it there is no whole checkpoint to go on from. Put it back, or \
         take its trial out of `checkpoints_of` in the sweep file and submit that again, to train from the beginning"
    )]
    Get { bucket: String, key: String, source: Box<SdkError<GetObjectError>> },
    #[error("reading s3://{bucket}/{key} broke off")]
    Body { bucket: String, key: String, source: ByteStreamError },
    #[error(
        "s3://{bucket}/{key} is not what was collected: it has {found}, and had {expected}. Put back the version that was \
         collected, or take its trial out of `checkpoints_of` in the sweep file and submit that again, to train from the \
         beginning"
    )]
    Changed { bucket: String, key: String, found: String, expected: String },
    #[error(
        "s3://{bucket}/{key} does not describe a checkpoint. Put back the version that was collected, or take its trial \
         out of `checkpoints_of` in the sweep file and submit that again, to train from the beginning"
    )]
    Unreadable { bucket: String, key: String, source: Cause },
    #[error("cannot write {0}; `workspace: {{size: …}}` in the sweep file sets the volume's size")]
    Write(PathBuf, #[source] io::Error),
    #[error("cannot look at {0}")]
    Look(PathBuf, #[source] io::Error),
    #[error(
        "{0} was used before, by the trial of the snapshot that the volume was made from; nothing was written. Name a \
         snapshot of an unused workspace, or none"
    )]
    Occupied(PathBuf),
    #[error("the download broke off")]
    Broken(#[from] tokio::task::JoinError),
}

impl RestoreError {
    /// Whether a later attempt may succeed.
    fn may_pass(&self) -> bool {
        match self {
            Self::Get { source, .. } => source.raw_response().is_none_or(|answer| !answer.status().is_client_error()),
            Self::Body { .. } | Self::Broken(_) => true,
            Self::Changed { .. } | Self::Unreadable { .. } | Self::Write(..) | Self::Look(..) | Self::Occupied(_) => {
                false
            }
        }
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        if error.may_pass() { Self::Interrupted(chain(&error)) } else { Self::Restore(Box::new(error)) }
    }
}

/// Puts the checkpoint that is collected at `from` on the workspace at `point`, whole or not at all. If it has been
/// there before, nothing is done, because what the trial has saved since is newer. Its files belong to `owner`.
pub(crate) async fn restore(
    s3: &Client,
    from: &Prefix,
    point: &Path,
    owner: Option<Owner>,
) -> Result<(), RestoreError> {
    let look = |source| RestoreError::Look(point.to_owned(), source);
    let disk = MountedDisk::below(point);
    let left = block_in_place(|| {
        Folder::made(point)?.make_folder(OWN.as_ref())?;
        restoration(&disk, point, &from.prefix)
    });
    let aside = match left {
        Ok(Restoration::Done) => return Ok(()),
        Ok(Restoration::Occupied) => return Err(RestoreError::Occupied(point.join(CHECKPOINTS))),
        Ok(Restoration::Into(aside)) => aside,
        Err(error) => return Err(look(error)),
    };
    let collected = read(s3, from).await?;
    let what = format!("{}, {} bytes", counted(collected.files.len(), "file"), collected.bytes());
    say(&format!(
        "fetching the checkpoint that this trial starts from: {what} of s3://{}/{}",
        from.bucket, from.prefix
    ));
    let rest = aside.strip_prefix(point).unwrap_or(&aside);
    let folder = Folder::trusted(point).and_then(|point| point.make_folder(rest)).map_err(look)?;
    let place = Arc::new(Place { folder, path: aside.clone(), owner });
    let mut waiting = collected.files.into_iter();
    let mut underway = JoinSet::new();
    loop {
        while underway.len() < FILES_AT_ONCE {
            let Some(file) = waiting.next() else { break };
            underway.spawn(fetch(s3.clone(), from.clone(), Arc::clone(&place), file));
        }
        let Some(fetched) = underway.join_next().await else { break };
        fetched??;
    }
    let written = |source| RestoreError::Write(point.join(CHECKPOINTS), source);
    block_in_place(|| {
        for (link, target) in &collected.links {
            disk.symbolic_link(&aside.join(link), Path::new(target))?;
        }
        restored(&disk, point, &from.prefix)
    })
    .map_err(written)?;
    say(&format!("the checkpoint is in {CHECKPOINTS}: {what}"));
    Ok(())
}

/// The folder that the files go to, and their owner.
struct Place {
    folder: Folder,
    path: PathBuf,
    owner: Option<Owner>,
}

/// Reads the record of what was collected.
async fn read(s3: &Client, from: &Prefix) -> Result<Collected, RestoreError> {
    let (bucket, key) = (from.bucket.clone(), format!("{}{COLLECTED}", from.prefix));
    let object = get(s3, &bucket, &key).await?;
    let unreadable = |why: Cause| RestoreError::Unreadable { bucket: bucket.clone(), key: key.clone(), source: why };
    if object.content_length().unwrap_or(0) > MOST_RECORD_BYTES {
        return Err(unreadable(format!("it has more than {MOST_RECORD_BYTES} bytes").into()));
    }
    let content = object.body.collect().await;
    let content = content.map_err(|source| RestoreError::Body { bucket: bucket.clone(), key: key.clone(), source })?;
    let collected: Collected =
        serde_json::from_slice(&content.into_bytes()).map_err(|error| unreadable(error.into()))?;
    if collected.files.is_empty() {
        return Err(unreadable("it names no file".into()));
    }
    let is_below = |path: &String| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    match collected.links.keys().find(|link| !is_below(link)) {
        Some(link) => Err(unreadable(format!("{link:?} is no path in a folder").into())),
        None => Ok(collected),
    }
}

async fn get(s3: &Client, bucket: &str, key: &str) -> Result<GetObjectOutput, RestoreError> {
    let got = s3.get_object().bucket(bucket).key(key).send().await;
    let (bucket, key) = (bucket.to_owned(), key.to_owned());
    got.map_err(|source| RestoreError::Get { bucket, key, source: Box::new(source) })
}

/// Fetches one file, and repeats that if its bytes do not all arrive.
async fn fetch(s3: Client, from: Prefix, place: Arc<Place>, file: CollectedFile) -> Result<(), RestoreError> {
    let mut round = 1;
    loop {
        match fetch_once(&s3, &from, &place, &file).await {
            Err(error @ RestoreError::Body { .. }) if round < ROUNDS => {
                say(&format!("{}; trying again", chain(&error)));
                round += 1;
                sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

async fn fetch_once(s3: &Client, from: &Prefix, place: &Place, file: &CollectedFile) -> Result<(), RestoreError> {
    let (bucket, key) = (from.bucket.clone(), format!("{}{}", from.prefix, file.key));
    let mut object = get(s3, &bucket, &key).await?;
    let changed = |found: String, expected: String| {
        Err(RestoreError::Changed { bucket: bucket.clone(), key: key.clone(), found, expected })
    };
    let etag = object.e_tag().map(bare).unwrap_or_default();
    if etag != file.etag {
        return changed(format!("ETag {etag:?}"), format!("{:?}", file.etag));
    }
    let write = |source| RestoreError::Write(place.path.join(&file.path), source);
    let target = block_in_place(|| place.create(Path::new(&file.path))).map_err(write)?;
    let mut bytes = 0;
    while let Some(piece) = object.body.next().await {
        let piece = piece.map_err(|source| RestoreError::Body { bucket: bucket.clone(), key: key.clone(), source })?;
        block_in_place(|| (&target).write_all(&piece)).map_err(write)?;
        bytes += piece.len() as u64;
    }
    if bytes != file.bytes {
        return changed(format!("{bytes} bytes"), format!("{} bytes", file.bytes));
    }
    block_in_place(|| target.set_modified(time(file.modified_ns))).map_err(write)
}

impl Place {
    /// Makes a new file and the folders above it.
    fn create(&self, path: &Path) -> io::Result<File> {
        let folder = self.made(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let file = folder.create(name.as_ref())?;
        self.owner.map_or(Ok(()), |owner| give_file(&file, owner))?;
        Ok(file)
    }

    /// Makes a folder and the folders above it.
    fn made(&self, path: &Path) -> io::Result<Folder> {
        let mut folder = self.folder.folder(Path::new(""))?;
        for name in path {
            folder = folder.make_folder(Path::new(name))?;
            self.owner.map_or(Ok(()), |owner| folder.give_to(owner))?;
        }
        Ok(folder)
    }
}
