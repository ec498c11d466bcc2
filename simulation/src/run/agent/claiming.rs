//! How a runner claims its trial.

use std::time::Duration;

use spotsweep_attempt::{Claimed, Claiming, Denied, INTERRUPTED, REFUSED, access};
use spotsweep_protocol::claim::{Grant, Machine, Request};
use spotsweep_protocol::stall::StallRule;
use spotsweep_world::Defect;

use super::{Agent, Next};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;

/// How long an attempt waits for its workspace (`SPOTSWEEP_WORKSPACE_SECONDS`).
const WORKSPACE_LIMIT: Duration = Duration::from_secs(1800);

impl Simulation {
    pub(super) fn claim(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let machine = if agent.is_blind { Machine::default() } else { agent.container.place() };
        let defect = self.defect_seen(agent);
        let machine = Machine { defect: defect.clone(), task: self.task(agent), ..machine };
        let Some(reply) = self.ask(agent, Request::Claim(machine)) else { return self.asks_again(agent) };
        let waited = Duration::try_from(self.harness.now.duration_since(agent.started)).unwrap_or_default();
        match (Claiming { defect, until: WORKSPACE_LIMIT }.answered(reply, waited), self.taken_unasked(agent)) {
            (Claimed::Waits { .. }, Some(volume)) => self.take(agent, volume, (StallRule::OFF, None)),
            (Claimed::Waits { pause, .. }, None) => {
                self.watch.waits += 1;
                Ok(Next::After(pause))
            }
            (Claimed::Granted(grant), _) => self.granted(agent, *grant),
            (Claimed::Denied(denied), _) => self.denied(agent, denied),
        }
    }

    fn granted(&mut self, agent: &mut Agent, grant: Grant) -> Result<Next, String> {
        let (stalls, restores) = (grant.stalls, grant.restores);
        self.watch.granted(&agent.container.trial, grant.suggested.as_ref());
        agent.gpus = grant.gpus.unwrap_or_default();
        agent.data = grant.preparation.map(|preparation| preparation.data().to_vec()).unwrap_or_default();
        agent.rungs = grant.rungs.map(|plan| plan.steps).unwrap_or_default();
        let volume = grant.workspace.ok_or("granted without its workspace")?.volume;
        let Some(reply) = self.ask(agent, Request::Access) else { return self.asks_again(agent) };
        match access(reply) {
            Ok(_) => self.take(agent, volume, (stalls, restores)),
            Err(denied) => self.denied(agent, denied),
        }
    }

    /// The control plane does not grant the trial to the attempt.
    pub(super) fn denied(&mut self, agent: &mut Agent, denied: Denied) -> Result<Next, String> {
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::FailWithoutPlace);
        match denied {
            Denied::Unavailable(_) if agent.is_blind && is_planted => self.fails(agent, (REFUSED, false)),
            Denied::Unfit(_) => {
                self.watch.left_unfit(&agent.container.instance);
                self.fails(agent, (INTERRUPTED, false))
            }
            Denied::Unavailable(reason) => {
                self.watch.sent_away(&agent.container.trial, &reason);
                self.fails(agent, (INTERRUPTED, false))
            }
            Denied::TooLate(_) => self.fails(agent, (INTERRUPTED, true)),
            Denied::Refused(_) => self.fails(agent, (REFUSED, false)),
            Denied::Unfitting(reply) => Err(format!(
                "{}: the answer to attempt {} is {reply:?}",
                agent.container.trial, agent.container.attempt
            )),
        }
    }

    /// The defect of its instance that the runner finds before it claims.
    fn defect_seen(&self, agent: &Agent) -> Option<String> {
        let looks = self.harness.cloud.injected_bug() != Some(InjectedBug::SkipInstanceCheck);
        let world = self.harness.cloud.world();
        let defect = world.instance(&agent.container.instance)?.defect?;
        match defect {
            Defect::Visible => looks.then(|| "0 of 1 GPU answers".to_owned()),
            Defect::Hidden => None,
        }
    }

    /// Whether any command fails at once, because the instance has a defect.
    pub(super) fn fails_at_once(&self, agent: &Agent) -> bool {
        self.harness.cloud.world().instance(&agent.container.instance).is_some_and(|instance| instance.defect.is_some())
    }

    /// With the bug injected: the trial's volume, even if it is not granted.
    fn taken_unasked(&self, agent: &Agent) -> Option<String> {
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::MountUnasked);
        let (_, trials) = is_planted.then(|| self.harness.store.state())?;
        let trial = trials.into_iter().find(|trial| trial.index == agent.container.trial.index)?;
        trial.workspace?.volume.id
    }
}
