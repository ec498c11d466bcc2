//! How a runner claims its trial.

use spotsweep_attempt::{INTERRUPTED, REFUSED, waiting_pause};
use spotsweep_protocol::claim::{Machine, Market, Reply, Request};
use spotsweep_protocol::stall::StallRule;
use spotsweep_world::Defect;

use super::{Agent, Next};
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;

impl Simulation {
    pub(super) fn claim(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let machine = if agent.is_blind { Machine::default() } else { self.place(agent) };
        let machine = Machine { defect: self.defect_seen(agent), task: self.task(agent), ..machine };
        let reply = self.ask(agent, Request::Claim(machine));
        Ok(match reply {
            None => self.asks_again(agent)?,
            Some(Reply::Waiting { retry_after_ms, .. }) => match self.taken_unasked(agent) {
                Some(volume) => self.take(agent, volume, (StallRule::OFF, None))?,
                None => {
                    self.watch.waits += 1;
                    Next::After(waiting_pause(retry_after_ms))
                }
            },
            Some(Reply::Unavailable { .. })
                if agent.is_blind && self.harness.cloud.injected_bug() == Some(InjectedBug::FailWithoutPlace) =>
            {
                self.fails(agent, REFUSED)?
            }
            Some(Reply::Unavailable { .. }) if self.defect_seen(agent).is_some() => {
                self.watch.left_unfit(&agent.instance);
                self.fails(agent, INTERRUPTED)?
            }
            Some(Reply::Unavailable { reason }) => {
                self.watch.sent_away(&agent.trial, &reason);
                self.fails(agent, INTERRUPTED)?
            }
            Some(Reply::Granted(grant)) => {
                let (stalls, restores) = (grant.stalls, grant.restores);
                self.watch.granted(&agent.trial, grant.suggested.as_ref());
                agent.gpus = grant.gpus.unwrap_or_default();
                agent.rungs = grant.rungs.map(|plan| plan.steps).unwrap_or_default();
                let volume = grant.workspace.ok_or("granted without its workspace")?.volume;
                match self.ask(agent, Request::Access) {
                    None => self.asks_again(agent)?,
                    Some(Reply::Access(_)) => self.take(agent, volume, (stalls, restores))?,
                    // A newer attempt has come in between.
                    Some(_refused) => self.fails(agent, REFUSED)?,
                }
            }
            Some(Reply::Refused { .. }) => self.fails(agent, REFUSED)?,
            Some(reply @ (Reply::Access(_) | Reply::Accepted {} | Reply::Stop { .. })) => {
                return Err(format!("{}: attempt {} is told {reply:?}", agent.trial, agent.attempt));
            }
        })
    }

    /// What the metadata service tells.
    fn place(&self, agent: &Agent) -> Machine {
        let world = self.harness.cloud.world();
        let instance = world.instance(&agent.instance);
        Machine {
            instance: Some(agent.instance.clone()),
            zone: Some(agent.zone.clone()),
            instance_type: instance.map(|instance| instance.instance_type.clone()),
            market: instance.map(|instance| if instance.spot { Market::Spot } else { Market::OnDemand }),
            defect: None,
            task: None,
        }
    }

    /// What the runner finds wrong with its instance before it claims.
    fn defect_seen(&self, agent: &Agent) -> Option<String> {
        let looks = self.harness.cloud.injected_bug() != Some(InjectedBug::SkipInstanceCheck);
        let world = self.harness.cloud.world();
        let defect = world.instance(&agent.instance)?.defect?;
        match defect {
            Defect::Visible => looks.then(|| "0 of 1 GPU answers".to_owned()),
            Defect::Hidden => None,
        }
    }

    /// Whether a command fails at once, whatever it is: so it does on an instance with a defect.
    pub(super) fn fails_at_once(&self, agent: &Agent) -> bool {
        self.harness.cloud.world().instance(&agent.instance).is_some_and(|instance| instance.defect.is_some())
    }

    /// With the defect planted: the volume of the trial, wherever it is.
    fn taken_unasked(&self, agent: &Agent) -> Option<String> {
        let is_planted = self.harness.cloud.injected_bug() == Some(InjectedBug::MountUnasked);
        let (_, trials) = is_planted.then(|| self.harness.store.state())?;
        let trial = trials.into_iter().find(|trial| trial.index == agent.trial.index)?;
        trial.workspace?.volume.id
    }
}
