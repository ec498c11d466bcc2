//! Files of which neither times nor names show whether they are parts of one checkpoint.

use super::*;

/// The name of part `part` of the checkpoint after `step`.
type Layout = fn(step: u32, part: usize) -> String;

const LAYOUTS: [Layout; 3] = [
    |step, part| format!("step-{step:06}-run-1/part-{part}.zip"),
    |step, part| format!("step-{step:06}-part-{part}.zip"),
    |step, part| format!("rank-{part}/epoch-{step}.zip"),
];

/// The files of a checkpoint, of which some may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Older {
    /// It has all its parts, and is sealed.
    Whole,
    /// It has only its last part.
    Half,
    /// There is none.
    None,
}

impl Bench {
    /// Starts attempts that load the newest of `steps` with all its parts, and that fail with the same error where they
    /// do not find one of them. Returns the step from which one starts, or 0 for the beginning. `None` if the trial
    /// fails.
    fn start_from(&mut self, layout: Layout, steps: [u32; 2], parts: usize) -> Option<u32> {
        for _attempt in 0..8 {
            let (mut sealer, _) = self.resume();
            sealer.begin(&self.disk()).unwrap();
            let is_there = |step: u32, part: usize| self.at(&layout(step, part)).exists();
            let newest = steps.into_iter().rev().find(|step| (0..parts).any(|part| is_there(*step, part)));
            let Some(newest) = newest else { return Some(0) };
            if (0..parts).all(|part| is_there(newest, part)) {
                return Some(newest);
            }
            let rollback = sealer.roll_back(&self.disk(), &failure("a part is missing")).unwrap();
            sealer.finish(&self.disk(), &at_rest(), &IN_TIME).unwrap();
            rollback?;
        }
        unreachable!("at most four rollbacks")
    }
}

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

/// One part is put aside, and the others stay: each of them may be a checkpoint of its own.
#[test]
fn a_training_gets_past_the_parts_of_an_incomplete_checkpoint() {
    let steps = [20, 30];
    for (older, most, from) in [(Older::Whole, 6, 20), (Older::Half, 4, 0), (Older::None, 6, 0)] {
        for (layout, parts) in LAYOUTS.into_iter().flat_map(|layout| [2, 3, most].map(|parts| (layout, parts))) {
            for (torn, is_sealed) in (0..parts).flat_map(|torn| [(torn, true), (torn, false)]) {
                let what = format!("{older:?}, {}, torn {torn} of {parts}, sealed: {is_sealed}", layout(30, torn));
                let mut bench = Bench::new(false);
                let (mut sealer, _) = bench.resume();
                sealer.begin(&bench.disk()).unwrap();
                let is_there = |part: &usize| older == Older::Whole || (older == Older::Half && *part == parts - 1);
                for part in (0..parts).filter(is_there) {
                    bench.write(&layout(20, part), &zip_of(&[20, part as u8]));
                }
                if older == Older::Whole {
                    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
                }
                bench.clock += 2;
                for part in 0..parts {
                    bench.write(&layout(30, part), &zip_of(&[30, part as u8]));
                }
                let open = bench.at(&layout(30, torn));
                if is_sealed {
                    sealer.seal_resting(&bench.disk(), QUIET, NOW, &|| [open.clone()].into()).unwrap();
                }
                fs::write(&open, b"PK\x03\x04 cut off").unwrap();
                bench.touch(&layout(30, torn));
                assert_eq!(bench.start_from(layout, steps, parts), Some(from), "{what}");
            }
        }
    }
}

