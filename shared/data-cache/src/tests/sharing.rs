//! Several runners on one instance.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::bucket::{Bucket, Fault};
use super::{MIB, acquire, cache, content, files};
use crate::folder::SetFolder;
use crate::next::{Content, Hold};
use crate::{Cache, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_fetches_and_the_others_wait() {
    let (folder, _) = cache();
    let objects = (0..200).map(|at| (format!("{}/{at:03}", at % 7), content(at, 5_000))).collect();
    let bucket = Arc::new(Bucket::of(objects));
    let set = bucket.set(false);
    let runner = || {
        let (bucket, set, root) = (Arc::clone(&bucket), set.clone(), folder.path().to_owned());
        tokio::spawn(async move {
            let cache = Cache::open(&root).unwrap();
            let held = acquire(&cache, (&set, &bucket)).await.unwrap();
            assert_eq!(files(held.path()).len(), 200);
            held.was_fetched()
        })
    };
    let mut fetched = 0;
    for runner in (0..8).map(|_| runner()).collect::<Vec<_>>() {
        fetched += u32::from(runner.await.unwrap());
    }
    assert_eq!((fetched, bucket.requests.lock().unwrap().len(), *bucket.listings.lock().unwrap()), (1, 200, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_sees_how_far_the_other_is() {
    let (_folder, cache) = cache();
    let bucket = Arc::new(Bucket::one("a", content(1, 2 * MIB)).failing("a", &[Fault::Stalled(MIB)]));
    let set = bucket.set(false);
    let fetching = tokio::spawn({
        let (cache, bucket, set) = (cache.clone(), Arc::clone(&bucket), set.clone());
        async move { acquire(&cache, (&set, &bucket)).await.map(drop) }
    });
    while bucket.requests.lock().unwrap().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let settings = Settings::default();
    let (seen, is_killed) = (AtomicBool::new(false), AtomicBool::new(false));
    let waiting = cache.acquire(&set, Arc::clone(&bucket), &settings, |progress| {
        assert!(progress.of_bytes == 2 * MIB as u64 && (progress.is_waiting || is_killed.load(Ordering::Relaxed)));
        // Whole pieces have arrived.
        seen.fetch_or(progress.is_waiting && progress.bytes > MIB as u64 / 2, Ordering::Relaxed);
    });
    let kill = async {
        while !seen.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10)).await;
        }
        is_killed.store(true, Ordering::Relaxed);
        fetching.abort();
    };
    let (held, ()) = tokio::join!(waiting, kill);
    // It removes what the killed one has left, and fetches the set itself.
    let held = held.unwrap();
    assert!(held.was_fetched() && files(held.path())["a"] == content(1, 2 * MIB));
}

#[tokio::test]
async fn a_complete_set_is_found_at_once() {
    let (folder, cache) = cache();
    let bucket = Arc::new(Bucket::of((0..2_000).map(|at| (format!("{at:04}"), content(at, 10))).collect()));
    let set = bucket.set(false);
    drop(acquire(&cache, (&set, &bucket)).await.unwrap());
    let started = Instant::now();
    let held = acquire(&cache, (&set, &bucket)).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1) && !held.was_fetched());
    assert_eq!(*bucket.listings.lock().unwrap(), 1);
    // As long as one reads it, no other can lock it to remove it.
    let other = SetFolder::make(folder.path(), &set.id()).unwrap();
    assert_eq!(other.take(Hold::Exclusive).unwrap(), Hold::Nothing);
    drop(held);
    assert_eq!(other.take(Hold::Exclusive).unwrap(), Hold::Exclusive);
}

#[tokio::test]
async fn only_what_is_complete_since_the_last_boot_is_used() {
    let (folder, mut cache) = cache();
    let bucket = Arc::new(Bucket::one("a/b", content(1, 10)));
    let set = bucket.set(false);
    drop(acquire(&cache, (&set, &bucket)).await.unwrap());
    let own = folder.path().join(set.id());
    let cases: [(&str, &dyn Fn()); 5] = [
        ("nothing", &|| ()),
        ("the mark is gone", &|| fs::remove_file(own.join("complete")).unwrap()),
        ("the mark is torn", &|| fs::write(own.join("complete"), b"{\"bytes\":1").unwrap()),
        ("the files are gone", &|| fs::remove_dir_all(own.join("tree")).unwrap()),
        ("a killed fetch", &|| {
            fs::remove_file(own.join("complete")).unwrap();
            fs::rename(own.join("tree"), own.join("part")).unwrap();
        }),
    ];
    for (case, damage) in cases {
        damage();
        let held = acquire(&cache, (&set, &bucket)).await.unwrap();
        assert_eq!(held.was_fetched(), case != "nothing", "{case}");
        assert_eq!(files(held.path()).len(), 1);
        assert!(!own.join("part").exists());
    }
    cache.boot = "another".to_owned();
    let found = SetFolder::make(folder.path(), &set.id()).unwrap();
    assert_eq!(
        (found.content("another"), found.content(&found.complete().unwrap().boot)),
        (Content::Leftovers, Content::Complete)
    );
    assert!(acquire(&cache, (&set, &bucket)).await.unwrap().was_fetched());
}

#[tokio::test]
async fn a_fetch_that_fails_leaves_the_lock() {
    let (_folder, cache) = cache();
    let gone = Fault::Refused(crate::GetError::Gone);
    let bucket =
        Arc::new(Bucket::of((0..50).map(|at| (format!("{at:02}"), content(at, 10))).collect()).failing("07", &[gone]));
    let set = bucket.set(false);
    acquire(&cache, (&set, &bucket)).await.unwrap_err();
    let held = acquire(&cache, (&set, &bucket)).await.unwrap();
    assert_eq!(files(held.path()).len(), 50);
}
