//! The GPUs that a runner's command uses. In containers of the World, as on today's images, `NVIDIA_VISIBLE_DEVICES` is
//! `void`, so the GPUs come with the grant (fact 57).

use spotsweep_protocol::claim::Task;
use spotsweep_world::ecs::CONTAINER;

use super::Agent;
use crate::injected_bug::InjectedBug;
use crate::run::Simulation;

impl Simulation {
    /// The task whose GPUs the runner asks for, because on an instance with GPUs each container sees all device files.
    pub(super) fn task(&self, agent: &Agent) -> Option<Task> {
        let has_gpus = !self.gpus_of_instance(agent).is_empty();
        has_gpus.then(|| Task { arn: agent.container.task.clone(), container: CONTAINER.to_owned() })
    }

    /// The command starts and uses its GPUs until it ends.
    pub(super) fn use_gpus(&mut self, agent: &Agent) {
        let takes_first = self.harness.cloud.injected_bug() == Some(InjectedBug::TakeFirstGpus);
        let first = || self.gpus_of_instance(agent).into_iter().take(agent.gpus.len()).collect();
        let gpus: Vec<String> = if takes_first { first() } else { agent.gpus.clone() };
        self.watch.uses(&agent.container.trial, &gpus);
    }

    fn gpus_of_instance(&self, agent: &Agent) -> Vec<String> {
        let world = self.harness.cloud.world();
        world.instance(&agent.container.instance).map(|found| found.gpu_ids().into_iter().collect()).unwrap_or_default()
    }
}
