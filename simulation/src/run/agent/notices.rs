//! Interruption notices as a runner sees them, at its start and during the training.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::{Event, INTERRUPTED};
use spotsweep_protocol::claim::{NoticeKind, Reply, Request};
use spotsweep_records::trial::Trial;
use spotsweep_world::AttemptKey;

use super::{Agent, Doing, IMDS_POLL, Next, TERMS};
use crate::injected_bug::InjectedBug;
use crate::run::{Scheduled, Simulation};

/// If at least this much time is left, a runner closes its workspace before the end.
const IN_TIME: Duration = Duration::from_secs(20);

impl Simulation {
    /// A container that begins on an instance under notice waits for the instance's end. If it left and the instance is
    /// not draining, Batch could place the next attempts there too (fact 9), and each would cost an attempt.
    pub(super) fn begin(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let left = self.notice_of(agent).map(|at| self.until(at));
        agent.is_noticed = left.is_some();
        if agent.is_noticed {
            self.watch.began_under_notice(&agent.container.trial, &agent.container.instance);
            if self.harness.cloud.injected_bug() == Some(InjectedBug::LeaveAtOnce) {
                return Ok(Next::Exit(INTERRUPTED));
            }
            self.warn(agent);
        }
        let action = agent.machine.begin(left);
        self.act(agent, action)
    }

    /// The time of the reclaim, if the metadata service announces one.
    fn notice_of(&self, agent: &Agent) -> Option<Timestamp> {
        let world = self.harness.cloud.world();
        world.instance(&agent.container.instance).filter(|_| !agent.is_blind)?.interruption
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.harness.now)).unwrap_or_default()
    }

    /// Reports the notice. It counts only if the attempt has claimed the trial.
    fn warn(&mut self, agent: &mut Agent) {
        let reply = self.ask(agent, Request::Notice { kind: NoticeKind::Interruption });
        let (_, trials) = self.harness.store.state();
        let has_claimed =
            |trial: &Trial| trial.of() == agent.container.trial && trial.claimed_by == Some(agent.container.attempt);
        if matches!(reply, Some(Reply::Accepted {})) && trials.iter().any(has_claimed) {
            self.watch.warned(&agent.container.trial, &agent.container.instance);
        }
    }

    /// Schedules the next look of each runner on an instance under notice. Without a notice a look changes nothing, so
    /// none is simulated.
    pub(in crate::run) fn notices_are_out(&mut self) {
        let world = self.harness.cloud.world();
        let is_warned =
            |agent: &Agent| world.instance(&agent.container.instance).is_some_and(|found| found.interruption.is_some());
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
            self.at(wait, Scheduled::Poll(key));
        }
    }

    /// The runner reads the metadata service. A notice makes it leave in any state.
    pub(in crate::run) fn poll(&mut self, key: &AttemptKey) -> Result<(), String> {
        let Some(agent) = self.agents.get(key).cloned() else { return Ok(()) };
        let Some(at) = self.notice_of(&agent).filter(|_| !agent.is_noticed && !matches!(agent.doing, Doing::Dead))
        else {
            return Ok(());
        };
        if self.waits_for_connection(&agent, Scheduled::Poll(key.clone())) {
            return Ok(());
        }
        if matches!(agent.doing, Doing::Starting) || self.rng.occurs(self.chaos.silent) {
            self.at(IMDS_POLL, Scheduled::Poll(key.clone()));
            return Ok(());
        }
        let Some(mut agent) = self.agents.remove(key) else { return Ok(()) };
        agent.is_noticed = true;
        self.warn(&mut agent);
        // Some runners get the notice and SIGTERM.
        if self.rng.occurs(self.chaos.terminated) {
            let wait = self.until(at).mul_f64(self.rng.share());
            self.at(wait, Scheduled::Terminate { key: key.clone(), grace: TERMS.stop_after });
        }
        let event = Event::Noticed { left: self.until(at), why: "EC2 takes this instance".to_owned() };
        self.ends_by(key, agent, event, at)
    }

    /// The container gets SIGTERM and is killed after the grace.
    pub(in crate::run) fn terminate(&mut self, key: &AttemptKey, grace: Duration) -> Result<(), String> {
        // An ECS agent without a connection cannot stop a container.
        let Some(agent) = self.agents.get(key).cloned().filter(|agent| self.is_stoppable(agent)) else { return Ok(()) };
        if matches!(agent.doing, Doing::AwaitingEnd) {
            self.watch.leaves_under_notice(&agent.container.trial, &agent.container.instance);
        }
        self.at(grace, Scheduled::Kill(key.clone()));
        let ends_at = self.harness.now + grace;
        self.ends_by(key, agent, Event::Signalled(Signal::TERM), ends_at)
    }

    /// Whether an order from ECS reaches the container.
    pub(in crate::run) fn is_stoppable(&self, agent: &Agent) -> bool {
        !matches!(agent.doing, Doing::Dead) && !self.is_cut_off(&agent.container.instance)
    }

    /// The runner learns that its end is at `at`.
    fn ends_by(&mut self, key: &AttemptKey, mut agent: Agent, event: Event, at: Timestamp) -> Result<(), String> {
        if self.until(at) >= IN_TIME && !matches!(agent.doing, Doing::AwaitingEnd) {
            agent.ends_at = Some(agent.ends_at.map_or(at, |ends_at| ends_at.min(at)));
        }
        let is_second = matches!(agent.doing, Doing::Stopping(..));
        let is_ignored = is_second && self.harness.cloud.injected_bug() == Some(InjectedBug::IgnoreSecondStop);
        let next = if is_ignored { Next::After(Duration::ZERO) } else { self.on(&mut agent, event)? };
        self.kernel.cancel(|entry| matches!(entry, Scheduled::Step(of) if of == key));
        self.go_on_with(key, agent, next);
        Ok(())
    }
}
