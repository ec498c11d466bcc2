//! A disk of 64 MiB.

use std::sync::Arc;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::bucket::Bucket;
use super::{MIB, acquire, content};
use crate::{Cache, DataError};

struct SmallDisk {
    folder: TempDir,
    cache: Cache,
}

impl SmallDisk {
    /// `None` without root.
    fn make() -> Option<Self> {
        if !spotsweep_needs::met(spotsweep_needs::root()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        mount("small", folder.path(), "tmpfs", MountFlags::empty(), Some(c"size=64m")).unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        Some(Self { folder, cache })
    }

    fn has(&self, bucket: &Bucket) -> bool {
        let own = self.folder.path().join("cache").join(bucket.set(false).id());
        // The lock stays.
        own.join("lock").exists() && own.join("complete").exists() && own.join("tree").exists()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
    }
}

/// A file of so many zeros in a small archive.
fn archive(mib: usize) -> Arc<Bucket> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size((mib * MIB) as u64);
    tar.append_data(&mut header, "zeros", &*vec![0; mib * MIB]).unwrap();
    let tar = tar.into_inner().unwrap();
    Arc::new(Bucket::one("a.tar.zst", compress_to_vec(&*tar, CompressionLevel::Fastest)))
}

#[tokio::test]
async fn an_archive_may_have_more_than_was_expected() {
    let Some(disk) = SmallDisk::make() else { return };
    let [first, second] = [set(1, 15), set(2, 16)];
    for bucket in [&first, &second] {
        drop(acquire(&disk.cache, (&bucket.set(false), bucket)).await.unwrap());
    }
    let fitting = archive(40);
    let held = acquire(&disk.cache, (&fitting.set(true), &fitting)).await.unwrap();
    assert_eq!(std::fs::metadata(held.path().join("zeros")).unwrap().len(), 40 * MIB as u64);
    assert!(!disk.has(&first) && disk.has(&second));
    let error = acquire(&disk.cache, (&archive(50).set(true), &archive(50))).await.unwrap_err();
    let DataError::DoesNotFit(shortage) = error else { panic!("{error}") };
    assert!(shortage.needed > 50 * MIB as u64 && shortage.in_use > 40 * MIB as u64);
    // It would fit without the one that is in use.
    assert!(shortage.is_caused_by_others(0));
    drop(held);
    drop(acquire(&disk.cache, (&archive(50).set(true), &archive(50))).await.unwrap());
    let error = acquire(&disk.cache, (&archive(62).set(true), &archive(62))).await.unwrap_err();
    assert!(matches!(error, DataError::DoesNotFit(shortage) if !shortage.is_caused_by_others(0)), "{error}");
}

fn set(seed: usize, mib: usize) -> Arc<Bucket> {
    Arc::new(Bucket::one("a", content(seed, mib * MIB)))
}

#[tokio::test]
async fn what_was_not_used_for_longest_makes_room() {
    let Some(disk) = SmallDisk::make() else { return };
    let [first, second, third, large] = [set(1, 15), set(2, 16), set(3, 17), set(4, 28)];
    for bucket in [&first, &second, &third, &first] {
        drop(acquire(&disk.cache, (&bucket.set(false), bucket)).await.unwrap());
    }
    let held = acquire(&disk.cache, (&third.set(false), &third)).await.unwrap();
    // Of 60 MiB without the margin 48 are taken. The first was used again after the second.
    drop(acquire(&disk.cache, (&large.set(false), &large)).await.unwrap());
    assert_eq!([&first, &second, &third, &large].map(|bucket| disk.has(bucket)), [true, false, true, true]);
    let error = acquire(&disk.cache, (&set(5, 45).set(false), &set(5, 45))).await.unwrap_err();
    let DataError::DoesNotFit(shortage) = error else { panic!("{error}") };
    let mib = |bytes: u64| bytes.div_ceil(MIB as u64);
    assert_eq!([shortage.needed, shortage.evictable, shortage.in_use].map(mib), [46, 44, 18]);
    assert!(shortage.free < MIB as u64);
    // Nothing goes in vain.
    assert!(disk.has(&first) && disk.has(&large));
    drop(held);
    drop(acquire(&disk.cache, (&set(5, 45).set(false), &set(5, 45))).await.unwrap());
}
