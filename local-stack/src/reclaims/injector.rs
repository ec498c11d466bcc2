//! Which instance is taken, and when: only instances on which a trial is training, or whose workspace is on its way.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Kind, Strike, choose};
use super::run_state::{Instance, Run, RunState};

/// From a rebalance recommendation to the notice. On AWS it may be minutes, or nothing at all.
const REBALANCE_LEAD_SECONDS: f64 = 0.7;
/// How long the zone of a reclaimed instance has no capacity where a trial has to move for the plan's sake.
const PUSHED_SECONDS: f64 = 3.0;
/// A trial that was made to move has had its instance, image and workspace by then.
const PUSH_PATIENCE_SECONDS: f64 = 8.0;
/// A trial that has started so often is left in peace: the demo is about all of them.
const MOST_RUNS: usize = 6;

/// What is done to the World.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// EC2 takes an instance.
    Reclaim {
        /// Which.
        instance: String,
        /// Whether it is told before.
        notice: bool,
        /// As part of which strike.
        kind: Kind,
    },
    /// EC2 takes every instance of a zone.
    ReclaimZone {
        /// Which.
        zone: String,
        /// Whether they are told before.
        notice: bool,
    },
    /// EC2 recommends to leave an instance.
    Recommend {
        /// Which.
        instance: String,
    },
    /// A zone has no capacity any more, or has it again.
    Capacity {
        /// Which.
        zone: String,
        /// Whether new instances start there.
        open: bool,
    },
}

/// Carries out a plan.
#[derive(Debug)]
pub(crate) struct Injector {
    zones: Vec<String>,
    strikes: Vec<Strike>,
    /// Instances with a rebalance recommendation, and when they are taken.
    recommended: Vec<(f64, String)>,
    /// When a trial was last made to move, so that its move can be struck.
    pushed: Option<f64>,
    /// Zones without capacity, and until when.
    blocked: BTreeMap<String, f64>,
    /// Zones that the trace has closed.
    closed: BTreeSet<String>,
}

impl Injector {
    /// An injector of these strikes, in zones of these names.
    pub(crate) fn new(zones: Vec<String>, strikes: Vec<Strike>) -> Self {
        Self {
            zones,
            strikes,
            recommended: Vec::new(),
            pushed: None,
            blocked: BTreeMap::new(),
            closed: BTreeSet::new(),
        }
    }

    /// Strikes that have found nobody yet.
    pub(crate) fn left(&self) -> usize {
        self.strikes.len() + self.recommended.len()
    }

    /// The trace says that a zone has capacity, or has lost it.
    pub(crate) fn turn(&mut self, zone: &str, open: bool) -> Vec<Act> {
        let zone = zone.to_owned();
        if open {
            self.closed.remove(&zone);
            if self.blocked.contains_key(&zone) { vec![] } else { vec![Act::Capacity { zone, open }] }
        } else {
            self.closed.insert(zone.clone());
            vec![Act::ReclaimZone { zone, notice: true }]
        }
    }

    /// What to do now. `ended` is the share of the trials that have.
    pub(crate) fn acts(&mut self, run_state: &RunState, ended: f64, now: f64) -> Vec<Act> {
        let mut acts = self.due_lifts(now);
        let reclaims = self.due_reclaims(run_state, now);
        if !reclaims.is_empty() {
            // The scene does not show them yet: whoever is chosen now may be taken already, and two strikes would be one.
            acts.extend(reclaims);
            return acts;
        }
        let due = self.strikes.iter().take_while(|strike| strike.after <= ended);
        let waits_for_move = due.clone().any(|strike| strike.kind == Kind::Migration);
        let chosen = due.enumerate().find_map(|(at, strike)| Some((at, self.victim(strike, run_state)?.clone())));
        if let Some((at, victim)) = chosen {
            let strike = self.strikes.remove(at);
            acts.extend(self.strike(&strike, &victim, waits_for_move, now));
        } else if waits_for_move && self.pushed.is_none_or(|at| now - at > PUSH_PATIENCE_SECONDS) {
            acts.extend(self.push(run_state, now));
        }
        acts
    }

