//! Spot reclaims during the demo: they are planned, carried out on the emulator's World, and followed to their end.

mod injector;
mod ledger;
mod log;
mod plan;
mod run_state;
mod trace;

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use serde_json::Value;
use spotsweep_records::sweep::Plan;
use spotsweep_records::trial::Trial;
use spotsweep_world::batch::DescribeJobs;

use crate::batch::ZONES;
use crate::stack::{NOTICE, Stack};
use injector::{Act, Injector};
use ledger::Ledger;
use plan::Kind;
use run_state::RunState;

/// DescribeJobs takes at most this many ids at once.
const MOST_IDS: usize = 100;

pub use trace::turns;

/// The reclaims and zone changes that the user has asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// Number of reclaims.
    pub count: u32,
    /// Seed of the plan, which chooses instances, times and kinds.
    pub seed: u64,
    /// When zones lose their capacity and get it back, in the order of time.
    pub turns: Vec<Turn>,
}

/// A zone loses its capacity or gets it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Seconds since the sweep was planned.
    pub at: f64,
    /// Which.
    pub zone: String,
    /// Whether the zone has capacity from then on.
    pub open: bool,
}

impl Wish {
    /// Whether neither reclaims nor changes of zones are asked for.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.turns.is_empty()
    }
}

/// Carries out the plan, and follows what each reclaim costs.
#[derive(Debug)]
pub struct Reclaims {
    injector: Injector,
    ledger: Ledger,
    run_state: RunState,
    turns: VecDeque<Turn>,
    planned: usize,
    started: Instant,
}

impl Reclaims {
    /// Starts with the plan alone.
    pub fn new(stack: &Stack, Wish { count, seed, turns }: Wish, plan: &Plan) -> Self {
        let mut run_state = RunState::new(&stack.jobs_logs());
        for trial in 0..plan.trials {
            if let Some(job) = plan.job_of(trial) {
                run_state.knows(job.to_string(), trial);
            }
        }
        Self {
            injector: Injector::new(ZONES.map(String::from).into(), plan::plan(count, seed)),
            ledger: Ledger::default(),
            run_state,
            planned: count as usize,
            turns: turns.into(),
            started: Instant::now(),
        }
    }

    /// Looks at the sweep, reclaims instances whose time has come, and returns a line for each earlier reclaim whose
    /// outcome is known now.
    pub fn tick(&mut self, stack: &Stack, trials: &[Trial], total: u32) -> Vec<String> {
        let now = self.started.elapsed().as_secs_f64();
        for trial in trials {
            // When Batch's attempts are used up, a trial goes on as a new job.
            self.run_state.knows(trial.job.to_string(), trial.index);
        }
        self.look(stack, now);
        let over: BTreeSet<u32> = trials.iter().filter(|trial| trial.is_over()).map(|trial| trial.index).collect();
        let mut acts = Vec::new();
        while let Some(turn) = self.turns.pop_front_if(|turn| turn.at <= now) {
            acts.extend(self.injector.turn(&turn.zone, turn.open));
        }
        let ended = over.len() as f64 / f64::from(total.max(1));
        acts.extend(self.injector.acts(&self.run_state, ended, now));
        for act in acts {
            self.carry_out(stack, &act, now);
        }
        self.ledger.settle(&self.run_state, &over)
    }

    fn look(&mut self, stack: &Stack, now: f64) {
        let state = stack.snapshot();
        let ids = RunState::jobs(&state);
        let mut jobs = Vec::new();
        for ids in ids.chunks(MOST_IDS) {
            let request = DescribeJobs { jobs: ids.to_vec() };
            // DescribeJobs refuses only too few or too many ids.
            let answer = stack.with_world(|world, _| world.describe_jobs(&request)).unwrap_or_default();
            jobs.extend(answer.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default());
        }
        self.run_state.look(&state, &Value::from_iter([("jobs", Value::from(jobs))]), now);
    }

    /// Carries out an act. An instance that has just ended by itself cannot be reclaimed any more, so nothing is
    /// recorded then.
    fn carry_out(&mut self, stack: &Stack, act: &Act, now: f64) {
        let spare = |notice: bool| notice.then_some(NOTICE);
        let (reclaimed, how) = stack.with_world(|world, at| match act {
            Act::Reclaim { instance, notice, kind } => {
                let taken = world.reclaim(instance, spare(*notice), at).map(|()| vec![instance.clone()]);
                (taken.unwrap_or_default(), (*kind, *notice))
            }
            Act::ReclaimZone { zone, notice } => {
                (world.reclaim_zone(zone, spare(*notice), at).unwrap_or_default(), (Kind::Zone, *notice))
            }
            Act::Recommend { instance } => {
                let _ = world.recommend_rebalance(instance, at);
                (vec![], (Kind::Rebalance, true))
            }
            Act::Capacity { zone, open } => {
                world.set_zone_capacity(zone, (!open).then_some(0), at);
                (vec![], (Kind::Zone, false))
            }
        });
        for instance in reclaimed {
            self.ledger.record(&self.run_state, &instance, how, now);
        }
    }

    /// Number of planned reclaims that found no instance, and number of all planned ones.
    pub fn missed(&self) -> (usize, usize) {
        (self.injector.left(), self.planned)
    }

    /// All reclaims, as the summary has them.
    pub fn json(&self) -> Value {
        self.ledger.json().into()
    }

    /// The trial that was interrupted most often.
    pub fn most_interrupted(&self) -> Option<u32> {
        self.ledger.most_interrupted()
    }
}
