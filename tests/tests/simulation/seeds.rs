//! Two thousand seeds, each an interrupted sweep with a mixture of trouble of its own; what they meet of the
//! transition table; and that what was decided is all there is to know. More:
//! `cargo run --release -p spotsweep-simulation --bin simulate -- --seeds 1000000 --json`.

use spotsweep_simulation::decision_log::Coverage;
use spotsweep_simulation::memory::MemoryStore;
use spotsweep_simulation::run::{Mixture, Simulation};
use spotsweep_simulation::shrink::shrink;

/// Runs some seeds; a failing one is shown as a scenario.
fn run(seeds: std::ops::Range<u64>) -> Coverage {
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
fn seeds_from_0() {
    run(0..500);
}

#[test]
fn seeds_from_500() {
    run(500..1000);
}

#[test]
fn seeds_from_1000() {
    run(1000..1500);
}

#[test]
fn seeds_from_1500() {
    run(1500..2000);
}

/// How often each event meets each stage of a workspace. Among the pairs that never meet are those that can't: nothing
/// is to be learned of a workspace that is not there, and nobody mounts one that is gone.
#[test]
fn the_transition_table_is_walked() {
    let met = run(2000..2600);
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

/// The audit log and the stored state tell the same, because there is nothing else: no clock, no chance, no memory
/// between invocations. Without deaths and failing calls, as an event whose answer is lost is not heard of.
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
