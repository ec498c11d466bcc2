//! `repeats`: each parameter set comes once with each value, however the sets are made.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::json;
use spotsweep_sweep_file::{Repeats, parse};

#[test]
fn each_set_has_each_value_once() {
    let own = "spotsweep: {repeats: {parameter: seed, values: [5, x, 7]}, seed: 3}\nmetric: {name: loss}\n";
    let parameters = "run_cap: 12\nparameters: {lr: {min: 1, max: 40}, depth: {value: 3}}\n";
    let files = [
        format!("{own}method: grid\n{parameters}"),
        format!("{own}method: random\n{parameters}"),
        format!("{own}method: bayes\n{parameters}"),
        format!("{own}trials: [{{lr: 1}}, {{lr: 2}}, {{lr: 3}}, {{lr: 4}}]\n"),
    ];
    for text in files {
        let file = parse("f", "v", text.as_bytes()).unwrap();
        let repeats = file.repeats().unwrap();
        assert_eq!((file.trial_count(), repeats.sets, file.warnings.len()), (12, 4, 0), "{text}");
        let mut sets = BTreeMap::new();
        for (index, mut trial) in (0..).zip(file.trials()) {
            let seed = trial.remove("seed").unwrap();
            let mut completed = trial.clone();
            repeats.complete(index, &mut completed);
            assert_eq!(completed["seed"], seed, "{text}");
            sets.entry(repeats.set_of(index)).or_insert_with(Vec::new).push((index, trial, seed));
        }
        assert_eq!(sets.len(), 4, "{text}");
        for (set, trials) in sets {
            assert!(trials.iter().all(|(_, trial, _)| *trial == trials[0].1), "{text}");
            assert!(trials.iter().map(|(.., seed)| seed).eq(&[json!(5), json!("x"), json!(7)]), "{text}");
            assert!(trials.iter().map(|(index, ..)| *index).eq([set, set + 4, set + 8]), "{text}");
        }
    }
}

#[test]
fn repeats_are_kept_as_json() {
    let repeats = Repeats { parameter: "seed".to_owned(), values: vec![json!(1), json!("a")], sets: 7 };
    let json = serde_json::to_string(&repeats).unwrap();
    assert_eq!(json, r#"{"parameter":"seed","values":[1,"a"],"sets":7}"#);
    assert_eq!(serde_json::from_str::<Repeats>(&json).unwrap(), repeats);
}
