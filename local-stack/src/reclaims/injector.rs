//! Decides which instance is reclaimed, and when. Only instances count on which a trial trains, or to which a workspace
//! is moving.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Kind, PlannedReclaim, choose};
use super::run_state::{Instance, Run, RunState};

/// Time from a rebalance recommendation to the notice. On AWS it may be minutes, or nothing at all.
const REBALANCE_LEAD_SECONDS: f64 = 0.7;
/// How long the zone of a reclaimed instance has no capacity if the plan needs a trial that moves.
const PUSHED_SECONDS: f64 = 3.0;
/// A trial that has to move has its instance, image and workspace within this time.
const PUSH_PATIENCE_SECONDS: f64 = 8.0;
/// A trial with so many runs is not interrupted again, so that the reclaims reach all trials of the demo.
const MOST_RUNS: usize = 6;

/// A change of the World.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// EC2 takes an instance.
    Reclaim {
        /// Which.
        instance: String,
        /// Whether the instance gets a notice.
        notice: bool,
        /// The kind of the planned reclaim.
        kind: Kind,
    },
    /// EC2 takes every instance of a zone.
    ReclaimZone {
        /// Which.
        zone: String,
        /// Whether the instances get a notice.
        notice: bool,
    },
    /// EC2 recommends to leave an instance.
    Recommend {
        /// Which.
        instance: String,
    },
    /// A zone loses its capacity, or gets it back.
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
    planned: Vec<PlannedReclaim>,
    /// Instances with a rebalance recommendation, and when they will be reclaimed.
    recommended: Vec<(f64, String)>,
    /// When a trial was last made to move, so that it can be interrupted while it moves.
    pushed: Option<f64>,
    /// Zones without capacity, and when it comes back.
    blocked: BTreeMap<String, f64>,
    /// Zones that have no capacity in the trace.
    closed: BTreeSet<String>,
}

impl Injector {
    /// Makes an injector of this plan for these zones.
    pub(crate) fn new(zones: Vec<String>, planned: Vec<PlannedReclaim>) -> Self {
        Self {
            zones,
            planned,
            recommended: Vec::new(),
            pushed: None,
            blocked: BTreeMap::new(),
            closed: BTreeSet::new(),
        }
    }

    /// Number of planned reclaims that are still to be carried out.
    pub(crate) fn left(&self) -> usize {
        self.planned.len() + self.recommended.len()
    }

    /// Applies a change of the trace: a zone gets capacity, or loses it.
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

    /// What to do now. `ended` is the share of the trials that have ended.
    pub(crate) fn acts(&mut self, run_state: &RunState, ended: f64, now: f64) -> Vec<Act> {
        let mut acts = self.due_lifts(now);
        let reclaims = self.due_reclaims(run_state, now);
        if !reclaims.is_empty() {
            // The run state does not show these reclaims yet. An instance that is chosen now may be one of theirs, and
            // two planned reclaims would become one.
            acts.extend(reclaims);
            return acts;
        }
        let due = self.planned.iter().take_while(|planned| planned.after <= ended);
        let waits_for_move = due.clone().any(|planned| planned.kind == Kind::Migration);
        let chosen = due.enumerate().find_map(|(at, planned)| Some((at, self.target(planned, run_state)?.clone())));
        if let Some((at, target)) = chosen {
            let planned = self.planned.remove(at);
            acts.extend(self.carry_out(&planned, &target, waits_for_move, now));
        } else if waits_for_move && self.pushed.is_none_or(|at| now - at > PUSH_PATIENCE_SECONDS) {
            acts.extend(self.push(run_state, now));
        }
        acts
    }

    /// Makes a trial move by one more reclaim than planned, if a planned one waits for a move and no other one is left
    /// that would cause it.
    fn push(&mut self, run_state: &RunState, now: f64) -> Vec<Act> {
        let push = PlannedReclaim { kind: Kind::Silent, notice: false, after: 0.0, blocks: None, pick: 0 };
        let target = self.target(&push, run_state).cloned();
        target.map(|target| self.carry_out(&push, &target, true, now)).unwrap_or_default()
    }

    fn due_lifts(&mut self, now: f64) -> Vec<Act> {
        let over: Vec<String> =
            self.blocked.iter().filter(|(_, until)| **until <= now).map(|(zone, _)| zone.clone()).collect();
        self.blocked.retain(|_, until| *until > now);
        let open = over.into_iter().filter(|zone| !self.closed.contains(zone));
        open.map(|zone| Act::Capacity { zone, open: true }).collect()
    }

