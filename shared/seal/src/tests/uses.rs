//! States and logs are told apart by what is in them and how they change, and not by their names.

use std::fs;

use super::*;

fn lightgbm(rounds: usize) -> Vec<u8> {
    let trees = "Tree=0\nnum_leaves=31\nshrinkage=0.1\n\n".repeat(rounds);
    let end = "end of trees\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n";
    format!("tree\nversion=v4\nnum_class=1\n\n{trees}\n{end}").into_bytes()
}

fn numbers(rows: usize, value: &str) -> Vec<u8> {
    format!("{value} 0.25\n").repeat(rows).into_bytes()
}

/// Endings of logs, and some others.
const NAMES: [&str; 10] = [
    "model.txt",
    "model.TXT",
    "weights.csv",
    "weights.tsv",
    "state.log",
    "state.jsonl",
    "state.yaml",
    "run/params",
    "model.lgb",
    "snapshot.dat",
];

#[test]
fn whatever_can_be_put_aside_has_been_kept() {
    let zip = |content: &[u8]| zip_of(content);
    // Two versions, and what a lost instance leaves of the third.
    let cases: [[Vec<u8>; 3]; 5] = [
        [lightgbm(10), lightgbm(20), lightgbm(30)[..1100].to_vec()],
        [zip(b"1"), zip(b"2 and more"), zip(b"3")[..40].to_vec()],
        [numbers(2000, "1"), numbers(2000, "2"), vec![]],
        [numbers(2, "1"), numbers(2, "2"), vec![]],
        [b"{\"epoch\": 1}".to_vec(), b"{\"epoch\": 2}".to_vec(), vec![]],
    ];
    for name in NAMES {
        for [one, two, torn] in &cases {
            let mut bench = Bench::new(true);
            let (mut sealer, _) = bench.resume();
            for version in [one, two] {
                bench.write(name, version);
                sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
            }
            bench.write(name, torn);
            let (_, found) = bench.resume();
            let shown = format!("{name} {:?}", String::from_utf8_lossy(&two[..9]));
            let expected = Found { newest: Some(name.into()), torn: vec![name.into()], ..Found::default() };
            assert_eq!(found, expected, "{shown}");
            assert!(fs::read(bench.at(name)).unwrap() == *two, "{shown}: its sealed version is back");
        }
    }
}

#[test]
fn a_log_is_no_checkpoint_and_is_never_put_aside() {
    for name in ["test_error.tsv", "train.log", "history.jsonl", "output", "events.out.tfevents.1.host.1.0"] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("epoch_1.zip", &zip_of(b"1"));
        let mut log = Vec::new();
        for step in 0..3 {
            log.extend_from_slice(format!("{{\"step\": {step}}}\n").as_bytes());
            bench.write(name, &log);
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        assert_eq!(sealer.summary().unwrap().newest.as_deref(), Some("epoch_1.zip"), "{name}");
        let kept = bench.folder.path().join(OWN).join("kept").join(name);
        assert!(!kept.exists(), "{name}: a log may be large");
        // A line is cut off.
        log.truncate(log.len() - 3);
        bench.write(name, &log);
        let (_, found) = bench.resume();
        let expected = Found { newest: Some("epoch_1.zip".into()), ..Found::default() };
        assert_eq!(found, expected, "{name}");
        assert!(fs::read(bench.at(name)).unwrap() == log, "{name}");

        // A training that saves nothing else has no checkpoint.
        fs::remove_file(bench.at("epoch_1.zip")).unwrap();
        fs::remove_dir_all(bench.folder.path().join(OWN).join("kept")).unwrap();
        assert_eq!(bench.resume().1.newest, None, "{name}");
    }
}

/// A log is begun again by each attempt. A state of the same kind is rewritten within one.
#[test]
fn a_text_that_is_rewritten_within_an_attempt_is_a_state() {
    for (rewrites, newest) in [(1, "epoch_1.zip"), (2, "weights.txt")] {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("weights.txt", &numbers(3000, "0"));
        bench.write("epoch_1.zip", &zip_of(b"1"));
        sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        let (mut sealer, _) = bench.resume();
        for version in 0..rewrites {
            bench.write("weights.txt", &numbers(3000, &format!("{version}")));
            sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
        }
        assert_eq!(bench.resume().1.newest.as_deref(), Some(newest), "{rewrites}");
    }
}

/// Keras's `BackupAndRestore` removes its backup at the end of `fit`, and an instance may be lost in the evaluation.
#[test]
fn the_only_checkpoint_is_back_where_the_training_has_removed_it() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    bench.write("backup/latest.weights.h5", &zip_of(b"weights"));
    bench.write("backup/training_metadata.json", b"{\"epoch\": 9}");
    assert!(sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap());
    fs::remove_dir_all(bench.at("backup")).unwrap();
    bench.write("hparams.yaml", b"lr: 0.1");
    sealer.finish(&bench.disk(), &at_rest(), &IN_TIME).unwrap();
    assert_eq!(bench.resume().1.newest.as_deref(), Some("backup/latest.weights.h5"));
    assert_eq!(fs::read(bench.at("backup/training_metadata.json")).unwrap(), b"{\"epoch\": 9}");

    // It saves elsewhere now.
    fs::remove_dir_all(bench.at("backup")).unwrap();
    bench.write("final.zip", &zip_of(b"2"));
    assert_eq!(bench.resume().1.newest.as_deref(), Some("final.zip"));
    assert!(!bench.at("backup").exists());
}
