//! Rollbacks: which checkpoint is quarantined, which one the training starts from, and what is undone.

use std::os::unix::fs::symlink;

use super::*;

/// Content without a known format.
fn content(name: &str) -> Vec<u8> {
    [&[0xff], name.as_bytes()].concat()
}

/// A trial that was interrupted with these checkpoints, all of them sealed except the last `unsealed` ones.
fn trained(names: &[&str], unsealed: usize) -> Bench {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    for (place, name) in names.iter().enumerate() {
        bench.write(name, &content(name));
        if place + unsealed < names.len() {
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
    }
    bench
}

/// Each attempt fails with that error and makes no progress. Returns the number of attempts until the trial ends.
fn fail_until_the_end(bench: &mut Bench, error: &dyn Fn(u32) -> String) -> u32 {
    for attempts in 1..10 {
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let rollback = sealer.roll_back(&bench.disk(), &failure(&error(attempts))).unwrap();
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        if rollback.is_none() {
            return attempts;
        }
    }
    unreachable!("at most four rollbacks")
}

const NAMES: [&str; 4] = ["checkpoint-1/model", "checkpoint-2/model", "checkpoint-3/model", "checkpoint-4/model"];

#[test]
fn a_rollback_that_does_not_help_is_taken_back() {
    for count in 1..=NAMES.len() {
        let mut bench = trained(&NAMES[..count], 0);
        bench.write("latest", format!("checkpoint-{count}").as_bytes());
        symlink(NAMES[count - 1], bench.at("last")).unwrap();
        symlink(format!("checkpoint-{count}"), bench.at("link")).unwrap();
        assert_eq!(fail_until_the_end(&mut bench, &|_| "FileExistsError: run".to_owned()), 2, "{count}");
        for name in &NAMES[..count] {
            assert_eq!(fs::read(bench.at(name)).unwrap(), content(name), "of {count}");
        }
        assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), format!("checkpoint-{count}"));
        assert_eq!(fs::read_link(bench.at("last")).unwrap().to_str(), Some(NAMES[count - 1]));
        assert_eq!(fs::read_link(bench.at("link")).unwrap().to_str(), Some(&*format!("checkpoint-{count}")));
        let newest = format!("checkpoint-{count}");
        assert_eq!(bench.resume().1, Found { newest: Some(newest), ..Found::default() }, "a retry goes on from there");
    }
}

/// The instance was lost between a checkpoint and its pointer. Two attempts on a bad instance go back from the newest
/// checkpoint, and two more from the one that the pointer names.
#[test]
fn an_undone_rollback_leaves_the_pointer_as_the_training_left_it() {
    let mut bench = trained(&NAMES[..2], 0);
    bench.write("latest", b"checkpoint-2");
    bench.write(NAMES[2], &zip_of(b"3"));
    for _ in 0..2 {
        assert_eq!(fail_until_the_end(&mut bench, &|_| "CUDA error: out of memory".to_owned()), 2);
        assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), "checkpoint-2");
        assert_eq!(fs::read(bench.at(NAMES[1])).unwrap(), content(NAMES[1]));
        assert!(fs::read(bench.at(NAMES[2])).unwrap() == zip_of(b"3"));
    }
}

#[test]
fn a_rollback_to_the_last_sealed_version_is_taken_back() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.write("model.pt", &zip_of(b"1"));
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    bench.write("model.pt", &zip_of(b"2"));
    assert_eq!(fail_until_the_end(&mut bench, &|_| "KeyError: 'lr'".to_owned()), 2);
    assert!(fs::read(bench.at("model.pt")).unwrap() == zip_of(b"2"));
}

/// The instance was lost before the newest checkpoint was sealed. The format shows that it is complete.
#[test]
fn a_checkpoint_whose_format_shows_that_it_is_complete_is_taken_back() {
    let mut bench = trained(&NAMES[..3], 0);
    bench.write(NAMES[3], &zip_of(b"4"));
    assert_eq!(fail_until_the_end(&mut bench, &|_| "FileExistsError: run".to_owned()), 2);
    assert!(fs::read(bench.at(NAMES[3])).unwrap() == zip_of(b"4"));
}

/// The instance was lost while the rollback was undone.
#[test]
fn what_is_back_already_stays() {
    let mut bench = trained(&NAMES[..2], 0);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    sealer.roll_back(&bench.disk(), &failure("FileExistsError: run")).unwrap().unwrap();
    let failed = sealer.record.failures[0].clone();
    for _ in 0..2 {
        sealer.put_back(&bench.disk(), &failed).unwrap();
        assert_eq!(fs::read(bench.at(NAMES[1])).unwrap(), content(NAMES[1]));
    }
}

