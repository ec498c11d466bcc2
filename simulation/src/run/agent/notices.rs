//! Interruption notices, as a runner sees them: at its start, and while it trains.

use std::time::Duration;

use spotsweep_protocol::claim::{NoticeKind, Reply, Request};
use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;
use spotsweep_world::AttemptKey;

use super::{Agent, Doing, IMDS_POLL, Next};
use crate::injected_bug::InjectedBug;
use crate::run::{Happening, Simulation};

impl Simulation {
    /// A container that begins on an instance under notice waits for its end. If it left, Batch could place the next
    /// attempt there too, where the instance is not draining (fact 9): each would cost an attempt.
    pub(super) fn begin(&mut self, agent: &mut Agent) -> Result<Next, String> {
        if !self.is_under_notice(agent) {
            agent.doing = Doing::Claiming;
            return self.claim(agent);
        }
        self.watch.began_under_notice(&agent.trial, &agent.instance);
        if self.harness.cloud.injected_bug() == Some(InjectedBug::LeaveAtOnce) {
            return Ok(Next::Exit(INTERRUPTED_EXIT_CODE));
        }
        self.warn(agent);
        agent.doing = Doing::AwaitingEnd;
        Ok(Next::Never)
    }

    /// What the metadata service says of the runner's instance.
    pub(super) fn is_under_notice(&self, agent: &Agent) -> bool {
        if agent.is_blind {
            return false;
        }
        let world = self.harness.cloud.world();
        world.instance(&agent.instance).is_some_and(|found| found.interruption.is_some())
    }

    /// Says that the instance is under notice. Where ECS has not said yet on which instance the attempt runs, that names
    /// none.
    fn warn(&mut self, agent: &Agent) {
        let mut is_located = false;
        self.harness.store.each_trial(|trial| {
            let place = trial.attempts.get(&agent.attempt).and_then(|attempt| attempt.instance.as_ref());
            is_located |= trial.index == agent.trial.index && place == Some(&agent.instance);
        });
        let reply = self.ask(agent, Request::Notice { kind: NoticeKind::Interruption });
        if matches!(reply, Some(Reply::Accepted {})) && is_located {
            self.watch.warned(&agent.trial, &agent.instance);
        }
    }

    /// Runners on instances that are to be taken see it when they look next; until then looking changes nothing.
    pub(in crate::run) fn notices_are_out(&mut self) {
        let world = self.harness.cloud.world();
        let is_warned =
            |agent: &Agent| world.instance(&agent.instance).is_some_and(|found| found.interruption.is_some());
        let warned: Vec<_> = self.agents.iter().filter(|(_, agent)| is_warned(agent)).collect();
        let now = self.harness.now;
        let looks = warned.into_iter().map(|(key, agent)| {
            let since = u64::try_from(now.duration_since(agent.started).as_secs()).unwrap_or(0);
            let period = IMDS_POLL.as_secs();
            (key.clone(), Duration::from_secs(period - since % period))
        });
        let looks: Vec<_> = looks.collect();
        drop(world);
        for (key, wait) in looks {
            self.at(wait, Happening::Poll(key));
        }
    }

    /// The runner looks at the metadata service; a notice makes it leave.
    pub(in crate::run) fn poll(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(agent) = self.agents.get(key).cloned() else { return Ok(()) };
        if !self.is_under_notice(&agent) || self.waits_for_connection(&agent, Happening::Poll(key.clone())) {
            return Ok(());
        }
        if self.rng.strikes(self.chaos.silent) {
            self.at(IMDS_POLL, Happening::Poll(key.clone()));
            return Ok(());
        }
        let run = match &agent.doing {
            Doing::Training(run) => run.clone(),
            Doing::AwaitingEnd | Doing::Stopping(..) | Doing::Leaving { .. } | Doing::Ending { .. } => return Ok(()),
            Doing::Starting | Doing::Claiming | Doing::Mounting { .. } => {
                self.at(IMDS_POLL, Happening::Poll(key.clone()));
                return Ok(());
            }
        };
        self.warn(&agent);
        let doing = self.ask_to_stop(&agent, *run)?;
        if let Some(agent) = self.agents.get_mut(key) {
            agent.doing = doing;
        }
        self.happenings.retain(|_, happening| !matches!(happening, Happening::Step(of) if of == key));
        self.at(Duration::ZERO, Happening::Step(key.clone()));
        Ok(())
    }
}
