//! Unsealed checkpoints that lay there when an attempt began: they may be complete.

use super::*;

/// An instance is lost in the middle of step 30, and the format shows no end. The pointer makes the next attempts start
/// from step 20.
#[test]
fn a_checkpoint_that_lay_there_unsealed_does_not_replace_the_one_that_is_kept() {
    for is_last in [false, true] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("step-000020.bin", &[0xfe; 1900]);
        bench.write("latest", b"step-000020.bin");
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        bench.write("step-000030.bin", &[0xff; 470]);
        for _ in 0..2 {
            let (mut sealer, _) = bench.resume();
            if is_last {
                sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            } else {
                sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            }
        }
        // The training reaches step 30, but only the removal of step 20 is written out.
        let (mut sealer, _) = bench.resume();
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        fs::remove_file(bench.at("step-000020.bin")).unwrap();
        bench.write("step-000030.bin", b"");
        bench.resume();
        assert_eq!(fs::read(bench.at("step-000020.bin")).unwrap(), [0xfe; 1900], "final seal: {is_last}");

        let (mut sealer, _) = bench.resume();
        bench.write("step-000030.bin", &[0xff; 1900]);
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        let kept = |name| bench.folder.path().join(OWN).join("kept").join(name).exists();
        assert_eq!((kept("step-000020.bin"), kept("step-000030.bin")), (false, true), "the new one is complete");
    }
}

/// The checkpoint may be complete, and the training may go on from it.
#[test]
fn a_checkpoint_that_lay_there_unsealed_is_kept_too() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("step-000020.bin", &[0xfe; 1900]);
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    bench.write("step-000021.bin", &[0xff; 1900]);
    fs::remove_file(bench.at("step-000020.bin")).unwrap();
    let (mut sealer, _) = bench.resume();
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    fs::remove_file(bench.at("step-000021.bin")).unwrap();
    let (_, found) = bench.resume();
    assert_eq!(found.newest.as_deref(), Some("step-000021.bin"));
    assert_eq!(fs::read(bench.at("step-000021.bin")).unwrap(), [0xff; 1900]);
    assert_eq!(fs::read(bench.at("step-000020.bin")).unwrap(), [0xfe; 1900]);
}

/// Two attempts are lost in the same save, and the second one got further. The third goes on from that version and is
/// lost in its next save. Only the removal of this checkpoint is written out.
#[test]
fn the_longer_one_of_two_unsealed_versions_is_kept() {
    for (lengths, longest) in [([1268, 1900], 1900), ([1900, 1268], 1900)] {
        let mut bench = Bench::new(true);
        bench.resume();
        for bytes in lengths {
            bench.write("step-000010.bin", &vec![0xff; bytes]);
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        fs::remove_file(bench.at("step-000010.bin")).unwrap();
        bench.resume();
        assert_eq!(fs::read(bench.at("step-000010.bin")).unwrap().len(), longest, "{lengths:?}");
    }
}

/// The handler gives up the first pointer before it writes the text. The name for it is unknown: the script starts from
/// its beginning, and finds the checkpoint complete.
#[test]
fn an_empty_pointer_is_put_aside_and_not_the_checkpoint() {
    for is_last in [false, true] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("step-000010.pt", &zip_of(b"1"));
        bench.write("latest", b"");
        bench.write("begun", b"");
        if is_last {
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        } else {
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        let (_, found) = bench.resume();
        assert_eq!((found.newest.as_deref(), found.torn), (Some("step-000010.pt"), vec!["latest".to_owned()]));
        assert!(!bench.at("latest").exists() && bench.at("step-000010.pt").exists());
        assert!(bench.at("begun").exists(), "it may be a mark");
    }
}

/// An attempt is lost after the next checkpoint and its pointer, which no seal has. The attempt after it goes on from
/// them, and is lost while it writes the pointer again.
#[test]
fn a_pointer_that_lay_there_unsealed_names_the_checkpoint_that_the_training_started_from() {
    for seals in [false, true] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("step-000010.bin", &[0xfd; 1900]);
        bench.write("step-000012.bin", &[0xfe; 1900]);
        bench.write("latest", b"step-000012.bin");
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        bench.write("step-000015.bin", &[0xff; 1900]);
        fs::remove_file(bench.at("step-000010.bin")).unwrap();
        bench.write("latest", b"step-000015.bin");
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        if seals {
            assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        }
        bench.write("step-000020.bin", &[0x80; 301]);
        fs::remove_file(bench.at("step-000012.bin")).unwrap();
        bench.write("latest", b"");
        OpenOptions::new().write(true).open(bench.at("latest")).unwrap().set_len(15).unwrap();
        bench.resume();
        assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), "step-000015.bin", "seals: {seals}");
    }
}