/// Each epoch takes a second, so the times of the files do not show that each is a checkpoint of its own.
#[test]
fn a_fast_training_loses_only_its_incomplete_epochs() {
    let name = |epoch: u32| format!("run-1/epoch-{epoch}.zip");
    for cut in [1, 2, 3] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        for epoch in 1..=6 {
            let content = match epoch {
                6 => b"PK\x03\x04 cut off".to_vec(),
                // The format does not show that these are incomplete.
                _ if epoch > 6 - cut => vec![0xff; 30],
                _ => zip_of(&[epoch as u8]),
            };
            bench.write(&name(epoch), &content);
            if epoch == 3 {
                sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            }
        }
        for epoch in (7 - cut..6).rev() {
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            assert_eq!((rollback.checkpoint, rollback.to), (name(epoch), Some(name(epoch - 1))), "{cut}");
        }
        assert_eq!(bench.resume().1.newest, Some(name(6 - cut)), "{cut}");
        assert_eq!((1..=6 - cut).filter(|epoch| !bench.at(&name(*epoch)).exists()).count(), 0, "{cut}");
    }
}

/// There is room to keep the first part of the second save, but not its second part. The third save is cut.
#[test]
fn parts_are_kept_with_all_others_or_not_at_all() {
    let content = |save: usize| zip_of(&(0..100 * save).map(|at| (at * at % 251) as u8).collect::<Vec<_>>());
    let all = ["model-rank-0.pt", "model-rank-1.pt"];
    let mut bench = Bench::new(false);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    for save in 1..=2 {
        all.iter().for_each(|path| bench.write(path, &content(save)));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        if save == 1 {
            let mut large = sealer.record.kept[all[0]].clone();
            large.stamp.bytes = (1 << 30) - (content(1).len() + content(2).len()) as u64;
            sealer.record.kept.insert("step-7.bin".to_owned(), large);
            fs::write(bench.folder.path().join(OWN).join("kept/step-7.bin"), b"").unwrap();
        }
        bench.clock += 600;
    }
    bench.write(all[0], &content(3)[..100]);
    for attempt in 0..4 {
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let found = all.map(|path| fs::read(bench.at(path)).ok().map(|found| found.len()));
        assert_eq!(found[0], found[1], "attempt {attempt}");
        sealer.roll_back(&bench.disk(), &failure("it cannot be decoded")).unwrap();
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
    }
}

/// A save removes the old parts before it writes the new ones. A round of sealing comes in between. Then the instance is
/// lost, and the volume still has some of the old parts.
#[test]
fn parts_that_are_removed_before_they_are_written_again_are_not_mixed() {
    let all = ["model-rank-0.pt", "model-rank-1.pt"];
    for (saves, done, back) in [1, 2].into_iter().flat_map(|saves| (0..4).map(move |at| (saves, at % 2 + 1, at / 2))) {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        for save in 0..saves {
            bench.clock += 600;
            all.iter().for_each(|path| bench.write(path, &zip_of(&[save])));
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        let old = bench.folder.path().join("old");
        fs::hard_link(bench.at(all[back]), &old).unwrap();
        all[..done].iter().for_each(|path| fs::remove_file(bench.at(path)).unwrap());
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        bench.clock += 600;
        all.iter().for_each(|path| bench.replace(path, &zip_of(&[saves])));
        fs::rename(&old, bench.at(all[back])).unwrap();
        bench.resume();
        let found = all.map(|path| fs::read(bench.at(path)).unwrap());
        assert_eq!(found[0], found[1], "{saves} saves, {done} removed, old part {back}");
    }
}

/// Each save writes over its parts of raw numbers, and two instances are lost within the second save. Of one part, only
/// the new time is on the volume after the first loss. Then one part has its new content.
#[test]
fn a_part_with_a_new_time_and_its_old_content_is_as_sealed() {
    let all = ["part-0.bin", "part-1.bin"];
    for (old, new, is_disk) in (0..8).map(|case| (case & 1, case >> 1 & 1, case < 4)) {
        let mut bench = Bench::new(is_disk);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        all.iter().for_each(|path| bench.write(path, &[1; 2000]));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        for written in [1 - old, new] {
            bench.clock += 600;
            bench.touch(all[old]);
            bench.write(all[written], &[2; 2000]);
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            let found = all.map(|path| fs::read(bench.at(path)).unwrap());
            assert_eq!(found[0], found[1], "part {old} is old, then part {new} is new");
        }
    }
}
