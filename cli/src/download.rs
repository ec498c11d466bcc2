//! Downloads objects to files, several at once. A file has its own name only when it is complete, and none is outside
//! the folder. Objects that cannot be downloaded are reported, and the others are downloaded.

mod folder;
mod keys;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::{self, EncodingType};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

pub(crate) use self::folder::{Folder, Present};
use self::keys::{apart, decoded, safe_path};
pub(crate) use self::trouble::Trouble;
use crate::signals::unless_stopped;
use spotsweep_protocol::failure::{Context, Failure};

/// Objects that are downloaded at once.
const AT_ONCE: usize = 16;

/// An object, and where its file is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) key: String,
    /// Path of the file within the folder.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// When the object was put, to the second.
    pub(crate) put_at: SystemTime,
}

/// Result for an object.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// It was downloaded. Size and time are those of what has arrived.
    Fetched(Object),
    /// Its file existed already.
    WasThere(Object),
    /// It cannot be downloaded, but others can.
    Failed(Trouble),
}

/// Content of a list: objects that have a path, and those that cannot have one.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) objects: Vec<Object>,
    pub(crate) troubles: Vec<Trouble>,
}

impl Listed {
    /// Whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.troubles.is_empty()
    }

    /// Adds another list with other keys.
    pub(crate) fn extend(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.troubles.extend(other.troubles);
    }
}

/// Lists the objects under a prefix. The part of a key after `above` becomes the path. A key that is no path within a
/// folder, or that is a file where another key needs a folder, is a trouble.
pub(crate) async fn list(client: &Client, bucket: &str, prefix: &str, above: &str) -> Result<Listed, Failure> {
    let (mut objects, mut troubles) = (Vec::new(), Vec::new());
    for (key, object) in all_below(client, bucket, prefix).await? {
        let bytes = size(object.size);
        // Consoles and file systems put such an object as a mark of a folder. It has no content.
        if key.ends_with('/') && bytes == 0 {
            continue;
        }
        let put_at = time(object.last_modified.as_ref());
        match key.strip_prefix(above).and_then(safe_path) {
            Some(path) => objects.push(Object { path, bytes, put_at, key }),
            None => troubles.push(Trouble::of(&key, "it is no name of a file here")),
        }
    }
    let (objects, in_the_way) = apart(objects);
    troubles.extend(in_the_way);
    Ok(Listed { objects, troubles })
}

/// All objects below a prefix, and their keys as they were put.
pub(crate) async fn all_below(client: &Client, bucket: &str, prefix: &str) -> Result<Page, Failure> {
    let mut found = Vec::new();
    let take = |page: Page| {
        found.extend(page);
        Ok(())
    };
    pages_below(client, bucket, prefix, take).await?;
    Ok(found)
}

/// Objects that are listed together, and their keys as they were put.
pub(crate) type Page = Vec<(String, types::Object)>;

/// Passes all objects below a prefix to `take`, page by page, until it fails.
pub(crate) async fn pages_below(
    client: &Client,
    bucket: &str,
    prefix: &str,
    mut take: impl FnMut(Page) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let request = client.list_objects_v2().bucket(bucket).prefix(prefix).encoding_type(EncodingType::Url);
    let mut pages = request.into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.context(|| format!("cannot list s3://{bucket}/{prefix}"))?;
        let objects = page.contents.unwrap_or_default().into_iter();
        take(objects.map(|object| (decoded(object.key().unwrap_or_default()), object)).collect())?;
    }
    Ok(())
}

fn size(bytes: Option<i64>) -> u64 {
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

fn time(at: Option<&DateTime>) -> SystemTime {
    let seconds = at.and_then(|at| u64::try_from(at.secs()).ok()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Downloads objects into the folder, which it makes, and reports each. If a signal stops it, or if it fails as a
/// whole, no incomplete file stays.
pub(crate) async fn fetch(
    client: &Client,
    bucket: &str,
    objects: Vec<Object>,
    folder: &Path,
    present: Present,
    mut tell: impl FnMut(Arrival),
) -> Result<(), Failure> {
    let folder = Arc::new(Folder::open(folder, present)?);
    let mut copies = JoinSet::new();
    let all = async {
        for object in objects {
            match folder.has(&object) {
                Ok(true) => tell(Arrival::WasThere(object)),
                Ok(false) => {
                    if copies.len() >= AT_ONCE {
                        finish_one(&mut copies, &mut tell).await?;
                    }
                    copies.spawn(fetch_one(client.clone(), bucket.to_owned(), object, Arc::clone(&folder)));
                }
                Err(trouble) => tell(Arrival::Failed(trouble.of_one()?)),
            }
        }
        while !copies.is_empty() {
            finish_one(&mut copies, &mut tell).await?;
        }
        Ok(())
    };
    let outcome = unless_stopped(all).await;
    // Waits until each task has removed its incomplete file.
    copies.shutdown().await;
    outcome
}

async fn finish_one(
    copies: &mut JoinSet<Result<Object, Trouble>>,
    tell: &mut impl FnMut(Arrival),
) -> Result<(), Failure> {
    if let Some(copied) = copies.join_next().await {
        tell(match copied.context(|| "copying was cut off")? {
            Ok(object) => Arrival::Fetched(object),
            Err(trouble) => Arrival::Failed(trouble.of_one()?),
        });
    }
    Ok(())
}

/// Downloads the present version of one object, with only a piece of it in memory.
async fn fetch_one(client: Client, bucket: String, object: Object, folder: Arc<Folder>) -> Result<Object, Trouble> {
    let part = folder.part(&object)?;
    let file = part.file().map_err(|error| Trouble::writing(&object, error))?;
    let got = client.get_object().bucket(&bucket).key(&object.key).send().await;
    let got = got.map_err(|error| Trouble::reading(&bucket, &object.key, error))?;
    let arrived = Object { bytes: size(got.content_length), put_at: time(got.last_modified.as_ref()), ..object };
    let written = receive(got, file, &arrived).await?;
    // The SDK compares the length as well, but a file that looks complete must be complete.
    if written != arrived.bytes {
        let (key, bytes) = (&arrived.key, arrived.bytes);
        return Err(Trouble::of(key, format!("{written} of {bytes} bytes arrived; the same command tries again")));
    }
    folder.keep(part, &arrived)?;
    Ok(arrived)
}

/// Writes a body to a file, and returns the number of its bytes.
async fn receive(mut got: GetObjectOutput, file: std::fs::File, object: &Object) -> Result<u64, Trouble> {
    let mut file = tokio::fs::File::from_std(file);
    let mut written = 0;
    while let Some(piece) = got.body.next().await {
        let piece = piece.map_err(|error| Trouble::of(&object.key, "its bytes did not all arrive").caused_by(error))?;
        file.write_all(&piece).await.map_err(|error| Trouble::writing(object, error))?;
        written += piece.len() as u64;
    }
    file.flush().await.map_err(|error| Trouble::writing(object, error))?;
    Ok(written)
}
