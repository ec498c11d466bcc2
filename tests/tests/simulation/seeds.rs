//! Runs the seeds from 700 to 1999, each an interrupted sweep with a mixture of faults of its own. The seeds before are
//! those of `permissions.rs`. It also replays the decisions of a run, and compares the result with the stored state. The
//! program `simulate` runs more seeds (docs/simulation.md).

use spotsweep_simulation::decision_log::Coverage;
use spotsweep_simulation::memory::MemoryStore;
use spotsweep_simulation::run::{Mixture, Simulation};
use spotsweep_simulation::shrink::shrink;

/// Runs these seeds. A seed that fails is shown as a scenario.
fn run(seeds: impl IntoIterator<Item = u64>) -> Coverage {
    let mut met = Coverage::new();
    for seed in seeds {
        let mut simulation = Simulation::of_seed(seed);
        simulation.harness.store.decision_log.count();
        if let Err(problem) = simulation.run() {
            panic!("seed {seed}: {problem}\n{:#?}", shrink(seed, None));
        }
        for (pair, count) in simulation.harness.store.decision_log.coverage() {
            *met.entry(pair).or_default() += count;
        }
    }
    met
}

#[test]
fn seeds_from_700() {
    run(700..1050);
}

#[test]
fn seeds_from_1050() {
    run(1050..1400);
}

/// Each of these has found a defect (docs/simulation.md): parts that each save rewrites, data that has changed, and
/// rollbacks that are undone.
#[test]
fn seeds_that_have_found_a_defect() {
    run([
        1_797_634, 1_846_022, 1_848_298, 1_855_698, 1_798_762, 1_800_485, 1_811_356, 1_873_511, 1_859_909, 1_902_877,
        1_909_086, 1_928_447, 1_982_699, 2_147_968, 2_155_178, 2_248_887, 2_324_449, 2_409_070, 2_409_580, 2_435_585,
        2_457_822, 2_555_983, 2_800_232, 2_808_539, 2_826_036, 2_916_281, 2_917_915, 2_929_490,
    ]);
}

/// Counts how often each event meets each stage of a workspace. Some pairs are impossible: a workspace that does not
/// exist reports nothing, and one that is gone is never mounted.
#[test]
fn the_transition_table_is_walked() {
    let met = run(1400..2000);
    for ((stage, event), count) in &met {
        println!("{count:>8}  {stage:<18} {event}");
    }
    println!("{} pairs of stage and event", met.len());
    let of = |stage: &str| met.keys().filter(|(met, _)| *met == stage).count();
    for (stage, events) in [("absent", 3), ("creating", 8), ("attaching", 7), ("attached", 12), ("detaching", 10)] {
        assert!(of(stage) >= events, "{} events while {stage}", of(stage));
    }
    for (stage, events) in [("detached", 7), ("awaiting-snapshot", 7), ("disposing", 4), ("gone", 3)] {
        assert!(of(stage) >= events, "{} events while {stage}", of(stage));
    }
    for event in
        ["interruption-noticed", "resource-missing", "snapshot-not-found", "workspace-refused", "volume-reported"]
    {
        let stages = met.keys().filter(|(_, met)| *met == event).count();
        assert!(stages >= 2, "{event} only in {stages} stages");
    }
}

/// The audit log and the stored state agree, because decisions depend on nothing else: neither on a clock nor on chance
/// nor on memory between invocations. The mixture has no killed functions and no failed calls, because an event whose
/// answer is lost is not in the log.
#[test]
fn what_was_decided_replays_to_what_is_stored() {
    for seed in 0..50 {
        let mut mixture = Mixture::of_seed(seed);
        let chaos = &mut mixture.chaos;
        (chaos.killed, chaos.failed, chaos.beside, chaos.skew) = (0.0, 0.0, 0.0, std::time::Duration::ZERO);
        let mut simulation = Simulation::mixed(seed, &mixture);
        simulation.keep_inputs();
        simulation.run().unwrap();
        let replayed = MemoryStore::replayed(simulation.inputs(), simulation.harness.settings());
        assert_eq!(replayed.state(), simulation.harness.store.state(), "seed {seed}");
    }
}