    /// Reclaims for which a recommendation was sent. The notice comes some time after the recommendation, and not
    /// between two trials, because no trial would be interrupted. If the instance has ended by then, another one is
    /// chosen. If it is under notice anyway, another one is chosen soon.
    fn due_reclaims(&mut self, run_state: &RunState, now: f64) -> Vec<Act> {
        let mut acts = Vec::new();
        for (at, instance) in std::mem::take(&mut self.recommended) {
            let live = run_state.instances.iter().find(|live| live.id == instance);
            match live {
                None => {
                    let (kind, notice) = (Kind::Rebalance, true);
                    self.planned.insert(0, PlannedReclaim { kind, notice, after: 0.0, blocks: None, pick: 0 });
                }
                Some(live) if at <= now && !self.is_taken(live) && run_state.runs_on(live).any(is_training) => {
                    acts.push(Act::Reclaim { instance, notice: true, kind: Kind::Rebalance });
                }
                Some(_) => self.recommended.push((at, instance)),
            }
        }
        acts
    }

    fn target<'a>(&self, planned: &PlannedReclaim, run_state: &'a RunState) -> Option<&'a Instance> {
        let candidates: Vec<&Instance> = run_state
            .instances
            .iter()
            .filter(|instance| self.is_undisturbed(instance, planned.kind, run_state))
            .filter(|instance| {
                run_state.runs_on(instance).any(|runs| match planned.kind {
                    Kind::Migration => is_moving(runs),
                    Kind::Notice | Kind::Silent | Kind::Rebalance | Kind::Zone => is_training(runs),
                })
            })
            .collect();
        candidates.get(choose(planned.pick, candidates.len())).copied()
    }

    /// Whether the instance is under notice. Every instance in a zone that the trace has closed is, even if the run
    /// state does not show that yet.
    fn is_taken(&self, instance: &Instance) -> bool {
        instance.is_leaving || self.closed.contains(&instance.zone)
    }

    /// Whether nothing was announced to the instance. If the whole zone is to be reclaimed, that holds for all its
    /// instances.
    fn is_undisturbed(&self, instance: &Instance, kind: Kind, run_state: &RunState) -> bool {
        let announced = |instance: &Instance| {
            self.is_taken(instance) || self.recommended.iter().any(|(_, recommended)| *recommended == instance.id)
        };
        let neighbours = run_state.instances.iter().filter(|other| kind == Kind::Zone && other.zone == instance.zone);
        !announced(instance) && !neighbours.into_iter().any(announced)
    }

    fn carry_out(&mut self, planned: &PlannedReclaim, target: &Instance, waits_for_move: bool, now: f64) -> Vec<Act> {
        let (instance, zone) = (target.id.clone(), target.zone.clone());
        let pushed = (waits_for_move && planned.kind != Kind::Migration).then_some(PUSHED_SECONDS);
        self.pushed = pushed.map(|_| now).or(self.pushed);
        let blocks = planned.blocks.map(|blocks| blocks.as_secs_f64()).or(pushed);
        let mut acts = Vec::new();
        if let Some(seconds) = blocks.filter(|_| self.leaves_another_open(&zone)) {
            self.blocked.insert(zone.clone(), now + seconds);
            acts.push(Act::Capacity { zone: zone.clone(), open: false });
        }
        acts.push(match planned.kind {
            Kind::Rebalance => {
                self.recommended.push((now + REBALANCE_LEAD_SECONDS, instance.clone()));
                Act::Recommend { instance }
            }
            Kind::Zone => Act::ReclaimZone { zone, notice: planned.notice },
            kind @ (Kind::Notice | Kind::Silent | Kind::Migration) => {
                Act::Reclaim { instance, notice: planned.notice, kind }
            }
        });
        acts
    }

    /// Whether another zone stays open. Otherwise the trials could not go on anywhere.
    fn leaves_another_open(&self, zone: &str) -> bool {
        let is_open = |other: &&String| !self.blocked.contains_key(*other) && !self.closed.contains(*other);
        self.zones.iter().filter(is_open).any(|other| other != zone)
    }
}

fn is_training(runs: &[Run]) -> bool {
    runs.len() < MOST_RUNS && runs.last().is_some_and(|run| run.log.is_training())
}

