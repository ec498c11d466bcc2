//! What the World wants done outside of it.

use std::time::Duration;

use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_world::{AttemptKey, Effect, Start};

use super::agent::Agent;
use super::{Happening, Simulation};

impl Simulation {
    pub(super) fn take_effects(&mut self) {
        let effects = self.harness.cloud.world().take_effects();
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.send(&event),
                Effect::Start(start) => self.start(start),
                Effect::Kill(attempt) => self.kill(&attempt),
                // An agent without a connection stops nothing.
                Effect::Stop { attempt, .. } if self.is_disconnected(&attempt) => {}
                Effect::Stop { attempt, .. } => {
                    self.kill(&attempt);
                    // As a runner does that gets SIGTERM: Batch must not take that for a reason to start another attempt.
                    let now = self.harness.now;
                    self.harness.cloud.world().job_exited(&attempt, INTERRUPTED_EXIT_CODE, now);
                }
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

    fn start(&mut self, start: Start) {
        let zone = self.harness.cloud.world().instance(&start.instance).map(|found| found.zone.clone());
        let Some(mut agent) = Agent::new(&start, zone.unwrap_or_default(), self.harness.now) else { return };
        self.watch.begins(&start.instance);
        agent.is_blind = self.rng.strikes(self.chaos.silent);
        let key = start.attempt;
        self.may_vanish(&key);
        // So long a runner asks the metadata service before it claims without its place.
        let wait = if agent.is_blind { Duration::from_secs(30) } else { Duration::ZERO };
        self.at(wait, Happening::Step(key.clone()));
        self.agents.insert(key, agent);
        self.notices_are_out();
    }

    fn is_disconnected(&self, attempt: &AttemptKey) -> bool {
        let instance = self.agents.get(attempt).map(|agent| &agent.instance);
        let world = self.harness.cloud.world();
        instance.and_then(|instance| world.instance(instance)).is_some_and(|found| found.disconnected)
    }
}
