//! Objects to files: so many at once, never half of one under its own name, and none outside the folder.

use std::fs::{self, FileTimes};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use aws_sdk_s3::Client;
use aws_sdk_s3::types::EncodingType;
use percent_encoding::percent_decode_str;
use tokio::task::JoinSet;

use crate::out;
use crate::signals::unless_stopped;
use spotsweep_protocol::failure::{Context, Failure};

/// Objects that are on their way at once.
const AT_ONCE: usize = 16;

/// An object, and where it is to lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its key.
    pub(crate) key: String,
    /// Its path within the folder.
    pub(crate) path: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// When it was put, to the second.
    pub(crate) put_at: SystemTime,
}

/// What to do about a file of the same size that is not older than the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// It is the object: leave it.
    Keep,
    /// Whatever it is, replace it.
    Replace,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was fetched.
    Fetched,
    /// It was there.
    WasThere,
}

/// Lists the objects under a prefix. The part of their keys that comes after `above` becomes their path; a key that
/// would lie outside the folder is passed over, and said so.
pub(crate) async fn list(client: &Client, bucket: &str, prefix: &str, above: &str) -> Result<Vec<Object>, Failure> {
    let cannot_list = || format!("cannot list s3://{bucket}/{prefix}");
    let request = client.list_objects_v2().bucket(bucket).prefix(prefix).encoding_type(EncodingType::Url);
    let mut pages = request.into_paginator().send();
    let mut objects = Vec::new();
    while let Some(page) = pages.next().await {
        for object in page.context(cannot_list)?.contents.unwrap_or_default() {
            let key = decoded(&object.key.unwrap_or_default());
            let Some(path) = key.strip_prefix(above).and_then(safe_path) else {
                out::note(format_args!("not copied: the key {key:?} is no file name here"));
                continue;
            };
            let seconds = object.last_modified.and_then(|at| u64::try_from(at.secs()).ok()).unwrap_or(0);
            let bytes = object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
            objects.push(Object { key, path, bytes, put_at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) });
        }
    }
    Ok(objects)
}

/// A key of a list with `EncodingType=url`: XML cannot hold every character that a key may have. The service model does
/// not say how a space is encoded; boto3 decodes as forms do (botocore's `unquote_plus`).
pub(crate) fn decoded(key: &str) -> String {
    percent_decode_str(&key.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// Fetches objects into the folder and tells of each. When it is stopped by a signal, or one fails, nothing half
/// fetched stays.
pub(crate) async fn fetch(
    client: &Client,
    bucket: &str,
    objects: Vec<Object>,
    folder: &Path,
    present: Present,
    mut tell: impl FnMut(&Object, Arrival),
) -> Result<(), Failure> {
    let mut copies = JoinSet::new();
    let all = async {
        for object in objects {
            let path = folder.join(&object.path);
            if present == Present::Keep && is_there(&path, &object) {
                tell(&object, Arrival::WasThere);
                continue;
            }
            if copies.len() >= AT_ONCE {
                finish_one(&mut copies, &mut tell).await?;
            }
            copies.spawn(fetch_one(client.clone(), bucket.to_owned(), object, path));
        }
        while !copies.is_empty() {
            finish_one(&mut copies, &mut tell).await?;
        }
        Ok(())
    };
    let outcome = unless_stopped(all).await;
    // Waits until each has taken its part away.
    copies.shutdown().await;
    outcome
}

async fn finish_one(
    copies: &mut JoinSet<Result<Object, Failure>>,
    tell: &mut impl FnMut(&Object, Arrival),
) -> Result<(), Failure> {
    if let Some(copied) = copies.join_next().await {
        tell(&copied.context(|| "copying was cut off")??, Arrival::Fetched);
    }
    Ok(())
}

fn is_there(path: &Path, object: &Object) -> bool {
    let Ok(file) = fs::symlink_metadata(path) else { return false };
    let is_as_new = file.modified().is_ok_and(|modified| modified >= object.put_at);
    file.is_file() && file.len() == object.bytes && is_as_new
}

/// Fetches one object, never holding more than a piece of it in memory.
async fn fetch_one(client: Client, bucket: String, object: Object, path: PathBuf) -> Result<Object, Failure> {
    let cannot_write = || format!("cannot write {}", path.display());
    let cannot_read = || format!("cannot read s3://{bucket}/{}", object.key);
    let folder = path.parent().unwrap_or(Path::new("."));
    tokio::fs::create_dir_all(folder).await.context(cannot_write)?;
    let got = client.get_object().bucket(&bucket).key(&object.key).send().await.context(cannot_read)?;
    let part = Part::within(folder);
    let mut file = tokio::fs::File::create_new(&part.0).await.context(cannot_write)?;
    let mut body = got.body.into_async_read();
    tokio::io::copy(&mut body, &mut file)
        .await
        .context(|| format!("cannot copy {} to {}", object.key, path.display()))?;
    tokio::io::AsyncWriteExt::flush(&mut file).await.context(cannot_write)?;
    let file = file.into_std().await;
    file.set_times(FileTimes::new().set_modified(object.put_at)).context(cannot_write)?;
    fs::rename(&part.0, &path).context(cannot_write)?;
    Ok(object)
}

/// A file on its way; what is still there when this is dropped is removed.
struct Part(PathBuf);

impl Part {
    fn within(folder: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(folder.join(format!(".spotsweep-{}-{number}.part", std::process::id())))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Renamed is the usual case.
        let _ = fs::remove_file(&self.0);
    }
}

/// The rest of a key as a path that stays inside the folder it is joined to.
fn safe_path(key: &str) -> Option<PathBuf> {
    let path = Path::new(key);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_file = !key.is_empty() && !key.ends_with('/') && !key.contains("//") && !key.contains('\0');
    (plain && is_file && !key.contains("/./")).then(|| path.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_leave_the_folder() {
        for key in ["a", "trials/0/model/model.joblib", "a b", "..a"] {
            assert_eq!(safe_path(key), Some(PathBuf::from(key)), "{key}");
        }
        for key in ["", "a/", "../a", "a/../../b", "a/..", "..", "/a", "a//b", "./a", "a/./b", "a\0b"] {
            assert_eq!(safe_path(key), None, "{key:?}");
        }
    }

    #[test]
    fn only_the_very_object_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, at) = (folder.path().join("model"), |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let object = Object { key: "k".into(), path: "model".into(), bytes: 3, put_at: at(1_000) };
        assert!(!is_there(&path, &object));
        fs::write(&path, "abc").unwrap();
        let modified = |seconds| {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(at(seconds))).unwrap();
        };
        for (seconds, bytes, expected) in [(1_000, 3, true), (2_000, 3, true), (999, 3, false), (2_000, 4, false)] {
            modified(seconds);
            assert_eq!(is_there(&path, &Object { bytes, ..object.clone() }), expected, "{seconds} {bytes}");
        }
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(!is_there(&folder.path().join("link"), &object), "a link leads elsewhere");
    }

    #[test]
    fn a_part_goes_with_its_fetch() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (Part::within(folder.path()), Part::within(folder.path()));
        fs::write(&one.0, "half").unwrap();
        fs::write(&other.0, "whole").unwrap();
        fs::rename(&other.0, folder.path().join("model")).unwrap();
        drop((one, other));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["model"]);
    }
}