    /// No strike is left that would make a trial move, and one is waiting for a move: one more reclaim than planned.
    fn push(&mut self, run_state: &RunState, now: f64) -> Vec<Act> {
        let push = Strike { kind: Kind::Silent, notice: false, after: 0.0, blocks: None, pick: 0 };
        let victim = self.victim(&push, run_state).cloned();
        victim.map(|victim| self.strike(&push, &victim, true, now)).unwrap_or_default()
    }

    fn due_lifts(&mut self, now: f64) -> Vec<Act> {
        let over: Vec<String> =
            self.blocked.iter().filter(|(_, until)| **until <= now).map(|(zone, _)| zone.clone()).collect();
        self.blocked.retain(|_, until| *until > now);
        let open = over.into_iter().filter(|zone| !self.closed.contains(zone));
        open.map(|zone| Act::Capacity { zone, open: true }).collect()
    }

    /// The notice comes some time after the recommendation, and not between two trials: no trial would lose it. Where
    /// the instance is gone by then, another one is to be chosen; where it is being taken anyway, that is soon.
    fn due_reclaims(&mut self, run_state: &RunState, now: f64) -> Vec<Act> {
        let mut acts = Vec::new();
        for (at, instance) in std::mem::take(&mut self.recommended) {
            let live = run_state.instances.iter().find(|live| live.id == instance);
            match live {
                None => {
                    let (kind, notice) = (Kind::Rebalance, true);
                    self.strikes.insert(0, Strike { kind, notice, after: 0.0, blocks: None, pick: 0 });
                }
                Some(live) if at <= now && !self.is_taken(live) && run_state.runs_on(live).any(is_training) => {
                    acts.push(Act::Reclaim { instance, notice: true, kind: Kind::Rebalance });
                }
                Some(_) => self.recommended.push((at, instance)),
            }
        }
        acts
    }

    fn victim<'a>(&self, strike: &Strike, run_state: &'a RunState) -> Option<&'a Instance> {
        let candidates: Vec<&Instance> = run_state
            .instances
            .iter()
            .filter(|instance| self.is_undisturbed(instance, strike.kind, run_state))
            .filter(|instance| {
                run_state.runs_on(instance).any(|runs| match strike.kind {
                    Kind::Migration => is_moving(runs),
                    Kind::Notice | Kind::Silent | Kind::Rebalance | Kind::Zone => is_training(runs),
                })
            })
            .collect();
        candidates.get(choose(strike.pick, candidates.len())).copied()
    }

    /// Whether its notice is out. Whoever is in a zone that the trace has closed has it, even if the scene does not show
    /// that yet.
    fn is_taken(&self, instance: &Instance) -> bool {
        instance.is_leaving || self.closed.contains(&instance.zone)
    }

    /// Nothing has been announced to it yet, nor to its neighbours where all of them are taken.
    fn is_undisturbed(&self, instance: &Instance, kind: Kind, run_state: &RunState) -> bool {
        let announced = |instance: &Instance| {
            self.is_taken(instance) || self.recommended.iter().any(|(_, recommended)| *recommended == instance.id)
        };
        let neighbours = run_state.instances.iter().filter(|other| kind == Kind::Zone && other.zone == instance.zone);
        !announced(instance) && !neighbours.into_iter().any(announced)
    }

    fn strike(&mut self, strike: &Strike, victim: &Instance, waits_for_move: bool, now: f64) -> Vec<Act> {
        let (instance, zone) = (victim.id.clone(), victim.zone.clone());
        let pushed = (waits_for_move && strike.kind != Kind::Migration).then_some(PUSHED_SECONDS);
        self.pushed = pushed.map(|_| now).or(self.pushed);
        let blocks = strike.blocks.map(|blocks| blocks.as_secs_f64()).or(pushed);
        let mut acts = Vec::new();
        if let Some(seconds) = blocks.filter(|_| self.leaves_another_open(&zone)) {
            self.blocked.insert(zone.clone(), now + seconds);
            acts.push(Act::Capacity { zone: zone.clone(), open: false });
        }
        acts.push(match strike.kind {
            Kind::Rebalance => {
                self.recommended.push((now + REBALANCE_LEAD_SECONDS, instance.clone()));
                Act::Recommend { instance }
            }
            Kind::Zone => Act::ReclaimZone { zone, notice: strike.notice },
            kind @ (Kind::Notice | Kind::Silent | Kind::Migration) => {
                Act::Reclaim { instance, notice: strike.notice, kind }
            }
        });
        acts
    }

    /// With no zone left there would be nowhere to go on.
    fn leaves_another_open(&self, zone: &str) -> bool {
        let is_open = |other: &&String| !self.blocked.contains_key(*other) && !self.closed.contains(*other);
        self.zones.iter().filter(is_open).any(|other| other != zone)
    }
}