/// Whether the trial has trained on another instance and not yet on this one: then its workspace is moving.
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

    fn planned(kind: Kind, after: f64) -> PlannedReclaim {
        PlannedReclaim { kind, notice: kind == Kind::Notice, after, blocks: None, pick: 0 }
    }

    fn injector(planned: &[PlannedReclaim]) -> Injector {
        Injector::new(["a", "b", "c"].map(String::from).into(), planned.to_vec())
    }

    fn reclaim(instance: &str, notice: bool, kind: Kind) -> Act {
        Act::Reclaim { instance: instance.into(), notice, kind }
    }

    fn capacity(zone: &str, open: bool) -> Act {
        Act::Capacity { zone: zone.into(), open }
    }

    #[test]
    fn only_training_is_interrupted_and_only_in_its_time() {
        let mut injector = injector(&[planned(Kind::Notice, 0.5)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n"), ("i-2", "b", 1, "")]);
        assert_eq!(injector.acts(&busy, 0.4, 0.0), [], "too early");
        assert_eq!(injector.acts(&run_state(&[("i-2", "b", 1, "")]), 0.5, 0.0), [], "no trial trains");
        assert_eq!(injector.acts(&busy, 0.5, 0.0), [reclaim("i-1", true, Kind::Notice)]);
        assert_eq!((injector.left(), injector.acts(&busy, 1.0, 0.0)), (0, vec![]), "once");
    }

    #[test]
    fn a_migration_is_caused_and_then_interrupted() {
        let mut injector = injector(&[planned(Kind::Migration, 0.0), planned(Kind::Silent, 0.0)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        let acts = injector.acts(&busy, 0.0, 0.0);
        assert_eq!(acts, [capacity("a", false), reclaim("i-1", false, Kind::Silent)], "it has to move");
        let moving = elsewhere(busy, &[("i-2", "b", 0, "spotsweep-runner: waiting\n")]);
        assert_eq!(injector.acts(&moving, 0.0, 1.0), [reclaim("i-2", false, Kind::Migration)]);
        assert_eq!(injector.acts(&moving, 0.0, PUSHED_SECONDS), [capacity("a", true)]);
    }

    #[test]
    fn a_migration_that_does_not_happen_is_caused() {
        let mut injector = injector(&[planned(Kind::Migration, 0.0)]);
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
        let mut injector = injector(&[planned(Kind::Rebalance, 0.0), planned(Kind::Silent, 0.0)]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&busy, 0.0, 0.0), [Act::Recommend { instance: "i-1".into() }]);
        assert_eq!(injector.acts(&busy, 0.0, 0.5), [], "not reclaimed twice, and not before its time");
        let idle = run_state(&[("i-1", "a", 0, "")]);
        assert_eq!(injector.acts(&idle, 0.0, REBALANCE_LEAD_SECONDS), [], "it would take no trial's instance");
        let acts = injector.acts(&busy, 0.0, REBALANCE_LEAD_SECONDS + 1.0);
        assert_eq!(acts, [reclaim("i-1", true, Kind::Rebalance)], "nor reclaimed twice at once");
        let other = run_state(&[("i-2", "a", 1, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&other, 0.0, 2.0), [reclaim("i-2", false, Kind::Silent)], "the other is not lost");
    }

    #[test]
    fn where_a_recommended_instance_is_gone_another_is_chosen() {
        let mut injector = injector(&[planned(Kind::Rebalance, 0.0)]);
        let first = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&first, 0.0, 0.0), [Act::Recommend { instance: "i-1".into() }]);
        let second = run_state(&[("i-2", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&second, 0.0, 0.5), [Act::Recommend { instance: "i-2".into() }]);
        assert_eq!(injector.left(), 1);
    }

    #[test]
    fn an_instance_that_the_trace_takes_is_not_interrupted_as_well() {
        let mut injector = injector(&[planned(Kind::Rebalance, 0.0), planned(Kind::Silent, 0.0)]);
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
        assert_eq!(acts, [Act::Recommend { instance: "i-2".into() }], "both reclaims are still to come");
        assert_eq!(injector.left(), 2);
    }

    #[test]
    fn a_zone_that_the_trace_has_closed_stays_closed() {
        let blocking = PlannedReclaim { blocks: Some(std::time::Duration::from_secs(3)), ..planned(Kind::Silent, 0.0) };
        let mut injector = injector(&[blocking]);
        let busy = run_state(&[("i-1", "a", 0, "epoch=1 x=1\n")]);
        assert_eq!(injector.acts(&busy, 0.0, 0.0).len(), 2);
        assert_eq!(injector.turn("a", false), [Act::ReclaimZone { zone: "a".into(), notice: true }]);
        assert_eq!(injector.acts(&busy, 0.0, 4.0), [], "the block is over, the trace's closure is not");
        assert_eq!(injector.turn("a", true), [capacity("a", true)]);
    }
}
