//! What goes wrong on the way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::bucket::{Bucket, Fault};
use super::{MIB, content, fetched};
use crate::DataError;
use crate::source::GetError;

/// Faults, what the error must be, and whether another attempt may succeed.
type Case<'a> = (&'a [Fault], fn(&DataError) -> bool, bool);

fn broken() -> Fault {
    Fault::Refused(GetError::Broken("timeout".to_owned()))
}

#[tokio::test]
async fn each_answer_has_its_error() {
    let denied = GetError::Denied("no".to_owned());
    let flipped = || Fault::Flipped(3);
    let cases: [Case<'_>; 6] = [
        (&[Fault::Refused(GetError::Changed)], |error| matches!(error, DataError::Changed { .. }), false),
        (&[Fault::Refused(GetError::Gone)], |error| matches!(error, DataError::Gone { .. }), false),
        (&[Fault::Refused(denied)], |error| matches!(error, DataError::Denied { .. }), false),
        (&[Fault::Long], |error| matches!(error, DataError::Damaged { .. }), false),
        (&[flipped(), flipped(), flipped(), flipped()], |error| matches!(error, DataError::Damaged { .. }), false),
        (
            &[broken(), broken(), Fault::Cut(1), Fault::Broken(2)],
            |error| matches!(error, DataError::Broken { .. }),
            true,
        ),
    ];
    for (faults, is_expected, is_transient) in cases {
        // Of a large object each range has tries of its own, so four faults may not be those of one range.
        let sizes: &[usize] = if faults.len() == 1 { &[10, 33 * MIB] } else { &[10] };
        for size in sizes.iter().copied() {
            let error = fetched(Bucket::one("b/c", content(1, size)).failing("b/c", faults), false).await.unwrap_err();
            assert!(is_expected(&error) && error.is_transient() == is_transient, "{faults:?}: {error:?}");
            assert!(error.to_string().contains("b/c"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_fails_at_its_end_is_not_used() {
    for (size, expected) in [(10, vec![None; 2]), (17 * MIB, vec![Some(0), Some(0), Some(16 << 20)])] {
        let bucket = Bucket::one("a", content(1, size)).failing("a", &[Fault::Broken(size.min(16 * MIB))]);
        let bucket = Arc::new(bucket);
        let (_folder, cache) = super::cache();
        let held = super::acquire(&cache, (&bucket.set(false), &bucket)).await.unwrap();
        assert!(super::files(held.path())["a"] == content(1, size));
        let mut starts: Vec<_> = bucket.asked("a").into_iter().map(|range| range.map(|range| range.start)).collect();
        starts.sort_unstable();
        assert_eq!(starts, expected);
    }
}

#[tokio::test]
async fn a_busy_service_fails_no_fetch() {
    let busy = || Fault::Refused(GetError::Busy("SlowDown".to_owned()));
    let bucket = || Bucket::one("a", content(1, 10)).failing("a", &vec![busy(); 20]);
    let found = fetched(bucket(), false).await.unwrap();
    assert!(found["a"] == content(1, 10));

    let (_folder, mut cache) = super::cache();
    (cache.pace.report, cache.pace.standstill) = (Duration::from_millis(5), Duration::from_millis(50));
    cache.pace.pauses = [Duration::from_millis(10); 3];
    let bucket = Arc::new(bucket());
    let error = super::acquire(&cache, (&bucket.set(false), &bucket)).await.unwrap_err();
    assert!(matches!(error, DataError::Standstill { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn a_large_object_that_arrives_damaged_is_fetched_again() {
    let size = 33 * MIB;
    let bucket = || Bucket::one("a", content(1, size));
    let found = fetched(bucket().failing("a", &[Fault::Flipped(5)]), false).await.unwrap();
    assert!(found["a"] == content(1, size));
    let error = fetched(bucket().failing("a", &vec![Fault::Flipped(5); 3 + 4]), false).await.unwrap_err();
    assert!(matches!(error, DataError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn no_md5_is_compared_where_there_is_none() {
    let other = "\"0123456789abcdef0123456789abcdef\"".to_owned();
    let multipart = "\"0123456789abcdef0123456789abcdef-3\"".to_owned();
    for size in [10, 17 * MIB] {
        for (etag, is_kms, is_fine) in [(&other, false, false), (&other, true, true), (&multipart, false, true)] {
            let mut bucket = Bucket::one("a", content(1, size)).listed(|lines| lines[0].etag.clone_from(etag));
            bucket.is_kms = is_kms;
            let found = fetched(bucket, false).await;
            assert_eq!(matches!(found, Err(DataError::Damaged { .. })), !is_fine, "{etag} {is_kms}");
            assert_eq!(found.is_ok(), is_fine);
        }
    }
}

#[tokio::test]
async fn the_source_checks_whole_objects_and_no_resumed_ones() {
    let bucket = |size| {
        let mut bucket = Bucket::one("a", content(1, size));
        bucket.has_checksums = true;
        bucket
    };
    // The MD5 of ranges is compared, so one that is wrong leads to a request for the whole object.
    let other = "\"0123456789abcdef0123456789abcdef\"".to_owned();
    for (size, requests) in [(10, 1), (17 * MIB, 3)] {
        let wrong = Arc::new(bucket(size).listed(|lines| lines[0].etag.clone_from(&other)));
        let (_folder, cache) = super::cache();
        super::acquire(&cache, (&wrong.set(false), &wrong)).await.unwrap();
        assert_eq!((wrong.asked("a").len(), wrong.asked("a").last()), (requests, Some(&None)));
    }
    let broken = Arc::new(bucket(10).failing("a", &[Fault::Broken(5), Fault::Flipped(0)]));
    let (_folder, cache) = super::cache();
    let held = super::acquire(&cache, (&broken.set(false), &broken)).await.unwrap();
    assert!(super::files(held.path())["a"] == content(1, 10));
    assert_eq!(broken.asked("a"), [None, Some(5..10), None]);
}

#[tokio::test]
async fn a_standstill_ends() {
    let (_folder, mut cache) = super::cache();
    (cache.pace.report, cache.pace.standstill) = (Duration::from_millis(20), Duration::from_millis(400));
    let bucket = Arc::new(Bucket::one("a", content(1, 10)).failing("a", &[Fault::Stalled(5)]));
    let started = Instant::now();
    let error = super::acquire(&cache, (&bucket.set(false), &bucket)).await.unwrap_err();
    assert!(matches!(error, DataError::Standstill { .. }) && error.is_transient(), "{error:?}");
    assert!(started.elapsed() >= cache.pace.standstill);
}

#[tokio::test]
async fn a_wrong_listing_is_refused() {
    type Change = fn(&mut spotsweep_protocol::claim::DataSet);
    let changes: [Change; 3] = [
        |set| set.listing.sha256.replace_range(..1, "x"),
        |set| set.listing.objects += 1,
        |set| set.listing.bytes += 1,
    ];
    for change in changes {
        let (_folder, cache) = super::cache();
        let bucket = Arc::new(Bucket::one("a", content(1, 10)));
        let mut set = bucket.set(false);
        change(&mut set);
        let error = super::acquire(&cache, (&set, &bucket)).await.unwrap_err();
        assert!(matches!(error, DataError::DamagedListing(_)), "{error:?}");
        assert_eq!(bucket.asked("a"), []);
    }
    for key in ["../a", "/etc/passwd", "a//b", "a/"] {
        let bucket = Bucket::one("a", content(1, 10)).listed(|lines| lines[0].key = key.to_owned());
        let error = fetched(bucket, false).await.unwrap_err();
        assert!(matches!(error, DataError::Key(_)), "{error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Only what is missing is asked for again.
    #[test]
    fn what_is_torn_is_continued(
        size in prop_oneof![7 => 1..3_000_000_usize, 1 => Just(17 * MIB)],
        cuts in prop::collection::vec((0.0..1.0_f64, any::<bool>()), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = size.min(16 * MIB);
        let (mut left, mut expected, mut faults) = (first, Vec::new(), Vec::new());
        for (share, is_error) in &cuts {
            expected.push(first - left);
            let at = ((left as f64 * share) as usize).min(left - 1);
            faults.push(if *is_error { Fault::Broken(at) } else { Fault::Cut(at) });
            left -= at;
        }
        expected.push(first - left);
        let bucket = Arc::new(Bucket::one("a", content(2, size)).failing("a", &faults));
        let (_folder, cache) = super::cache();
        let set = bucket.set(false);
        let settings = crate::Settings { at_once: 1, ..super::SETTINGS };
        let fetching = cache.acquire(&set, Arc::clone(&bucket), &settings, |_| ());
        let held = runtime.block_on(fetching).unwrap();
        prop_assert!(super::files(held.path())["a"] == content(2, size));
        let starts = bucket.asked("a").into_iter().map(|range| range.map_or(0, |range| range.start as usize));
        prop_assert_eq!(starts.take(expected.len()).collect::<Vec<_>>(), expected);
    }
}
