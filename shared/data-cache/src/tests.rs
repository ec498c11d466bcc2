#![allow(clippy::unwrap_used)]

mod archives;
mod bucket;
mod failures;
mod sharing;
mod small_disk;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Mode;
use spotsweep_protocol::claim::DataSet;
use tempfile::TempDir;

use crate::{Cache, DataError, Held, Settings};
use bucket::Bucket;

const MIB: usize = 1 << 20;
const SETTINGS: Settings = Settings { at_once: 4, bytes_at_once: 16 << 20 };

/// Fetches the set into the cache.
async fn acquire(cache: &Cache, (set, bucket): (&DataSet, &Arc<Bucket>)) -> Result<Held, DataError> {
    cache.acquire(set, Arc::clone(bucket), &SETTINGS, |_| ()).await
}

/// Fetches the set into an empty cache, and returns what its files have.
async fn fetched(bucket: Bucket, unpack: bool) -> Result<BTreeMap<String, Vec<u8>>, DataError> {
    let (_folder, cache) = cache();
    let (set, bucket) = (bucket.set(unpack), Arc::new(bucket));
    let held = acquire(&cache, (&set, &bucket)).await?;
    assert!(held.was_fetched());
    Ok(files(held.path()))
}

/// What the files below a folder have. All users may read them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        assert_eq!(fs::metadata(&next).unwrap().permissions().mode() & 0o7777, 0o755);
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode(), 0o100_644);
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Bytes that differ from place to place, and from seed to seed.
fn content(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(31) + at / 253 + seed * 17) as u8).collect()
}

/// The umask of the tests takes away what trainings need.
fn cache() -> (TempDir, Cache) {
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let folder = tempfile::tempdir().unwrap();
    let mut cache = Cache::open(folder.path()).unwrap();
    let short = Duration::from_millis(1);
    cache.pace.pauses = [short; 3];
    (folder, cache)
}

#[tokio::test]
async fn all_objects_arrive_as_they_are() {
    let sizes = [0, 1, MIB - 1, MIB, MIB + 1, 16 * MIB, 16 * MIB + 1, 40 * MIB + 7];
    let names = ["a", "a-b", "b/c/d", "b/c/e", "b/d", "ü b/\n", "x.tar", "z"];
    let objects: BTreeMap<String, Vec<u8>> =
        names.into_iter().zip(sizes).map(|(name, size)| (name.to_owned(), content(size, size))).collect();
    let bucket = Bucket::of(objects.clone());
    assert!(fetched(bucket, false).await.unwrap() == objects);
}
