//! Placement and scaling: on which instance a runnable job is placed, and when instances are launched and ended.
//!
//! Queues are served by priority, and each one first in, first out. A job that has to wait holds back the jobs behind
//! it, and reserves its compute environments from queues of lower priority. A submission cannot choose a zone (fact
//! 21): instances are spread over the subnets' zones that have capacity.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::catalog::Resources;
use super::ids::RunRef;
use super::instance::{Instance, InstanceState};
use super::{Timer, World};

/// The free resources of booting instances.
type Booting = BTreeMap<String, Resources>;

impl World {
    /// Places all jobs that can be placed, and requests instances for the others.
    pub(super) fn schedule(&mut self) {
        self.keep_minimum();
        let mut queues: Vec<(Reverse<i32>, String)> =
            self.batch.queues.iter().map(|(name, queue)| (Reverse(queue.priority), name.clone())).collect();
        queues.sort();
        let mut booting: Booting = self
            .instances
            .values()
            .filter(|instance| instance.state == InstanceState::Pending)
            .map(|instance| (instance.id.clone(), instance.free))
            .collect();
        let mut reserved = BTreeSet::new();
        for (_, queue) in queues {
            self.serve(&queue, &mut booting, &mut reserved);
        }
    }

    fn serve(&mut self, name: &str, booting: &mut Booting, reserved: &mut BTreeSet<String>) {
        let Some(queue) = self.batch.queues.get(name) else { return };
        let environments: Vec<String> = queue
            .environments
            .iter()
            .filter(|environment| !reserved.contains(*environment))
            .filter(|environment| self.batch.environments.get(*environment).is_some_and(|e| e.enabled))
            .cloned()
            .collect();
        while let Some(run) = self.head(name) {
            let Some(instance) = self.host_for(run, &environments) else { break };
            if let Some(queue) = self.batch.queues.get_mut(name) {
                queue.runnable.pop_front();
            }
            self.place(run, &instance);
        }
        let waiting = self.batch.queues.get(name).is_some_and(|queue| !queue.runnable.is_empty());
        if waiting {
            self.scale_out(name, &environments, booting);
            reserved.extend(environments);
        }
    }

    fn head(&self, queue: &str) -> Option<RunRef> {
        self.batch.queues.get(queue)?.runnable.front().copied()
    }

    /// Returns the fullest running instance that has enough room, from the first environment that has one.
    fn host_for(&self, run: RunRef, environments: &[String]) -> Option<String> {
        let wanted = self.batch.wanted(run);
        environments.iter().find_map(|environment| {
            self.instances
                .values()
                .filter(|instance| instance.environment == *environment && instance.accepts(&wanted))
                .filter(|instance| !self.is_draining(instance))
                .min_by_key(|instance| (instance.free.vcpus, instance.launched_at))
                .map(|instance| instance.id.clone())
        })
    }

    /// Requests instances for the waiting jobs, in order, until there is no room for one. Booting instances count as
    /// room.
    fn scale_out(&mut self, queue: &str, environments: &[String], booting: &mut Booting) {
        let mut position = 0;
        while let Some(run) = self.batch.queues.get(queue).and_then(|queue| queue.runnable.get(position)).copied() {
            let wanted = self.batch.wanted(run);
            let covered = environments.iter().any(|environment| {
                self.fits_booting(environment, &wanted, booting) || self.launch_for(environment, &wanted, booting)
            });
            if !covered {
                return;
            }
            position += 1;
        }
    }

    fn fits_booting(&self, environment: &str, wanted: &Resources, booting: &mut Booting) -> bool {
        let room = booting.iter_mut().find(|(id, free)| {
            free.fits(wanted) && self.instances.get(*id).is_some_and(|i| i.environment == environment)
        });
        match room {
            Some((_, free)) => {
                free.take(wanted);
                true
            }
            None => false,
        }
    }

    /// Launches the smallest of the environment's types that holds the job, within the environment's limit.
    fn launch_for(&mut self, name: &str, wanted: &Resources, booting: &mut Booting) -> bool {
        let Some(environment) = self.batch.environments.get(name) else { return false };
        let left = environment.max_vcpus.saturating_sub(self.vcpus_of(name));
        let left = if environment.spot { left.min(self.spot_vcpus_left()) } else { left };
        let fitting = environment
            .instance_types
            .iter()
            .filter(|(_, holds)| holds.fits(wanted) && holds.vcpus <= left)
            .min_by_key(|(_, holds)| (holds.vcpus, holds.gpus, holds.memory_mib));
        let Some((instance_type, holds)) = fitting.cloned() else { return false };
        let Some((id, mut free)) = self.launch(name, &instance_type, holds) else { return false };
        free.take(wanted);
        booting.insert(id, free);
        true
    }

