//! Files whose formats are not judged, because that would take too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use spotsweep_checkpoint_formats::Completeness;

use super::*;
use crate::disk::{Formats, Judged};

#[derive(Debug)]
struct Busy;

impl Formats for Busy {
    fn completeness(&self, _: Judged<'_>) -> io::Result<Completeness> {
        Ok(Completeness::Unjudged)
    }

    fn may_mix(&self, _: Judged<'_>) -> io::Result<bool> {
        Ok(false)
    }
}

/// A file that is not judged is not quarantined: it may be all that a training has. A file that was being written at
/// the end is doubtful.
#[test]
fn a_file_that_is_not_judged_is_neither_torn_nor_proven() {
    let mut bench = Bench::new(true);
    let zip = zip_of(&[7; 10_000]);
    bench.write("model.pt", &zip[..100]);
    // Pages that were never written.
    let sparse = fs::File::create(bench.at("sparse.bin")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    let disk = bench.disk().judged_by(Arc::new(Busy));
    let (mut sealer, found) = Sealer::resume(&disk, bench.folder.path(), 1, true, |_| ()).unwrap();
    assert_eq!(found.torn, Vec::<String>::new());
    bench.write("last.pt", &zip);
    let at_end = AtEnd::new(BTreeSet::from([bench.at("last.pt")]), NOW, true);
    sealer.finish(&disk, &at_end, &IN_TIME).unwrap();
    assert!(sealer.record.files["last.pt"].doubtful, "{:?}", sealer.record.files);
    assert_eq!(bench.resume().1.torn, Vec::<String>::new(), "its hash is that of the seal");
}

#[derive(Debug, Default)]
struct Counting(AtomicU32);

impl Formats for Counting {
    fn completeness(&self, _: Judged<'_>) -> io::Result<Completeness> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Completeness::Whole)
    }

    fn may_mix(&self, _: Judged<'_>) -> io::Result<bool> {
        Ok(false)
    }
}

/// Formats with checksums are read completely for that. A large file may be saved again meanwhile.
#[test]
fn a_format_is_judged_once_for_a_seal() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let formats = Arc::new(Counting::default());
    let disk = bench.disk().judged_by(formats.clone());
    // Before the file rests, and after that.
    for (age_ms, expected) in [(500, 1), (60_000, 1)] {
        bench.write("model.pt", &zip_of(&[7; 100_000]));
        let now_ns = i64::try_from(bench.clock).unwrap() * 1_000_000_000 + age_ms * 1_000_000;
        formats.0.store(0, Ordering::Relaxed);
        for _ in 0..3 {
            sealer.seal_resting(&disk, QUIET, now_ns, &BTreeSet::new).unwrap();
        }
        assert!(sealer.record.files.contains_key("model.pt"));
        assert_eq!(formats.0.load(Ordering::Relaxed), expected, "after {age_ms} ms");
    }
}
