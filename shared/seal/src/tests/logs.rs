//! States and logs with the same names.

use spotsweep_protocol::claim::Found;

use super::*;
use crate::logs::Change;

/// A model in LightGBM's format.
pub(crate) fn lightgbm(rounds: usize) -> Vec<u8> {
    let trees = "Tree=0\nnum_leaves=31\nshrinkage=0.1\n\n".repeat(rounds);
    let end = "end of trees\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n";
    format!("tree\nversion=v4\nnum_class=1\n\n{trees}\n{end}").into_bytes()
}

fn numbers(rows: usize, value: &str) -> Vec<u8> {
    format!("{value} 0.25\n").repeat(rows).into_bytes()
}

fn seal(bench: &Bench, sealer: &mut Sealer) {
    sealer.seal_resting(&bench.disk(), QUIET, NOW, &BTreeSet::new).unwrap();
}

fn is_kept(bench: &Bench, name: &str) -> bool {
    bench.folder.path().join(OWN).join("kept").join(name).exists()
}

#[test]
fn whatever_can_be_put_aside_has_been_kept() {
    // Two versions, and the part of the third that a lost instance leaves.
    let cases: [[Vec<u8>; 3]; 6] = [
        [lightgbm(1000), lightgbm(2000), lightgbm(3000)[..90_000].to_vec()],
        [lightgbm(10), lightgbm(20), lightgbm(30)[..1100].to_vec()],
        [zip_of(b"1"), zip_of(b"2 and more"), zip_of(b"3")[..40].to_vec()],
        [numbers(3000, "1"), numbers(3000, "2"), vec![]],
        [numbers(2, "1"), numbers(2, "2"), vec![]],
        [b"{\"epoch\": 1}".to_vec(), b"{\"epoch\": 2}".to_vec(), vec![]],
    ];
    let names = ["model.txt", "model.TXT", "a.csv", "a.tsv", "a.log", "a.jsonl", "a.yaml", "run/params", "model.lgb"];
    for (name, [one, two, torn]) in names.iter().flat_map(|name| cases.iter().map(move |case| (*name, case))) {
        for versions in [&[one][..], &[one, two]] {
            let mut bench = Bench::new(true);
            let (mut sealer, _) = bench.resume();
            for version in versions {
                bench.write(name, version);
                seal(&bench, &mut sealer);
            }
            bench.write(name, torn);
            let (_, found) = bench.resume();
            let shown = format!("{name} {:?}, {} sealed", String::from_utf8_lossy(&one[..9]), versions.len());
            let expected = Found { newest: Some(name.into()), torn: vec![name.into()], ..Found::default() };
            assert_eq!(found, expected, "{shown}");
            assert!(fs::read(bench.at(name)).unwrap() == **versions.last().unwrap(), "{shown}: the sealed one is back");
        }
    }
}

/// The script keeps one of them. Only the name of the next one was written out.
#[test]
fn numbered_texts_are_kept_where_there_is_nothing_else() {
    for content in [lightgbm(1000), lightgbm(10), numbers(3000, "1"), numbers(2, "1"), b"{\"epoch\": 1}".to_vec()] {
        for [one, two] in [["model_1.txt", "model_2.txt"], ["a-1.csv", "a-2.csv"], ["gen_1.json", "gen_2.json"]] {
            let mut bench = Bench::new(true);
            let (mut sealer, _) = bench.resume();
            bench.write(one, &content);
            seal(&bench, &mut sealer);
            fs::remove_file(bench.at(one)).unwrap();
            bench.write(two, b"");
            let (_, found) = bench.resume();
            let shown = format!("{one} {}", content.len());
            assert_eq!((found.newest.as_deref(), &*found.torn), (Some(one), &[two.to_owned()][..]), "{shown}");
            assert!(fs::read(bench.at(one)).unwrap() == content, "{shown}");
        }
    }
}

