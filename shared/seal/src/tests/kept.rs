//! Which sealed checkpoints are kept, and when they are restored.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;

use spotsweep_protocol::claim::Found;

use super::{Bench, IN_TIME, NOW, at_rest, failure, zip_of};
use crate::{AtEnd, OWN, QUIET};

#[test]
fn a_file_that_is_rewritten_in_place_goes_back_to_its_last_sealed_version() {
    let (one, two, three) = (zip_of(b"1"), zip_of(b"2 and more"), zip_of(b"3"));
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for version in [&one, &two] {
        bench.write("ckpt.pt", version);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    }
    // The instance is lost in the middle of the third version.
    bench.write("ckpt.pt", &three[..50]);
    let (_, found) = bench.resume();
    let expected = Found { newest: Some("ckpt.pt".into()), torn: vec!["ckpt.pt".into()], ..Found::default() };
    assert_eq!(found, expected);
    assert!(fs::read(bench.at("ckpt.pt")).unwrap() == two);
    assert_eq!(bench.resume().1, Found { torn: vec![], ..expected }, "once is enough");

    // The version that was put back is rewritten in place like any other.
    let (mut sealer, _) = bench.resume();
    let four = zip_of(b"4, longer than two");
    bench.write("ckpt.pt", &four);
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    bench.write("ckpt.pt", &three[..50]);
    bench.resume();
    assert!(fs::read(bench.at("ckpt.pt")).unwrap() == four);

    // The training fails on a newer version that looks complete.
    bench.resume().0.begin(&bench.disk()).unwrap();
    bench.write("ckpt.pt", &three);
    let (mut sealer, _) = bench.resume();
    let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
    assert_eq!(rollback.to_string(), "ckpt.pt could not be loaded (exit code 1); went back to its last sealed version");
    assert!(fs::read(bench.at("ckpt.pt")).unwrap() == four);
    assert_eq!(
        sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap(),
        None,
        "once for a checkpoint"
    );
}

#[test]
fn a_checkpoint_that_is_written_again_under_its_name_goes_back_to_its_last_sealed_version() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let whole = zip_of(b"epoch 3");
    bench.write("epoch_3.pt", &whole);
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    // A save at the stop signal takes too long.
    bench.write("epoch_3.pt", &whole[..20]);
    let (_, found) = bench.resume();
    let name = "epoch_3.pt".to_owned();
    assert_eq!(found, Found { newest: Some(name.clone()), torn: vec![name], ..Found::default() });
    assert!(fs::read(bench.at("epoch_3.pt")).unwrap() == whole);
}

#[test]
fn a_checkpoint_that_is_too_large_for_a_copy_is_kept_under_a_second_name() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let large = (1 << 30) + 1;
    for (name, bytes, links) in [("step-1.bin", 9, Some(1)), ("step-2.bin", large, Some(2)), ("model.bin", large, None)]
    {
        bench.write(name, b"");
        OpenOptions::new().write(true).open(bench.at(name)).unwrap().set_len(bytes).unwrap();
        bench.touch(name);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        let kept = bench.folder.path().join(OWN).join("kept").join(name);
        assert_eq!(fs::metadata(kept).ok().map(|kept| kept.nlink()), links, "{name}");
    }
}

/// Most of the file is the same in each version, as in CatBoost's snapshots, and its format is not known.
#[test]
fn a_file_that_is_replaced_has_no_parts_of_the_version_before() {
    let part = |number: u8, bytes: usize| vec![u8::MAX - number; bytes];
    let version = |number: u8| [part(number, 600), part(9, 5000), part(number, 600 * usize::from(number))].concat();
    for (is_disk, is_last) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut bench = Bench::new(is_disk);
        let (mut sealer, _) = bench.resume();
        for number in 1..3 {
            bench.replace("experiment.cbsnapshot", &version(number));
            assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        }
        bench.replace("experiment.cbsnapshot", &version(3));
        if is_last {
            let at_end = AtEnd::new(BTreeSet::from([bench.at("experiment.cbsnapshot")]), NOW, true);
            sealer.finish(&bench.disk(), &at_end, &IN_TIME).unwrap();
        }
        let expected = Found { newest: Some("experiment.cbsnapshot".into()), ..Found::default() };
        assert_eq!(bench.resume().1, expected, "on a disk: {is_disk}, final seal: {is_last}");
        assert!(fs::read(bench.at("experiment.cbsnapshot")).unwrap() == version(3));
    }
}

