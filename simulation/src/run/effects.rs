//! The effects of the World on runners and containers.

use std::time::Duration;

use spotsweep_world::{AttemptKey, Start};

use super::agent::Agent;
use super::{Scheduled, Simulation};
use crate::container::Container;

/// The exit code of a killed container.
const KILLED: i32 = 137;

impl Simulation {
    pub(super) fn kill(&mut self, attempt: &AttemptKey) {
        if let Some(mut agent) = self.agents.remove(attempt) {
            self.killed(&mut agent);
            self.note_kill(&agent);
            self.has_stopped(&mut agent);
        }
    }

    /// The grace of a container is over.
    pub(super) fn end_container(&mut self, attempt: &AttemptKey) {
        let is_there = self.agents.get(attempt).is_some_and(|agent| self.is_stoppable(agent));
        let Some(mut agent) = is_there.then(|| self.agents.remove(attempt)).flatten() else { return };
        self.killed(&mut agent);
        self.note_kill(&agent);
        self.ends_container(attempt, &mut agent, KILLED);
    }

    pub(super) fn start(&mut self, start: Start) {
        let Some(container) = Container::of(&start, &self.harness.cloud.world()) else { return };
        let mut agent = Agent::new(container, self.harness.now);
        self.watch.begins(&start.instance);
        self.may_reboot(&start.instance);
        agent.is_blind = self.rng.occurs(self.chaos.silent);
        let key = start.attempt;
        self.may_vanish(&key);
        if self.rng.occurs(self.chaos.terminated) {
            let wait = self.epoch.mul_f64(3.0 * self.rng.share());
            let grace = Duration::from_secs(30);
            self.at(wait, Scheduled::Terminate { key: key.clone(), grace });
        }
        // The runner asks the metadata service for this long before it claims without its place.
        let wait = if agent.is_blind { Duration::from_secs(30) } else { Duration::ZERO };
        self.at(wait, Scheduled::Step(key.clone()));
        self.agents.insert(key, agent);
        self.notices_are_out();
    }

    /// An instance without any other container may have booted since the last one.
    fn may_reboot(&mut self, instance: &str) {
        let is_idle = self.agents.values().all(|agent| agent.container.instance != instance);
        if is_idle && self.rng.occurs(self.chaos.data.reboots) {
            self.disks.on(instance).reboot();
        }
    }
}
