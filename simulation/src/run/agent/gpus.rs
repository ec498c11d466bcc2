//! The GPUs that a runner's command uses. In containers of the World, as on today's images, `NVIDIA_VISIBLE_DEVICES` is
//! `void`: they come with the grant (fact 57).

use spotsweep_protocol::claim::Task;
use spotsweep_world::ecs::CONTAINER;

use super::Agent;
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;

impl Simulation {
    /// The task whose GPUs are to be asked for: on an instance with GPUs each container sees the device files of all.
    pub(super) fn task(&self, agent: &Agent) -> Option<Task> {
        let has_gpus = !self.gpus_of_instance(agent).is_empty();
        has_gpus.then(|| Task { arn: agent.task.clone(), container: CONTAINER.to_owned() })
    }

    /// The command starts, and uses its GPUs until it has ended.
    pub(super) fn use_gpus(&mut self, agent: &Agent) {
        let takes_first = self.harness.cloud.injected_bug() == Some(InjectedBug::TakeFirstGpus);
        let first = || self.gpus_of_instance(agent).into_iter().take(agent.gpus.len()).collect();
        let gpus: Vec<String> = if takes_first { first() } else { agent.gpus.clone() };
        self.watch.uses(&agent.trial, &gpus);
    }

    fn gpus_of_instance(&self, agent: &Agent) -> Vec<String> {
        let world = self.harness.cloud.world();
        world.instance(&agent.instance).map(|found| found.gpu_ids().into_iter().collect()).unwrap_or_default()
    }
}