/// A save each second, as of a LightGBM model every ten rounds. An instance that is lost during a save costs seconds.
#[test]
fn a_file_that_never_rests_is_sealed_again_and_again() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let begun = bench.clock + 1;
    for (second, is_sealed) in [(0, true), (1, false), (15, false), (25, true), (30, false), (50, true)] {
        bench.clock = begun + second - 1;
        let version = zip_of(second.to_string().as_bytes());
        bench.write("model.pt", &version);
        let now_ns = i64::try_from(begun + second + 1).unwrap() * 1_000_000_000;
        sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap();
        let kept = fs::read(bench.folder.path().join(OWN).join("kept/model.pt")).unwrap();
        assert_eq!(kept == version, is_sealed, "after {second} s");
    }
}

/// Keras's BackupAndRestore writes the epoch into a separate file, after the weights.
#[test]
fn a_counter_goes_back_with_the_weights_that_it_counts() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let counters = ["backup/training_metadata.json", "other/state.json"];
    bench.write("backup/latest.weights", &zip_of(b"1"));
    counters.iter().for_each(|counter| bench.write(counter, b"{\"epoch\": 1}"));
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    bench.write("backup/latest.weights", &zip_of(b"2 and more")[..50]);
    counters.iter().for_each(|counter| bench.write(counter, b"{\"epoch\": 2}"));
    assert_eq!(bench.resume().1.torn, ["backup/latest.weights"]);
    assert!(fs::read(bench.at("backup/latest.weights")).unwrap() == zip_of(b"1"));
    let found = counters.map(|counter| fs::read_to_string(bench.at(counter)).unwrap());
    assert_eq!(found, ["{\"epoch\": 1}", "{\"epoch\": 2}"], "only the one beside it");
}

/// No version of the weights was kept, for example because they are larger than a GiB. The epoch next to them counts
/// what is gone, unless it may count other weights there.
#[test]
fn a_counter_goes_aside_where_its_weights_are_lost() {
    for (other, age, is_left) in
        [(None, 0, false), (Some("backup/best.weights"), 1, true), (Some("backup/best.weights"), 60, false)]
    {
        for is_sealed in [false, true] {
            let mut bench = Bench::new(true);
            let (mut sealer, _) = bench.resume();
            other.iter().for_each(|other| bench.write(other, &zip_of(b"7")));
            bench.clock += age;
            bench.write("backup/training_metadata.json", b"{\"epoch\": 9}");
            bench.write("state.json", b"{\"epoch\": 9}");
            if is_sealed {
                sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            }
            bench.write("backup/latest.weights", &zip_of(b"9 and more")[..50]);
            for attempt in 2..4 {
                assert_eq!(bench.resume().1.torn.contains(&"backup/latest.weights".to_owned()), attempt == 2);
                let shown = format!("{other:?}, {age} s older, sealed: {is_sealed}, attempt {attempt}");
                assert_eq!(bench.at("backup/training_metadata.json").exists(), is_left, "{shown}");
                assert!(bench.at("state.json").exists(), "it lies beside nothing that is lost");
            }
        }
    }
}

