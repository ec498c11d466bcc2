//! Shrinks a failing seed to the fewest faults that still fail, as a scenario.

use std::collections::BTreeSet;

use spotsweep_protocol::ids::SweepId;

use crate::injected_bug::InjectedBug;
use crate::run::{DataFaults, Habits, Mixture, OnSignal, Simulation, StartedBy};
use crate::scenario::{Timeline, trim};

/// Most runs of one shrinking: a bound, not a tuning.
const MOST_RUNS: usize = 2000;

/// A failing run after shrinking.
#[derive(Debug)]
pub struct Shrunk {
    /// The violation in the small run.
    pub problem: String,
    /// Number of faults in the run of the seed.
    pub strokes: u64,
    /// Number of faults that are left.
    pub left: usize,
    /// The trial's inputs as a scenario.
    pub scenario: String,
}

/// Looks for the fewest faults that break the same invariant. `None` if the seed does not fail.
pub fn shrink(seed: u64, planted: Option<InjectedBug>) -> Option<Shrunk> {
    let mut search = Search { seed, planted, mixture: Mixture::of_seed(seed), invariant: String::new(), runs: 0 };
    let mut whole = search.prepared();
    let problem = whole.run().err()?;
    search.invariant = invariant(&problem).to_owned();
    let strokes = whole.strokes();
    search.simplify();
    let mut again = search.prepared();
    // A simpler mixture has other faults.
    let problem = again.run().err().unwrap_or(problem);
    let least = search.least((0..again.strokes()).collect());
    let mut small = search.prepared();
    small.only_faults(least.iter().copied().collect());
    small.keep_inputs();
    let problem = small.run().err().unwrap_or(problem);
    let scenario = tell(&small, &problem, seed);
    Some(Shrunk { problem, strokes, left: least.len(), scenario })
}

/// The invariant that a problem names.
fn invariant(problem: &str) -> &str {
    problem.split(':').next().unwrap_or(problem)
}

struct Search {
    seed: u64,
    planted: Option<InjectedBug>,
    mixture: Mixture,
    invariant: String,
    runs: usize,
}

impl Search {
    fn prepared(&self) -> Simulation {
        let mut simulation = Simulation::mixed(self.seed, &self.mixture);
        if let Some(injected_bug) = self.planted {
            simulation.plant(injected_bug);
        }
        simulation
    }

    fn fails(&mut self, simulation: &mut Simulation) -> bool {
        self.runs += 1;
        simulation.run().is_err_and(|problem| invariant(&problem) == self.invariant)
    }

    /// Leaves out whole kinds of faults, and makes the sweep smaller.
    fn simplify(&mut self) {
        let simpler: [fn(&mut Mixture); 32] = [
            |mixture| mixture.trials = 1,
            |mixture| (mixture.data, mixture.chaos.data) = (None, DataFaults::NONE),
            |mixture| mixture.epochs = 2,
            |mixture| mixture.failing_volumes = 0,
            |mixture| mixture.failing_snapshots = 0,
            |mixture| mixture.visible_after_seconds = 0,
            |mixture| (mixture.initialization_rate, mixture.chaos.refuses_rate) = (None, false),
            |mixture| mixture.zones = 1,
            |mixture| mixture.chaos.throttled = 0.0,
            |mixture| mixture.chaos.unlisted = std::time::Duration::ZERO,
            |mixture| mixture.chaos.delay = std::time::Duration::ZERO,
            |mixture| mixture.chaos.skew = std::time::Duration::ZERO,
            |mixture| mixture.chaos.doubled = 0.0,
            |mixture| mixture.chaos.killed = 0.0,
            |mixture| mixture.chaos.failed = 0.0,
            |mixture| mixture.chaos.unsent = 0.0,
            |mixture| mixture.chaos.refused = 0.0,
            |mixture| mixture.chaos.denied = None,
            |mixture| mixture.chaos.quota_full = std::time::Duration::ZERO,
            |mixture| mixture.chaos.gone_is_denied = false,
            |mixture| mixture.chaos.unusable_key = false,
            |mixture| mixture.chaos.unnamed = 0.0,
            |mixture| mixture.chaos.unplaced = false,
            |mixture| mixture.chaos.silent = 0.0,
            |mixture| mixture.chaos.slow_seals = 0.0,
            |mixture| mixture.chaos.hangs = 0.0,
            |mixture| mixture.chaos.habits.on_signal = OnSignal::Saves,
            |mixture| mixture.chaos.habits.started_by = StartedBy::Itself,
            |mixture| mixture.chaos.habits.has_loaders = false,
            |mixture| mixture.chaos.habits = Habits::PLAIN,
            |mixture| mixture.chaos.hour_late = 0.0,
            |mixture| mixture.chaos.lag = std::time::Duration::ZERO,
        ];
        for change in simpler {
            let before = self.mixture.clone();
            change(&mut self.mixture);
            if self.mixture != before && !self.fails(&mut self.prepared()) {
                self.mixture = before;
            }
        }
    }

    /// Delta debugging: leaves out ever smaller groups of faults for as long as the run still fails.
    fn least(&mut self, mut strokes: Vec<u64>) -> Vec<u64> {
        let mut group = strokes.len().div_ceil(2).max(1);
        while self.runs < MOST_RUNS {
            let mut has_shrunk = false;
            let mut from = 0;
            while from < strokes.len() && self.runs < MOST_RUNS {
                let mut fewer = strokes.clone();
                fewer.drain(from..(from + group).min(strokes.len()));
                let mut simulation = self.prepared();
                simulation.only_faults(fewer.iter().copied().collect::<BTreeSet<_>>());
                if self.fails(&mut simulation) {
                    strokes = fewer;
                    has_shrunk = true;
                } else {
                    from += group;
                }
            }
            match (group, has_shrunk) {
                (1, false) => break,
                (1, true) => {}
                (_, _) => group = group.div_ceil(2),
            }
        }
        strokes
    }
}

fn tell(run: &Simulation, problem: &str, seed: u64) -> String {
    let (sweeps, trials) = run.harness.store.state();
    let is_meant = |index: &u32| problem.contains(&format!("/{index}")) || problem.contains(&format!("trial {index}"));
    let index = trials.iter().map(|trial| trial.index).find(is_meant).unwrap_or(0);
    let sweep = sweeps.first().map_or_else(|| SweepId::derive("b", "k", "v"), |sweep| sweep.id.clone());
    let mut timeline = Timeline::of(sweep, index);
    run.inputs().iter().for_each(|(at, event)| timeline.tell(event, *at));
    let first_line = problem.lines().next().unwrap_or_default();
    let text = format!("# Seed {seed}: {first_line}\n{}", timeline.text());
    trim(&text).unwrap_or(text)
}
