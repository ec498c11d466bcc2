//! Checkpoints of several files whose names do not show that, after a lost instance has written part of the newest.

use spotsweep_protocol::claim::Found;

use super::*;

/// The name of checkpoint `{}`, and its files.
type Layout = (&'static str, &'static [&'static str]);

const LAYOUTS: [Layout; 7] = [
    (
        "epoch_0_step_{}",
        &["epoch_0_step_{}/a-1-of-3.bin", "epoch_0_step_{}/a-2-of-3.bin", "epoch_0_step_{}/a-3-of-3.bin"],
    ),
    ("2026-01-01_{}", &["2026-01-01_{}/model.bin", "2026-01-01_{}/optim.bin", "2026-01-01_{}/rng.bin"]),
    ("lr_0.1-iter_{}", &["lr_0.1-iter_{}/rank_0/a.bin", "lr_0.1-iter_{}/rank_1/a.bin", "lr_0.1-iter_{}/rank_2/a.bin"]),
    ("c_{}-part-0-shard*.bin", &["c_{}-part-0-shard0.bin", "c_{}-part-0-shard1.bin", "c_{}-part-0-shard2.bin"]),
    ("rank*/epoch_{}.bin", &["rank0/epoch_{}.bin", "rank1/epoch_{}.bin", "rank2/epoch_{}.bin"]),
    ("rank*/e_{}", &["rank0/e_{}/a.bin", "rank1/e_{}/a.bin", "rank2/e_{}/a.bin"]),
    ("*_{}.bin", &["model_{}.bin", "optim_{}.bin", "rng_{}.bin"]),
];

impl Bench {
    /// Writes the first `count` files of a checkpoint, half a minute after the one before.
    fn save(&mut self, layout: Layout, number: u32, count: usize, content: impl Fn(u32) -> Vec<u8>) {
        self.clock += 30;
        for (part, path) in (0..).zip(&layout.1[..count]) {
            self.write(&path.replace("{}", &number.to_string()), &content(part));
        }
    }

    fn numbers(&self, layout: Layout) -> Vec<u32> {
        let is_whole =
            |number: &u32| layout.1.iter().all(|path| self.at(&path.replace("{}", &number.to_string())).exists());
        (1..9).filter(is_whole).collect()
    }

    fn left(&self, layout: Layout, number: u32) -> usize {
        layout.1.iter().filter(|path| self.at(&path.replace("{}", &number.to_string())).exists()).count()
    }
}

fn name(layout: Layout, number: u32) -> String {
    layout.0.replace("{}", &number.to_string())
}

/// A file is cut off, and its format shows that.
#[test]
fn an_incomplete_file_takes_its_checkpoint_along() {
    for (layout, count) in LAYOUTS.into_iter().flat_map(|layout| (1..=3).map(move |count| (layout, count))) {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        for number in 1..4 {
            bench.save(layout, number, 3, |part| zip_of(&[7; 1000][..100 + part as usize]));
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        let last = u32::try_from(count - 1).unwrap();
        bench.save(layout, 4, count, |part| if part == last { b"PK\x03\x04 cut off".to_vec() } else { zip_of(b"4") });
        let (_, found) = bench.resume();
        // The pattern of a single file has the number of that file.
        let torn = found.torn.clone();
        assert_eq!(found, Found { newest: Some(name(layout, 3)), torn: found.torn.clone(), ..Found::default() });
        assert_eq!((torn.len(), bench.left(layout, 4)), (1, 0), "{} with {count}: {torn:?}", layout.0);
        assert_eq!(bench.numbers(layout), [1, 2, 3], "{}", layout.0);
    }
}

/// Files are missing, or cut off without a sign of it: only the training can find that out.
#[test]
fn a_rollback_goes_back_a_whole_checkpoint() {
    for (layout, count) in LAYOUTS.into_iter().flat_map(|layout| (1..=3).map(move |count| (layout, count))) {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        for number in 1..4 {
            bench.save(layout, number, 3, |part| vec![0xfe; 100 + part as usize]);
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        bench.save(layout, 4, count, |_| vec![0xff; 50]);
        let (mut sealer, found) = bench.resume();
        // Where the name of its folder shows no number, a file that no seal has is not trusted.
        if (layout.0, count) != ("rank*/e_{}", 1) {
            assert_eq!(found.torn, [""; 0], "{}", layout.0);
            let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
            assert_eq!(rollback.to, Some(name(layout, 3)), "{} with {count}", layout.0);
            assert!(count < 3 || rollback.checkpoint == name(layout, 4), "{}", rollback.checkpoint);
        }
        assert_eq!((bench.numbers(layout), bench.left(layout, 4)), (vec![1, 2, 3], 0), "{} with {count}", layout.0);
        assert_eq!(bench.resume().1.newest, Some(name(layout, 3)));
    }
}

/// The training keeps one checkpoint. Its removal is written out, but the next checkpoint is missing or incomplete.
#[test]
fn a_removed_checkpoint_is_back_with_all_its_files() {
    for (layout, count) in LAYOUTS.into_iter().flat_map(|layout| (0..3).map(move |count| (layout, count))) {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        for number in 1..4 {
            bench.save(layout, number, 3, |part| zip_of(&[number as u8; 1000][..100 + part as usize]));
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            for path in layout.1 {
                drop(fs::remove_file(bench.at(&path.replace("{}", &(number - 1).to_string()))));
            }
        }
        for path in layout.1 {
            fs::remove_file(bench.at(&path.replace("{}", "3"))).unwrap();
        }
        bench.save(layout, 4, count, |_| zip_of(b"4"));
        bench.resume();
        assert_eq!(bench.numbers(layout), [3], "{} with {count}", layout.0);
    }
}

/// There is no earlier checkpoint to compare the first one with.
#[test]
fn a_first_checkpoint_is_kept_as_a_whole() {
    for layout in LAYOUTS {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        bench.save(layout, 1, 3, |_| zip_of(b"1"));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        for path in layout.1 {
            fs::remove_file(bench.at(&path.replace("{}", "1"))).unwrap();
        }
        bench.save(layout, 2, 1, |_| b"PK\x03\x04 cut off".to_vec());
        let (_, found) = bench.resume();
        assert_eq!((found.torn.len(), bench.numbers(layout)), (1, vec![1]), "{}", layout.0);
    }
}

/// Flat files are written under other names and then renamed.
#[test]
fn a_checkpoint_of_which_a_file_is_unfinished_goes_at_once() {
    for layout in LAYOUTS {
        let mut bench = Bench::new(false);
        for number in 1..4 {
            bench.save(layout, number, 3, |_| vec![0xfe; 100]);
        }
        bench.save(layout, 4, 2, |_| vec![0xfe; 100]);
        bench.write(&format!("{}.tmp", layout.1[2].replace("{}", "4")), b"half");
        let (_, found) = bench.resume();
        assert_eq!((found.newest, found.torn), (Some(name(layout, 3)), vec![name(layout, 4)]), "{}", layout.0);
        assert_eq!(bench.left(layout, 4), 0, "{}", layout.0);
    }
}

/// A save is abandoned after its first file, and begun again with another one.
#[test]
fn no_file_is_sealed_while_another_of_its_checkpoint_is_written() {
    for layout in LAYOUTS {
        let mut bench = Bench::new(false);
        let (mut sealer, _) = bench.resume();
        for number in 1..4 {
            bench.save(layout, number, 3, |_| vec![0xfe; 100]);
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        bench.save(layout, 4, 2, |_| vec![0xff; 50]);
        let open = bench.at(&layout.1[1].replace("{}", "4"));
        let sealed = sealer.seal_resting(&bench.disk(), QUIET, NOW, &|| [open.clone()].into()).unwrap();
        assert!(!sealed, "{}", layout.0);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap(), "{}", layout.0);
    }
}

#[test]
fn a_log_that_stays_open_in_a_checkpoint_does_not_delay_its_seal() {
    let mut bench = Bench::new(false);
    let (mut sealer, _) = bench.resume();
    bench.write("step_4/model.bin", &[0xfe; 100]);
    bench.write("step_4/train.log", b"loss 0.5\n");
    let open = bench.at("step_4/train.log");
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &|| [open.clone()].into()).unwrap());
    assert_eq!(sealer.record.files.len(), 1);
}