/// Saves write over a file without a format. After a loss, parts of any of them may be there, also of those that no seal
/// has. After an end in order, everything is written out, although there was no time to seal it.
#[test]
fn a_file_that_may_mix_saves_is_trusted_only_if_it_is_as_sealed_or_was_written_out() {
    let version = |number: u8| vec![0x80 + number; 2000];
    for (is_sealed, is_lost, name) in
        (0..8).map(|case| (case & 1 > 0, case & 2 > 0, ["model.bin", "part-0.bin"][case / 4]))
    {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        bench.write(name, &version(1));
        if is_sealed {
            assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        }
        bench.write(name, &[&version(3)[..512], &version(2)[512..]].concat());
        if !is_lost {
            sealer.finish(&bench.disk(), &at_rest(), &|| false).unwrap();
        }
        let written = fs::read(bench.at(name)).unwrap();
        bench.resume();
        let may_be_new = name == "part-0.bin" && !is_sealed;
        let expected = if !is_lost || may_be_new { Some(written) } else { is_sealed.then(|| version(1)) };
        assert!(fs::read(bench.at(name)).ok() == expected, "{name}, sealed: {is_sealed}, lost: {is_lost}");
    }
}

#[test]
fn a_pointer_that_is_given_up_does_not_replace_the_one_that_is_kept() {
    for given_up in ["", "step-", "step-0000"] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("step-000010.pt", &zip_of(b"1"));
        bench.write("latest", b"step-000010.pt");
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        // The handler closes the pointer in the middle, and begins another save, which is too slow.
        bench.write("latest", given_up.as_bytes());
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        sealer.finish(&bench.disk(), &AtEnd::new(BTreeSet::new(), NOW, true), &IN_TIME).unwrap();
        let (_, found) = bench.resume();
        assert_eq!(found.newest.as_deref(), Some("step-000010.pt"), "{given_up:?}");
        assert_eq!(fs::read(bench.at("latest")).unwrap(), b"step-000010.pt", "{given_up:?}");
    }
}

/// The pointer is being written at the seal of the checkpoint that it is to name, and only its version before is kept.
#[test]
fn a_pointer_to_what_is_lost_names_the_newest_sealed_checkpoint() {
    for lost in ["step-000030.pt", "step-000", ""] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("step-000010.pt", &zip_of(b"1"));
        for pointer in ["latest", "best_checkpoint"] {
            bench.write(pointer, b"step-000010.pt");
        }
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        bench.write("step-000020.pt", &zip_of(b"2"));
        bench.write("latest", b"step-000020.pt");
        let open = BTreeSet::from([bench.at("latest")]);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &|| open.clone()).unwrap());
        bench.write("step-000030.pt", &zip_of(b"3")[..50]);
        bench.write("latest", lost.as_bytes());
        bench.write("best_checkpoint", lost.as_bytes());
        let (_, found) = bench.resume();
        assert_eq!(found.newest.as_deref(), Some("step-000020.pt"));
        assert_eq!(fs::read(bench.at("latest")).unwrap(), b"step-000020.pt", "{lost:?}");
        let best = fs::read(bench.at("best_checkpoint")).unwrap();
        assert_eq!(best, b"step-000010.pt", "{lost:?}: the best one may be older");
    }
}

/// The handler begins a checkpoint, and then writes another one instead.
#[test]
fn an_empty_checkpoint_that_was_sealed_is_torn_where_others_of_its_kind_have_content() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("step-000010.state", b"a state");
    bench.write("step-000020.state", b"");
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    let (_, found) = bench.resume();
    assert_eq!(
        (found.newest.as_deref(), found.torn),
        (Some("step-000010.state"), vec!["step-000020.state".to_owned()])
    );
}

/// The first pointer replaces no kept version, and its text does not show that it is cut off.
#[test]
fn the_first_pointer_that_is_given_up_in_a_folders_name_is_completed() {
    let absolute = |bench: &Bench| bench.at("step-000010.pt").to_str().unwrap().to_owned();
    for is_absolute in [false, true] {
        let mut bench = Bench::new(true);
        let whole = if is_absolute { absolute(&bench) } else { "checkpoints/step-000010.pt".to_owned() };
        let (mut sealer, _) = bench.resume();
        bench.write("step-000010.pt", &zip_of(b"1"));
        bench.write("latest", &whole.as_bytes()[..9]);
        bench.write("notes", &whole.as_bytes()[..9]);
        assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        bench.resume();
        assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), whole);
        assert_eq!(fs::read_to_string(bench.at("notes")).unwrap(), whole[..9], "its name is no pointer's");
    }
}