/// The instance was lost before it had written out all moves: of a rollback, or of its undo.
#[test]
fn a_rollback_that_is_written_out_in_part_is_undone() {
    let names = ["step-1-model", "step-1-optimizer", "step-2-model", "step-2-optimizer"];
    for (place, pointer, is_undo) in
        [("step-2-model", "step-2-model", true), ("step-2-optimizer", "step-1-model", false)]
    {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        for name in names {
            bench.write(name, &zip_of(name.as_bytes()));
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        bench.write("latest", b"step-2-model");
        let written = names.map(|name| fs::read(bench.at(name)).unwrap());
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        assert!(sealer.roll_back(&bench.disk(), &failure("CUDA error: out of memory")).unwrap().is_some());
        if is_undo {
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            sealer = bench.resume().0;
        }
        let aside = sealer.aside(&sealer.record.failures[0]);
        fs::rename(aside.join(place), bench.at(place)).unwrap();
        fs::write(bench.at("latest"), pointer).unwrap();

        let found = bench.resume().1;
        assert!(found.torn.is_empty(), "{found:?}");
        for _ in 0..2 {
            assert!(names.map(|name| fs::read(bench.at(name)).unwrap()) == written, "{place}");
            assert_eq!(fs::read_to_string(bench.at("latest")).unwrap(), "step-2-model");
            assert_eq!(fail_until_the_end(&mut bench, &|_| "CUDA error: out of memory".to_owned()), 2);
        }
    }
}

/// `last.pt` is another name of the newest file.
#[test]
fn another_name_of_a_file_is_no_other_checkpoint() {
    let mut bench = trained(&["epoch_1.pt", "epoch_2.pt", "epoch_3.pt", "epoch_4.pt"], 0);
    let (mut sealer, _) = bench.resume();
    fs::hard_link(bench.at("epoch_4.pt"), bench.at("last.pt")).unwrap();
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    for (attempt, number) in (1..4).rev().enumerate() {
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let rollback = sealer.roll_back(&bench.disk(), &failure(&format!("no part {attempt}"))).unwrap().unwrap();
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        let name = format!("epoch_{number}.pt");
        assert_eq!((&rollback.to, rollback.checkpoint), (&Some(name.clone()), format!("epoch_{}.pt", number + 1)));
        assert_eq!(fs::read(bench.at("last.pt")).unwrap(), content(&name));
        assert!(!bench.at(&format!("epoch_{}.pt", number + 1)).exists());
    }
}

/// If errors differ, or if one of two checkpoints may be incomplete, each may be the cause.
#[test]
fn several_checkpoints_may_be_bad() {
    let same = Some("EOFError: Ran out of input");
    for (unsealed, error, attempts) in [(0, None, 5), (3, same, 5), (2, same, 4), (1, same, 3)] {
        let mut bench = trained(&NAMES, unsealed);
        let error = |attempt| error.map_or_else(|| format!("cannot load {attempt}"), str::to_owned);
        assert_eq!(fail_until_the_end(&mut bench, &error), attempts, "{unsealed} unsealed");
    }
}

/// A retry counts its attempts from 1, in the workspace of a trial that was rolled back before.
#[test]
fn what_an_earlier_trial_has_put_aside_does_not_come_back() {
    let mut bench = trained(&NAMES[..2], 0);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    assert!(sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().is_some());
    bench.write(NAMES[2], &content(NAMES[2]));
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    bench.attempt = 1;
    bench.write(NAMES[1], &content("another"));
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
    assert_eq!(fail_until_the_end(&mut bench, &|_| "FileExistsError: run".to_owned()), 2);
    assert_eq!(fs::read(bench.at(NAMES[1])).unwrap(), content("another"));
}

/// The training writes its settings before it fails. They are no checkpoint.
#[test]
fn a_beginning_that_fails_in_the_same_way_takes_a_rollback_back() {
    for unsealed in [0, 1] {
        let mut bench = trained(&NAMES[..1], unsealed);
        for attempt in 1..3 {
            let (mut sealer, _) = bench.resume();
            sealer.begin(&bench.disk()).unwrap();
            bench.write("args.json", b"{\"lr\": 0.1}");
            let rollback = sealer.roll_back(&bench.disk(), &failure("KeyError: 'lr'")).unwrap();
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            assert_eq!(rollback.is_some(), attempt == 1);
        }
        assert_eq!(fs::read(bench.at(NAMES[0])).unwrap(), content(NAMES[0]), "{unsealed} unsealed");
        let (sealer, found) = bench.resume();
        assert_eq!(found.newest.as_deref(), Some("checkpoint-1"));
        assert_eq!(sealer.record.files[NAMES[0]].doubtful, unsealed == 1, "it is not known whether it is complete");
    }
}

/// The older runner has written `failed`, and the new one uses another form.
#[test]
fn failures_that_an_older_runner_has_recorded_do_not_break_the_seal() {
    let mut bench = trained(&NAMES[..2], 0);
    let file = bench.folder.path().join(OWN).join("seal.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["failed"] = serde_json::json!([["checkpoint-2", 123]]);
    fs::write(&file, record.to_string()).unwrap();
    let (mut sealer, _) = bench.resume();
    assert_eq!(sealer.record.files.len(), 2);
    assert!(sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().is_some());
}

/// The first checkpoint is sealed or not. All others are unsealed and may lack files.
#[test]
fn the_last_rollback_goes_to_a_sealed_checkpoint_or_to_the_beginning() {
    let names: Vec<String> = (1..6).map(|number| format!("checkpoint-{number}/model.zip")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (first, expected) in [(1, vec![Some(4), Some(3), Some(1)]), (0, vec![Some(4), Some(3), Some(2), None])] {
        let mut bench = trained(&names, names.len() - first);
        names[first..].iter().for_each(|name| bench.write(name, &zip_of(name.as_bytes())));
        for (attempt, number) in expected.iter().enumerate() {
            let (mut sealer, found) = bench.resume();
            assert_eq!(found.torn, [""; 0]);
            sealer.begin(&bench.disk()).unwrap();
            let rollback = sealer.roll_back(&bench.disk(), &failure(&format!("no part {attempt}"))).unwrap().unwrap();
            sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
            assert_eq!(rollback.to, number.map(|number| format!("checkpoint-{number}")));
        }
        let newest = expected.last().unwrap().map(|number| format!("checkpoint-{number}"));
        assert_eq!(bench.resume().1, Found { newest, ..Found::default() });
    }
}

/// The training has not loaded the newest checkpoint.
#[test]
fn the_checkpoint_that_a_pointer_names_is_to_blame() {
    for is_link in [true, false] {
        let mut bench = trained(&["model_3.bin", "model_4.bin", "model_5.bin"], 0);
        if is_link {
            symlink("model_4.bin", bench.at("last.bin")).unwrap();
        } else {
            bench.write("latest", b"model_4.bin");
        }
        let (mut sealer, _) = bench.resume();
        let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
        assert_eq!((rollback.checkpoint.as_str(), rollback.to.as_deref()), ("model_4.bin", Some("model_5.bin")));
        let named = match is_link {
            true => fs::read_link(bench.at("last.bin")).unwrap().into_os_string().into_string().unwrap(),
            false => fs::read_to_string(bench.at("latest")).unwrap(),
        };
        assert_eq!(named, "model_5.bin");
    }
}

/// No kept version can replace the weights. The files that are left are older than the epoch next to the weights.
#[test]
fn a_counter_goes_aside_with_the_weights_that_it_counts() {
    for left in ["final.zip", "backup/best.zip"] {
        let mut bench = trained(&[left], 0);
        bench.clock += 60;
        let weights = ["backup/latest.weights", "backup/training_metadata.json"];
        weights.iter().for_each(|name| bench.write(name, name.as_bytes()));
        bench.write(weights[0], &zip_of(b"weights"));
        bench.write("epoch.json", b"{\"epoch\": 9}");
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let rollback = sealer.roll_back(&bench.disk(), &failure("KeyError: 'lr'")).unwrap().unwrap();
        assert_eq!((rollback.checkpoint.as_str(), rollback.to.as_deref()), (weights[0], Some(left)));
        assert_eq!(weights.map(|name| bench.at(name).exists()), [false; 2], "{left} is left");
        assert!(bench.at("epoch.json").exists(), "it lies beside nothing that is lost");
        // The last checkpoint fails, too.
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        assert!(sealer.roll_back(&bench.disk(), &failure("another")).unwrap().is_some());
        assert_eq!(weights.map(|name| bench.at(name).exists()), [false; 2], "nothing is left");
        for failed in sealer.record.failures.clone().into_iter().rev() {
            sealer.put_back(&bench.disk(), &failed).unwrap();
        }
        assert_eq!(weights.map(|name| bench.at(name).exists()), [true; 2], "all is back");
    }
}

/// A lost instance left a half of the save. The next one began it again and left more, and its mark. Neither is known
/// to be complete, so a rollback from one to the other proves nothing.
#[test]
fn two_halves_of_a_save_that_fail_in_the_same_way_are_both_put_aside() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.write("step-000010/part-0.bin", &[0xff; 634]);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.write("step-000010/part-0.bin", &[0xff; 1556]);
    bench.write("step-000010/COMPLETE", b"");
    for to in [Some("its last sealed version"), None] {
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let rollback = sealer.roll_back(&bench.disk(), &failure("the file cannot be decoded")).unwrap().unwrap();
        sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
        assert_eq!(rollback.to.as_deref(), to);
    }
    assert_eq!(bench.resume().1, Found::default(), "it begins at its beginning");
}

/// The manifest is written out, but the move is not.
#[test]
fn a_rollback_that_a_lost_instance_has_undone_is_made_again() {
    let mut bench = trained(&NAMES[..2], 0);
    for _ in 0..2 {
        let (mut sealer, _) = bench.resume();
        sealer.begin(&bench.disk()).unwrap();
        let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
        assert_eq!((&*rollback.checkpoint, rollback.to.as_deref()), ("checkpoint-2", Some("checkpoint-1")));
        let [failed] = &sealer.record.failures[..] else { unreachable!("{:?}", sealer.record.failures) };
        fs::rename(sealer.aside(failed).join("checkpoint-2"), bench.at("checkpoint-2")).unwrap();
    }
}
