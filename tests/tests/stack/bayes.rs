//! The demo of the search, with real trainings whose parameters are suggested and that are stopped early.

use std::fs;
use std::path::Path;
use std::sync::PoisonError;

use spotsweep_tests::local::Demo;

/// With ten classes, guessing gives 0.1.
const GOOD_ACCURACY: f64 = 0.93;

/// The test takes a minute, for 24 trainings of up to six seconds each on two cores.
#[test]
fn the_search_of_the_example_finds_a_good_model_and_stops_the_others() {
    let _alone = crate::TRAINING.lock().unwrap_or_else(PoisonError::into_inner);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits/bayes.yaml");
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::run(folder.path(), "bayes.yaml", &fs::read_to_string(example).unwrap(), &[]);
    assert_eq!(demo.code(), Some(0), "{}", demo.messages());

    let summary = demo.summary();
    let count = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("no {name}: {summary}"));
    let (succeeded, stopped) = (count("succeeded"), count("stopped_early"));
    println!("{succeeded} succeeded, {stopped} stopped early, {} s, best {}", summary["wall_seconds"], summary["best"]);
    assert_eq!((succeeded + stopped, count("trials"), count("failed")), (24, 24, 0), "{summary}");
    assert!(stopped > 0 && succeeded > 0, "{summary}");
    assert!(summary["best"]["value"].as_f64().unwrap() >= GOOD_ACCURACY, "{summary}");
    for what in ["volumes", "snapshots", "attachments"] {
        assert_eq!(summary["leftovers"][what], 0, "{what}: {}", demo.messages());
    }

    let sweep = summary["sweep"].as_str().unwrap();
    let leaderboard = demo.path(&format!("keep/bucket/results/{sweep}/leaderboard.csv"));
    let leaderboard = fs::read_to_string(leaderboard).unwrap();
    let rows: Vec<Vec<&str>> = leaderboard.lines().skip(1).map(|row| row.splitn(4, ',').collect()).collect();
    let of = |status: &str| rows.iter().filter(|row| row[2] == status).map(|row| row[0]).collect::<Vec<_>>();
    let ranks: Vec<String> = (1..=succeeded).map(|rank| rank.to_string()).collect();
    assert_eq!(of("succeeded"), ranks, "{leaderboard}");
    assert_eq!(of("stopped"), vec![""; stopped as usize], "{leaderboard}");
}