#[test]
fn a_removed_checkpoint_is_back_where_the_newer_one_lacks_files() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for (name, content) in [("step-10/model.zip", &*zip_of(b"1")), ("step-10/COMPLETE", b"")] {
        bench.write(name, content);
    }
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    let modified = fs::metadata(bench.at("step-10/model.zip")).unwrap().modified().unwrap();
    // The removal is written out, but the next mark is not.
    fs::remove_dir_all(bench.at("step-10")).unwrap();
    bench.write("step-20/model.zip", &zip_of(b"2"));
    let (_, found) = bench.resume();
    assert_eq!(found, Found { newest: Some("step-20".into()), ..Found::default() });
    assert!(bench.at("step-10/COMPLETE").exists() && bench.at("step-20/model.zip").exists());
    let back = fs::metadata(bench.at("step-10/model.zip")).unwrap().modified().unwrap();
    assert_eq!(back, modified, "some scripts take the last by its time");

    fs::remove_dir_all(bench.at("step-10")).unwrap();
    bench.write("step-20/COMPLETE", b"");
    bench.resume();
    assert!(!bench.at("step-10").exists(), "the newer one is complete");
}

/// A lost instance has written out the removal of a checkpoint, but not all of the next one.
#[test]
fn the_newest_complete_checkpoint_is_kept_while_the_next_one_is_being_written() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    for (number, parts) in [(1, 2), (2, 2), (3, 1)] {
        for part in 0..parts {
            bench.write(&format!("checkpoint-{number}/part-{part}.pt"), &zip_of(&[number; 100]));
        }
        bench.clock += 60;
        // One look finds the second and the third.
        let now_ns = i64::try_from(bench.clock).unwrap() * 1_000_000_000;
        if number != 2 {
            assert!(sealer.seal_resting(&bench.disk(), QUIET, now_ns, &BTreeSet::new).unwrap());
        }
    }
    fs::remove_dir_all(bench.at("checkpoint-2")).unwrap();
    fs::remove_dir_all(bench.at("checkpoint-1")).unwrap();
    bench.resume();
    assert!(fs::read(bench.at("checkpoint-2/part-1.pt")).unwrap() == zip_of(&[2; 100]));
}

/// A handler abandons a save and begins another one in the same file, and both are large. Neither was ever sealed.
#[test]
fn a_file_that_the_command_was_killed_in_is_quarantined() {
    let version = |number: u8| vec![0x80 + number; 5120];
    let mixed = [version(3)[..1024].to_vec(), version(2)[1024..].to_vec()].concat();
    for number in 0..8 {
        let [was_open, has_sealed, has_time] = [1, 2, 4].map(|bit| number & bit > 0);
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        if has_sealed {
            bench.write("latest.raw", &version(1));
            assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
        }
        bench.write("latest.raw", &mixed);
        let modified_ns = i64::try_from(bench.clock).unwrap() * 1_000_000_000;
        let open: BTreeSet<_> = was_open.then(|| bench.at("latest.raw")).into_iter().collect();
        let at_end = AtEnd::new(open, modified_ns + 5_000_000_000, true);
        sealer.finish(&bench.disk(), &at_end, &|| has_time).unwrap();
        bench.resume();
        let sealed = has_sealed.then(|| version(1));
        let expected = if was_open { sealed } else { Some(mixed.clone()) };
        let what = format!("open: {was_open}, sealed: {has_sealed}, time: {has_time}");
        assert!(fs::read(bench.at("latest.raw")).ok() == expected, "{what}");
    }
}
