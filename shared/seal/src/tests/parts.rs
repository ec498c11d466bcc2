//! Files of which neither times nor names show whether they are parts of one checkpoint.

use super::*;

/// The name of part `part` of the checkpoint after `step`.
type Layout = fn(step: u32, part: usize) -> String;

const LAYOUTS: [Layout; 3] = [
    |step, part| format!("step-{step:06}-run-1/part-{part}.zip"),
    |step, part| format!("step-{step:06}-part-{part}.zip"),
    |step, part| format!("rank-{part}/epoch-{step}.zip"),
];

/// The training begins a save and abandons it for another one, as at a stop signal, and removes what it has abandoned.
#[test]
fn a_checkpoint_after_an_abandoned_save_is_kept_with_all_its_parts() {
    for layout in LAYOUTS {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        bench.write(&layout(10, 0), &zip_of(b"10"));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        let whole: Vec<String> = (0..2).map(|part| layout(11, part)).collect();
        whole.iter().for_each(|path| bench.write(path, &zip_of(path.as_bytes())));
        fs::remove_file(bench.at(&layout(10, 0))).unwrap();
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        let (sealer, _) = bench.resume();
        let is_kept = |path: &&String| sealer.record.kept.contains_key(*path);
        assert_eq!(whole.iter().filter(is_kept).count(), 2, "{whole:?} of {:?}", sealer.record.kept.keys());
    }
}
