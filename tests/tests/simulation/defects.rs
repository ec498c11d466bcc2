//! Planted defects, each of which breaks an invariant, are found by the simulation within a stated number of seeds,
//! and made small. `cargo test --workspace --test simulation defects:: -- --nocapture` prints the table.

use spotsweep_simulation::injected_bug::InjectedBug;
use spotsweep_simulation::run::Simulation;
use spotsweep_simulation::scenario::play;
use spotsweep_simulation::shrink::{Shrunk, shrink};

/// Seeds in which each must be found.
const SEEDS: u64 = 1000;
/// Of a small scenario.
const MOST_STEPS: usize = 70;

/// The seeds that find a defect, and what they find.
fn finding(injected_bug: InjectedBug) -> impl Iterator<Item = (u64, String)> {
    (0..SEEDS).filter_map(move |seed| {
        let mut simulation = Simulation::of_seed(seed);
        simulation.plant(injected_bug);
        simulation.run().err().map(|problem| (seed, problem))
    })
}

#[test]
fn every_planted_defect_is_found() {
    for injected_bug in InjectedBug::ALL {
        let (seed, problem) =
            finding(injected_bug).next().unwrap_or_else(|| panic!("{injected_bug:?} was not found in {SEEDS} seeds"));
        let problem: String = problem.lines().next().unwrap_or_default().chars().take(150).collect();
        println!("| `{injected_bug:?}` | {} | {problem} |", seed + 1);
        let breaks = injected_bug.breaks();
        assert!(
            breaks.iter().any(|name| problem.starts_with(name)),
            "{injected_bug:?} breaks {breaks:?}, not {problem}"
        );
    }
}

fn steps(scenario: &str) -> usize {
    scenario.matches("\nwhen ").count()
}

#[test]
fn a_failing_seed_becomes_a_small_scenario() {
    for injected_bug in [InjectedBug::DeleteSourceEarly, InjectedBug::CopyOldSnapshot] {
        // How much of a run's bad luck a defect needs differs from seed to seed.
        let small = finding(injected_bug).map(|(seed, _)| (seed, shrink(seed, Some(injected_bug)).unwrap()));
        // Scenarios have no words for a trial's second job: of a trial that wears its first one out, little is left.
        let whole = small.filter(|(_, shrunk)| shrunk.scenario.contains("\nthen  command create-volume"));
        let is_small =
            |shrunk: &Shrunk| shrunk.left as u64 * 5 <= shrunk.strokes && steps(&shrunk.scenario) <= MOST_STEPS;
        let found = whole.take(10).find(|(_, shrunk)| is_small(shrunk));
        let (seed, shrunk) = found.unwrap_or_else(|| panic!("{injected_bug:?}: none of ten seeds becomes small"));
        println!("{injected_bug:?}, seed {seed}: {} of {} strokes\n{}", shrunk.left, shrunk.strokes, shrunk.scenario);
        // It is in the language of the scenarios, and says already what follows.
        assert_eq!(play(&shrunk.scenario).unwrap(), shrunk.scenario);
    }
}