fn is_training(runs: &[Run]) -> bool {
    runs.len() < MOST_RUNS && runs.last().is_some_and(|run| run.log.is_training())
}

/// It has trained elsewhere and not yet here: its workspace is on the way.
fn is_moving(runs: &[Run]) -> bool {
    let Some((newest, earlier)) = runs.split_last() else { return false };
    let has_moved = earlier.last().is_some_and(|before| before.zone != newest.zone);
    let has_something = earlier.iter().any(|run| run.log.began(false).is_some());
    runs.len() < MOST_RUNS && has_moved && has_something && newest.log.began(false).is_none()
}

#[cfg(test)]
mod tests {
    use super::super::run_state::tests::{elsewhere, run_state};
    use super::*;

    fn strike(kind: Kind, after: f64) -> Strike {
        Strike { kind, notice: kind == Kind::Notice, after, blocks: None, pick: 0 }
    }

    fn injector(strikes: &[Strike]) -> Injector {
        Injector::new(["a", "b", "c"].map(String::from).into(), strikes.to_vec())
    }

    fn reclaim(instance: &str, notice: bool, kind: Kind) -> Act {
        Act::Reclaim { instance: instance.into(), notice, kind }
    }

    fn capacity(zone: &str, open: bool) -> Act {
        Act::Capacity { zone: zone.into(), open }
    }

