//! Planted defects, each of which breaks an invariant, are found by the simulation within a stated number of seeds,
//! and made small. `cargo test -p spotsweep-tests --test defects -- --nocapture` prints the table.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use spotsweep_simulation::run::Simulation;
use spotsweep_simulation::sabotage::Sabotage;
use spotsweep_simulation::scenario::play;
use spotsweep_simulation::shrink::shrink;

/// Seeds in which each must be found.
const SEEDS: u64 = 200;

/// The seeds that find a defect, and what they find.
fn finding(sabotage: Sabotage) -> impl Iterator<Item = (u64, String)> {
    (0..SEEDS).filter_map(move |seed| {
        let mut simulation = Simulation::of_seed(seed);
        simulation.plant(sabotage);
        simulation.run().err().map(|problem| (seed, problem))
    })
}

#[test]
fn every_planted_defect_is_found() {
    for sabotage in Sabotage::ALL {
        let (seed, problem) =
            finding(sabotage).next().unwrap_or_else(|| panic!("{sabotage:?} was not found in {SEEDS} seeds"));
        let problem: String = problem.lines().next().unwrap_or_default().chars().take(150).collect();
        println!("| `{sabotage:?}` | {} | {problem} |", seed + 1);
        let breaks = sabotage.breaks();
        assert!(breaks.iter().any(|name| problem.starts_with(name)), "{sabotage:?} breaks {breaks:?}, not {problem}");
    }
}

#[test]
fn a_failing_seed_becomes_a_small_scenario() {
    for sabotage in [Sabotage::DeleteSourceEarly, Sabotage::CopyOldSnapshot] {
        // How much of a run's bad luck a defect needs differs from seed to seed.
        let small = finding(sabotage).map(|(seed, _)| (seed, shrink(seed, Some(sabotage)).unwrap()));
        // Scenarios have no words for a trial's second job: of a trial that wears its first one out, little is left.
        let whole = small.filter(|(_, shrunk)| shrunk.scenario.contains("\nthen  command create-volume"));
        let (seed, shrunk) =
            whole.take(5).min_by_key(|(_, shrunk)| shrunk.left as u64 * 1000 / shrunk.strokes).unwrap();
        println!("{sabotage:?}, seed {seed}: {} of {} strokes\n{}", shrunk.left, shrunk.strokes, shrunk.scenario);
        assert!(shrunk.left as u64 * 5 <= shrunk.strokes, "{} of {} strokes", shrunk.left, shrunk.strokes);
        let steps = shrunk.scenario.matches("\nwhen ").count();
        assert!(steps <= 60, "{steps} steps");
        // It is in the language of the scenarios, and says already what follows.
        assert_eq!(play(&shrunk.scenario).unwrap(), shrunk.scenario);
    }
}