#[test]
fn a_log_is_no_checkpoint_and_is_never_put_aside() {
    let of_libraries =
        ["events.out.tfevents.1.host.1.0", "test/events.out.tfevents", "catboost_training.json", "run-a1.wandb"];
    for name in ["test_error.tsv", "train.log", "history.jsonl", "output.txt"].into_iter().chain(of_libraries) {
        let mut bench = Bench::new(true);
        let (mut sealer, _) = bench.resume();
        bench.write("epoch_1.zip", &zip_of(b"1"));
        let mut log = Vec::new();
        for step in 0..3 {
            log.extend_from_slice(format!("{{\"step\": {step}}}\n").as_bytes());
            bench.write(name, &log);
            seal(&bench, &mut sealer);
        }
        assert_eq!(sealer.summary().unwrap().newest.as_deref(), Some("epoch_1.zip"), "{name}");
        assert!(!is_kept(&bench, name), "{name}: a log may be large");
        // The last line is cut off, by a lost instance or because the training is killed.
        log.truncate(log.len() - 3);
        bench.write(name, &log);
        for is_last in [false, true] {
            if is_last {
                let at_end = AtEnd::new(BTreeSet::from([bench.at(name)]), NOW, true);
                sealer.finish(&bench.disk(), &at_end, &IN_TIME).unwrap();
            }
            let (next, found) = bench.resume();
            sealer = next;
            let expected = Found { newest: Some("epoch_1.zip".into()), ..Found::default() };
            assert_eq!(found, expected, "{name}, final seal: {is_last}");
            assert!(fs::read(bench.at(name)).unwrap() == log, "{name}");
        }
        // A training that saves nothing else has no checkpoint.
        fs::remove_file(bench.at("epoch_1.zip")).unwrap();
        fs::remove_dir_all(bench.folder.path().join(OWN).join("kept")).unwrap();
        assert_eq!(bench.resume().1.newest, None, "{name}");
    }
}

#[test]
fn a_log_that_each_attempt_begins_again_stays_as_it_is() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    let mut log = numbers(500, "step 1");
    bench.write("train.log", &log);
    seal(&bench, &mut sealer);
    for _ in 0..3 {
        let (mut sealer, found) = bench.resume();
        assert_eq!(found.torn, [""; 0]);
        // The same first lines, but fewer of them.
        log.truncate(log.len() - 1000);
        bench.write("train.log", &log);
        seal(&bench, &mut sealer);
        assert_eq!(sealer.record.files["train.log"].change, None, "that shows no state");
    }
    let (mut sealer, _) = bench.resume();
    for (content, change) in
        [("a", None), ("ab", Some(Change::Appended)), ("c", Some(Change::Rewritten)), ("cd", Some(Change::Rewritten))]
    {
        bench.write("train.log", content.as_bytes());
        seal(&bench, &mut sealer);
        assert_eq!(sealer.record.files["train.log"].change, change, "{content}");
        assert_eq!(is_kept(&bench, "train.log"), change != Some(Change::Appended), "{content}");
    }
}

/// The first bytes do not show the format yet, and the file is named like a log.
#[test]
fn a_model_of_which_little_was_written_out_is_put_aside_and_not_the_one_before() {
    let mut bench = Bench::new(true);
    let (mut sealer, _) = bench.resume();
    sealer.begin(&bench.disk()).unwrap();
    bench.write("model-1.txt", &lightgbm(100));
    seal(&bench, &mut sealer);
    bench.write("model-2.txt", &lightgbm(200)[..9]);
    let (mut sealer, _) = bench.resume();
    let rollback = sealer.roll_back(&bench.disk(), &failure("it cannot be loaded")).unwrap().unwrap();
    assert_eq!((rollback.checkpoint.as_str(), rollback.to.as_deref()), ("model-2.txt", Some("model-1.txt")));
    assert!(bench.at("model-1.txt").exists() && !bench.at("model-2.txt").exists());
}

/// Lightning writes its settings before the first checkpoint.
#[test]
fn settings_are_no_checkpoint() {
    for (name, is_checkpoint) in [("logs/version_0/hparams.yaml", false), ("state.json", true)] {
        let mut bench = Bench::new(true);
        bench.write(name, b"epochs: 3");
        bench.seal(true);
        let (sealer, found) = bench.resume();
        let newest = is_checkpoint.then(|| name.to_owned());
        assert_eq!((found.newest, found.torn), (newest.clone(), vec![]));
        assert_eq!(sealer.summary().unwrap().newest, newest);
    }
}