    #[test]
    fn only_training_is_interrupted_and_only_in_its_time() {
        let mut injector = injector(&[strike(Kind::Notice, 0.5)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n"), ("i-2", "b", 1, "")]);
        assert_eq!(injector.acts(&busy, 0.4, 0.0), [], "too early");
        assert_eq!(injector.acts(&run_state(&[("i-2", "b", 1, "")]), 0.5, 0.0), [], "no trial trains");
        assert_eq!(injector.acts(&busy, 0.5, 0.0), [reclaim("i-1", true, Kind::Notice)]);
        assert_eq!((injector.left(), injector.acts(&busy, 1.0, 0.0)), (0, vec![]), "once");
    }

    #[test]
    fn a_migration_is_caused_and_then_interrupted() {
        let mut injector = injector(&[strike(Kind::Migration, 0.0), strike(Kind::Silent, 0.0)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        let acts = injector.acts(&busy, 0.0, 0.0);
        assert_eq!(acts, [capacity("a", false), reclaim("i-1", false, Kind::Silent)], "it has to move");
        let moving = elsewhere(busy, &[("i-2", "b", 0, "spotsweep-runner: waiting\n")]);
        assert_eq!(injector.acts(&moving, 0.0, 1.0), [reclaim("i-2", false, Kind::Migration)]);
        assert_eq!(injector.acts(&moving, 0.0, PUSHED_SECONDS), [capacity("a", true)]);
    }

    #[test]
    fn a_migration_that_does_not_happen_is_caused() {
        let mut injector = injector(&[strike(Kind::Migration, 0.0)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        let push = [capacity("a", false), reclaim("i-1", false, Kind::Silent)];
        assert_eq!(injector.acts(&busy, 0.0, 0.0), push);
        assert_eq!(injector.acts(&busy, 0.0, 1.0), [], "it may be on its way");
        assert_eq!(injector.acts(&busy, 0.0, PUSHED_SECONDS), [capacity("a", true)]);
        assert_eq!(injector.acts(&busy, 0.0, PUSH_PATIENCE_SECONDS + 1.0), push, "it was not seen");
        assert_eq!(injector.left(), 1);
    }

    #[test]
    fn a_recommendation_is_followed_by_the_notice() {
        let mut injector = injector(&[strike(Kind::Rebalance, 0.0), strike(Kind::Silent, 0.0)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&busy, 0.0, 0.0), [Act::Recommend { instance: "i-1".into() }]);
        assert_eq!(injector.acts(&busy, 0.0, 0.5), [], "not struck twice, and not before its time");
        let idle = run_state(&[("i-1", "a", 0, "")]);
        assert_eq!(injector.acts(&idle, 0.0, REBALANCE_LEAD_SECONDS), [], "it would take no trial's instance");
        let acts = injector.acts(&busy, 0.0, REBALANCE_LEAD_SECONDS + 1.0);
        assert_eq!(acts, [reclaim("i-1", true, Kind::Rebalance)], "nor struck twice at once");
        let other = run_state(&[("i-2", "a", 1, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&other, 0.0, 2.0), [reclaim("i-2", false, Kind::Silent)], "the other is not lost");
    }

    #[test]
    fn where_a_recommended_instance_is_gone_another_is_chosen() {
        let mut injector = injector(&[strike(Kind::Rebalance, 0.0)]);
        let first = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&first, 0.0, 0.0), [Act::Recommend { instance: "i-1".into() }]);
        let second = run_state(&[("i-2", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&second, 0.0, 0.5), [Act::Recommend { instance: "i-2".into() }]);
        assert_eq!(injector.left(), 1);
    }

    #[test]
    fn an_instance_that_the_trace_takes_is_not_interrupted_as_well() {
        let mut injector = injector(&[strike(Kind::Rebalance, 0.0), strike(Kind::Silent, 0.0)]);
        let here = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&here, 0.0, 0.0), [Act::Recommend { instance: "i-1".into() }]);
        assert_eq!(injector.turn("a", false).len(), 1);
        let both = run_state(&[("i-0", "a", 1, "epoch=1 x=1\n"), ("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&both, 0.0, REBALANCE_LEAD_SECONDS), [], "neither with the notice nor without");
        assert_eq!(injector.turn("a", true), [capacity("a", true)]);
        let mut leaving = both;
        leaving.instances.iter_mut().for_each(|instance| instance.is_leaving = true);
        assert_eq!(injector.acts(&leaving, 0.0, REBALANCE_LEAD_SECONDS), [], "nor once the zone is open again");
        let after = run_state(&[("i-2", "b", 0, "epoch=1 x=1\n")]);
        let acts = injector.acts(&after, 0.0, REBALANCE_LEAD_SECONDS + 1.0);
        assert_eq!(acts, [Act::Recommend { instance: "i-2".into() }], "both strikes are still to come");
        assert_eq!(injector.left(), 2);
    }

    #[test]
    fn a_zone_that_the_trace_has_closed_stays_closed() {
        let blocking = Strike { blocks: Some(std::time::Duration::from_secs(3)), ..strike(Kind::Silent, 0.0) };
        let mut injector = injector(&[blocking]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&busy, 0.0, 0.0).len(), 2);
        assert_eq!(injector.turn("a", false), [Act::ReclaimZone { zone: "a".into(), notice: true }]);
        assert_eq!(injector.acts(&busy, 0.0, 4.0), [], "the block is over, the trace's closure is not");
        assert_eq!(injector.turn("a", true), [capacity("a", true)]);
    }
}