    fn keep_minimum(&mut self) {
        let names: Vec<String> = self.batch.environments.keys().cloned().collect();
        for name in names {
            while let Some((instance_type, holds)) = self.missing_for_minimum(&name) {
                if self.launch(&name, &instance_type, holds).is_none() {
                    break;
                }
            }
        }
    }

    fn missing_for_minimum(&self, name: &str) -> Option<(String, Resources)> {
        let environment = self.batch.environments.get(name).filter(|e| e.enabled)?;
        let vcpus = self.vcpus_of(name);
        let (low, left) = (vcpus < environment.min_vcpus, environment.max_vcpus.saturating_sub(vcpus));
        let fitting = environment.instance_types.iter().filter(|(_, holds)| low && holds.vcpus <= left);
        fitting.min_by_key(|(_, holds)| holds.vcpus).cloned()
    }

    /// Returns the unused vCPUs of the account's Spot quota.
    fn spot_vcpus_left(&self) -> u32 {
        let live = self.instances.values().filter(|instance| instance.spot && instance.state.is_live());
        let used: u32 = live.map(|instance| instance.total.vcpus).sum();
        self.trouble.spot_vcpus.map_or(u32::MAX, |most| most.saturating_sub(used))
    }

    fn vcpus_of(&self, environment: &str) -> u32 {
        let live = self.instances.values().filter(|i| i.environment == environment && i.state.is_live());
        live.map(|instance| instance.total.vcpus).sum()
    }

    /// Whether an idle instance can be ended without falling below the environment's minimum.
    pub(super) fn may_scale_in(&self, instance: &Instance) -> bool {
        let minimum = self.batch.environments.get(&instance.environment).map_or(0, |e| e.min_vcpus);
        self.vcpus_of(&instance.environment) >= minimum + instance.total.vcpus
    }

    /// Returns the subnet whose zone has capacity and the fewest of this environment's instances.
    fn choose_subnet(&self, environment: &str) -> Option<(String, String)> {
        let subnets = &self.batch.environments.get(environment)?.subnets;
        let live_in = |zone: &str, of: Option<&str>| {
            let live = self.instances.values().filter(|i| i.zone == zone && i.state.is_live());
            live.filter(|i| of.is_none_or(|environment| i.environment == environment)).count()
        };
        subnets
            .iter()
            .filter(|(_, zone)| {
                let limit = self.zone_capacity.get(zone);
                limit.is_none_or(|limit| live_in(zone, None) < *limit as usize)
            })
            .min_by_key(|(_, zone)| live_in(zone, Some(environment)))
            .cloned()
    }

    fn launch(&mut self, name: &str, instance_type: &str, holds: Resources) -> Option<(String, Resources)> {
        let (subnet, zone) = self.choose_subnet(name)?;
        let id = format!("i-{}", self.ids.hex(17));
        let container_instance = self.ids.hex(32);
        let environment = self.batch.environments.get(name)?;
        let cluster = environment.cluster.clone();
        let mut tags = environment.instance_tags.clone();
        tags.push(("AWSBatchServiceTag".into(), "batch".into()));
        let instance = Instance {
            id: id.clone(),
            environment: name.to_owned(),
            zone,
            subnet,
            instance_type: instance_type.to_owned(),
            state: InstanceState::Pending,
            spot: environment.spot,
            launched_at: self.now,
            interruption: None,
            rebalance: None,
            defect: self.trouble.next_defect(),
            drained: false,
            disconnected: false,
            impaired: false,
            tags,
            container_instance_arn: self.arn("ecs", &format!("container-instance/{cluster}/{container_instance}")),
            state_reason: None,
            transition_reason: String::new(),
            total: holds,
            free: holds,
            free_gpus: Instance::gpus(&id, holds.gpus),
            runs: BTreeSet::new(),
            idle_since: None,
            images: BTreeSet::new(),
        };
        self.instances.insert(id.clone(), instance);
        self.emit_instance_state(&id, InstanceState::Pending);
        let boot = self.starts.boot(&self.settings.timings);
        self.after(boot, Timer::Booted { instance: id.clone() });
        Some((id, holds))
    }
}
