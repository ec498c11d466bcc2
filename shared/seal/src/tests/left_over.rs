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
            sealer.close(&bench.disk(), &at_rest()).unwrap();
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
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        bench.write("step-000020.bin", &[0x80; 301]);
        fs::remove_file(bench.at("step-000012.bin")).unwrap();
        bench.write("latest", b"");
        OpenOptions::new().write(true).open(bench.at("latest")).unwrap().set_len(15).unwrap();
        bench.resume();
        assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), "step-000015.bin", "seals: {seals}");
    }
}

/// An attempt is lost within a save. The next one starts before that save and repeats it, but one of the files is not
/// written out.
#[test]
fn files_of_a_save_and_of_its_repetition_are_no_checkpoint() {
    let layouts: [[&str; 2]; 3] = [["part-0.pt", "part-1.pt"], ["model.pt", "optim.pt"], ["rank0/a.pt", "rank1/a.pt"]];
    let cases = layouts.into_iter().flat_map(|names| [(names, 0), (names, 1)]);
    for (((names, lost), has_both), seals) in product(product(cases, [false, true]), [0, 1, 2]) {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let file = |step: u32, name: &str| format!("step-{step}/{name}");
        let content = |name: &str, run: u8| [&[0xff, run], name.as_bytes()].concat().repeat(100);
        let save = |bench: &mut Bench, step, names: &[&str], run| {
            bench.clock += 600;
            names.iter().for_each(|name| bench.write(&file(step, name), &content(name, run)));
        };
        save(&mut bench, 10, &names, 1);
        bench.write(&file(10, "COMPLETE"), b"");
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        save(&mut bench, 20, if has_both { &names } else { &names[lost..=lost] }, 1);
        for _attempt in 0..seals {
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        save(&mut bench, 20, &[names[1 - lost]], 2);
        bench.write(&file(20, "COMPLETE"), b"");
        for attempt in 0..2 {
            bench.resume();
            let found = names.map(|name| fs::read(bench.at(&file(20, name))).ok());
            let runs = found.map(|found| found.map(|found| found[1]));
            assert!(runs[0] == runs[1] || runs.contains(&None), "{names:?}, {lost}, {seals}: {attempt} finds {runs:?}");
            assert!(bench.at(&file(10, names[0])).exists() && bench.at(&file(10, names[1])).exists());
        }
    }
}

/// An attempt removes a sealed checkpoint to save it again, and is lost after one of its files, or before its mark.
#[test]
fn a_checkpoint_that_is_saved_again_is_not_completed_with_files_of_the_first_save() {
    let all = ["step-20/model.bin", "step-20/optim.bin"];
    let content = |run: u8| [vec![0xff], vec![run; 1899]].concat();
    for (written, cut) in product([&all[..1], &all[1..], &all[..]], [0, 30]) {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        all.iter().for_each(|name| bench.write(name, &content(1)));
        bench.write("step-20/COMPLETE", b"");
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        fs::remove_dir_all(bench.at("step-20")).unwrap();
        bench.clock += 600;
        written.iter().for_each(|name| bench.write(name, &content(2)[..1900 - cut]));
        bench.resume();
        let found = all.map(|name| fs::read(bench.at(name)).ok().map(|found| (found[1], found.len())));
        assert_eq!(found, [Some((1, 1900)); 2], "{written:?}, {cut}");
        assert!(bench.at("step-20/COMPLETE").exists());
    }
}

/// All pairs of both.
fn product<One: Clone, Other: Clone>(
    one: impl IntoIterator<Item = One>,
    other: impl IntoIterator<Item = Other> + Clone,
) -> impl Iterator<Item = (One, Other)> {
    one.into_iter().flat_map(move |one| other.clone().into_iter().map(move |other| (one.clone(), other)))
}

/// An attempt is lost within its first save. The next one repeats it slowly.
#[test]
fn a_repeated_save_does_not_show_what_each_save_rewrites() {
    let all = ["step-10/part-0.bin", "step-10/part-1.bin"];
    for left_over in [[0, 0], [1900, 0], [1900, 900]] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        all.iter().zip(left_over).for_each(|(name, bytes)| bench.write(name, &vec![0xfe; bytes]));
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        for name in all {
            bench.clock += 60;
            bench.write(name, &[0xff; 1900]);
        }
        bench.write("step-10/COMPLETE", b"");
        let (_, found) = bench.resume();
        assert_eq!((found.newest.as_deref(), found.torn), (Some("step-10"), Vec::new()), "{left_over:?}");
    }
}
