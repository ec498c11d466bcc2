//! Instances that stop responding without any event.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_world::AttemptKey;

use super::agent::Agent;
use super::{Scheduled, Simulation};

/// How long an instance is cut off while it works on. It is longer than reports may be missing.
const CUT_OFF: Duration = Duration::from_secs(40 * 60);

/// How soon the simulation checks again whether an attempt trains, or whether its instance is connected.
const TRIES: Duration = Duration::from_secs(60);

impl Simulation {
    /// Decides whether the instance of an attempt vanishes some time after the attempt's start.
    pub(super) fn may_vanish(&mut self, key: &AttemptKey) {
        if !self.rng.occurs(self.chaos.vanishing) {
            return;
        }
        let (wait, is_dead) = (self.epoch.mul_f64(2.0 * self.rng.share()), self.rng.choose(2) == 0);
        self.at(wait, Scheduled::Vanish { key: key.clone(), is_dead });
    }

    /// The instance of an attempt is dead, which EC2's status checks show, or cut off, which they do not show. In both
    /// cases its ECS agent is disconnected, and Batch still shows its jobs as running.
    pub(super) fn vanish(&mut self, key: &AttemptKey, is_dead: bool) {
        let Some(agent) = self.agents.get(key) else { return };
        let (instance, has_begun) = (agent.container.instance.clone(), agent.trains());
        if self.is_cut_off(&instance) || self.dead.contains_key(&instance) {
            return;
        }
        if !has_begun {
            self.at(TRIES, Scheduled::Vanish { key: key.clone(), is_dead });
            return;
        }
        let now = self.harness.now;
        self.harness.cloud.world().set_connection(&instance, true, is_dead, now);
        if !is_dead {
            self.at(CUT_OFF, Scheduled::Reconnect(instance));
            return;
        }
        let mut agents = std::mem::take(&mut self.agents);
        for agent in agents.values_mut().filter(|agent| agent.container.instance == instance) {
            self.killed(agent);
            agent.stands_still();
            self.note(agent, |_| format!("stands still with {instance}"));
        }
        self.agents = agents;
        self.dead.insert(instance, now);
    }

    pub(super) fn reconnect(&mut self, instance: &str) {
        let now = self.harness.now;
        self.harness.cloud.world().set_connection(instance, false, false, now);
    }

    /// Whether the instance works but no request of its runners arrives.
    pub(super) fn is_cut_off(&self, instance: &str) -> bool {
        let world = self.harness.cloud.world();
        world.instance(instance).is_some_and(|found| found.disconnected && !found.impaired)
    }

    /// Postpones the next action of a runner that is cut off.
    pub(super) fn waits_for_connection(&mut self, agent: &Agent, entry: Scheduled) -> bool {
        let is_cut_off = self.is_cut_off(&agent.container.instance);
        if is_cut_off {
            self.at(TRIES, entry);
        }
        is_cut_off
    }

    /// The dead instances that have not been ended, with the time since which they are dead.
    pub(super) fn dead_and_billed(&self) -> impl Iterator<Item = (&String, Timestamp)> {
        let world = self.harness.cloud.world();
        let is_live = |id: &String| world.instance(id).is_some_and(|found| found.state.is_live());
        let live: Vec<_> = self.dead.iter().filter(|(id, _)| is_live(id)).map(|(id, since)| (id, *since)).collect();
        live.into_iter()
    }
}
