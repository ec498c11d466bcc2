//! The simulation finds each injected bug within a stated number of seeds, and shrinks the seed. `cargo test
//! --workspace --test simulation defects:: -- --nocapture` prints the table.

use spotsweep_simulation::injected_bug::InjectedBug;
use spotsweep_simulation::run::Simulation;
use spotsweep_simulation::scenario::play;
use spotsweep_simulation::shrink::{Shrunk, shrink};

/// Number of seeds within which each bug must be found.
const SEEDS: u64 = 200;
/// Bugs that few seeds show, with a seed from which they are looked for: two minutes of computing are saved. The table
/// in docs/simulation.md counts from the first seed of all.
const RARE: [(InjectedBug, u64); 4] = [
    (InjectedBug::OverlookHoles, 600),
    (InjectedBug::SkipInstanceCheck, 1000),
    (InjectedBug::TrustLink, 320),
    (InjectedBug::SkipSecondLook, 100),
];
/// Most steps that a shrunk scenario may have.
const MOST_STEPS: usize = 70;

/// The seeds that find a bug, with what they find.
fn finding(injected_bug: InjectedBug) -> impl Iterator<Item = (u64, String)> {
    let from = RARE.iter().find(|(rare, _)| *rare == injected_bug).map_or(0, |(_, from)| *from);
    (from..from + SEEDS).filter_map(move |seed| {
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
    let injected_bug = InjectedBug::DeleteSourceEarly;
    // How many of a run's faults a bug needs differs from seed to seed.
    let small = finding(injected_bug).map(|(seed, _)| (seed, shrink(seed, Some(injected_bug)).unwrap()));
    // Scenarios cannot express a trial's second job. So little is left of a trial that has used up its first one.
    let whole = small.filter(|(_, shrunk)| shrunk.scenario.contains("\nthen  command create-volume"));
    let is_small = |shrunk: &Shrunk| shrunk.left as u64 * 5 <= shrunk.strokes && steps(&shrunk.scenario) <= MOST_STEPS;
    let found = whole.take(10).find(|(_, shrunk)| is_small(shrunk));
    let (seed, shrunk) = found.unwrap_or_else(|| panic!("{injected_bug:?}: none of ten seeds becomes small"));
    println!("{injected_bug:?}, seed {seed}: {} of {} strokes\n{}", shrunk.left, shrunk.strokes, shrunk.scenario);
    // The shrunk scenario can be played, and its `then` lines state the present behaviour.
    assert_eq!(play(&shrunk.scenario).unwrap(), shrunk.scenario);
}
