//! Databases recover by themselves from the files next to them: Optuna's studies, W&B's and MLflow's stores.

use std::fs;

use super::*;
use crate::CheckpointWatch;

const PAGE: usize = 512;
/// A journal whose first page SQLite has not finished writing.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// A database of three pages, the last two of which differ in each version.
fn database(version: u8) -> Vec<u8> {
    let mut pages = vec![version; 3 * PAGE];
    pages[..PAGE].fill(0);
    pages[..16].copy_from_slice(b"SQLite format 3\0");
    pages[16..18].copy_from_slice(&512_u16.to_be_bytes());
    pages[28..32].copy_from_slice(&3_u32.to_be_bytes());
    for counter in [24, 92] {
        pages[counter + 3] = version;
    }
    pages
}

fn journal(version: u8) -> Vec<u8> {
    [&JOURNAL[..], &[0; PAGE], &[version; PAGE]].concat()
}

impl Bench {
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.path().join(OWN).join("kept").join(name)).ok()
    }
}

/// A transaction is open at each end, and the study's own file has some sectors of each version.
#[test]
fn a_database_and_its_journal_stay_as_they_are() {
    for (is_last, end) in [(false, "-journal"), (true, "-journal"), (false, "-wal")] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        let beside = format!("study.db{end}");
        bench.write("study.db", &database(1));
        bench.write(&beside, &journal(1));
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        assert_eq!(sealer.record.files.keys().collect::<Vec<_>>(), ["study.db"]);
        let mixed = [&database(2)[..2 * PAGE], &database(1)[2 * PAGE..]].concat();
        for _ in 0..2 {
            bench.write("study.db", &mixed);
            bench.write(&beside, &journal(2));
            if is_last {
                sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
                // The files next to it are part of it.
                bench.write("study.db", &database(2));
            }
            let (now, found) = (bench.read("study.db"), bench.resume().1);
            assert_eq!((found.torn, found.missing), (vec![], vec![]), "{end}, final seal: {is_last}");
            assert!(bench.read("study.db") == now && bench.read(&beside) == journal(2), "{end}: {is_last}");
        }
        // The transaction ends.
        fs::remove_file(bench.at(&beside)).unwrap();
        assert_eq!(bench.resume().1, Found { newest: Some("study.db".into()), ..Found::default() });
    }
}

/// Without its journal, a copy is a mix of two versions.
#[test]
fn a_copy_of_a_database_is_kept_only_where_no_transaction_is_open() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for (version, is_open) in [(1, false), (2, true), (3, false)] {
        bench.write("study.db", &database(version));
        let journal: &[u8] = if is_open { &journal(version) } else { b"" };
        bench.write("study.db-journal", journal);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        let kept = if is_open { version - 1 } else { version };
        assert!(bench.kept("study.db") == Some(database(kept)), "{version}");
        assert_eq!(bench.kept("study.db-journal"), None);
    }
}

#[test]
fn a_database_that_is_cut_off_or_gone_goes_back_and_what_was_beside_it_goes_aside() {
    for left in [Some(PAGE + 7), Some(0), None] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("study.db", &database(1));
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        match left {
            Some(bytes) => bench.write("study.db", &database(2)[..bytes]),
            None => fs::remove_file(bench.at("study.db")).unwrap(),
        }
        // A log without a frame.
        bench.write("study.db-wal", b"\x37\x7f\x06\x82");
        bench.resume();
        assert!(bench.read("study.db") == database(1), "{left:?}");
        assert!(!bench.at("study.db-wal").exists(), "{left:?}");
        assert!(bench.folder.path().join(OWN).join(TORN).join("2/study.db-wal").exists(), "{left:?}");
    }
}

/// The study is written at each start, before the model is loaded.
#[test]
fn a_rollback_is_for_a_checkpoint_beside_a_database() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    let mut write = |bench: &mut Bench, version: u8| {
        bench.write("model.bin", &[version; 2000]);
        bench.write("study.db", &database(version));
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    };
    write(&mut bench, 1);
    bench.write("model.bin", &[2; 1000]);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.write("study.db", &database(3));
    bench.write("study.db-journal", &journal(3));
    assert!(!sealer.has_new_checkpoint(&bench.disk()).unwrap());
    let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
    assert_eq!(rollback.checkpoint, "model.bin");
    assert!(bench.read("model.bin") == [1; 2000]);
    assert!(bench.read("study.db") == database(3) && bench.read("study.db-journal") == journal(3));
}

/// A connection is always open, and may commit at any time.
#[test]
fn a_stop_waits_for_no_database() {
    let bench = &mut Bench::new(true);
    bench.write("model.pt", &zip_of(b"1"));
    bench.write("study.db", &database(1));
    bench.write("study.db-journal", &journal(1));
    let disk = bench.disk();
    let mut watch = CheckpointWatch::new(&disk, bench.folder.path().join(CHECKPOINTS), Duration::ZERO);
    let open = BTreeSet::from([bench.at("study.db"), bench.at("study.db-journal")]);
    let mut look = |bench: &mut Bench, step: u8| {
        bench.write("study.db", &database(step));
        if step.is_multiple_of(2) {
            bench.write("study.db-journal", &journal(step));
        } else {
            fs::remove_file(bench.at("study.db-journal")).unwrap();
        }
        watch.look(&disk, &open, Duration::from_secs(2) * u32::from(step), Duration::from_secs(99))
    };
    assert_eq!((1..5).find_map(|step| look(bench, step)), None, "no checkpoint was written");
    bench.write("model.pt", &zip_of(b"2"));
    assert_eq!((look(bench, 5), look(bench, 6)), (None, Some("model.pt".to_owned())));
}
