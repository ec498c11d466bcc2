//! The effects of the World on runners and containers.

use std::time::Duration;

use spotsweep_world::{AttemptKey, Effect, Start};

use super::agent::Agent;
use super::{Scheduled, Simulation};

/// The exit code of a killed container.
const KILLED: i32 = 137;

impl Simulation {
    pub(super) fn take_effects(&mut self) {
        let effects = self.harness.cloud.world().take_effects();
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.send(&event),
                Effect::Start(start) => self.start(start),
                Effect::Kill(attempt) => self.kill(&attempt),
                Effect::Stop { attempt: key, grace } => self.at(Duration::ZERO, Scheduled::Terminate { key, grace }),
            }
        }
    }

    fn kill(&mut self, attempt: &AttemptKey) {
        if let Some(mut agent) = self.agents.remove(attempt) {
            self.killed(&mut agent);
            self.note_kill(&agent);
            self.watch.stopped(&agent.trial);
        }
    }

    /// The grace of a container is over.
    pub(super) fn end_container(&mut self, attempt: &AttemptKey) {
        let is_there = self.agents.get(attempt).is_some_and(|agent| self.is_stoppable(agent));
        let Some(mut agent) = is_there.then(|| self.agents.remove(attempt)).flatten() else { return };
        self.killed(&mut agent);
        self.note_kill(&agent);
        self.ends_container(attempt, &agent, KILLED);
    }

    fn start(&mut self, start: Start) {
        let zone = self.harness.cloud.world().instance(&start.instance).map(|found| found.zone.clone());
        let Some(mut agent) = Agent::new(&start, zone.unwrap_or_default(), self.harness.now) else { return };
        self.watch.begins(&start.instance);
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
}
