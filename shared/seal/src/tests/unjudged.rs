//! Files whose formats are not judged, since that would take too long.

use std::sync::Arc;

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

/// What is not judged is not put aside: it may be all that a training has. What was being written at the end is doubtful.
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
