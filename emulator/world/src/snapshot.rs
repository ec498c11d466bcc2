//! An overview of the World for people and tests: `GET /_emulator/state`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::World;

impl World {
    /// Returns instances, counts by zone and state, jobs by status (array children counted one by one, parents
    /// separately), waiting jobs by queue, existing volumes and snapshots, and API calls by action.
    pub fn snapshot(&self) -> Value {
        let mut zones: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for zone in &self.settings.zones {
            zones.entry(zone).or_default();
        }
        for instance in self.instances.values() {
            let states = zones.entry(&instance.zone).or_default();
            *states.entry(instance.state.as_str()).or_default() += 1;
        }
        let mut jobs: BTreeMap<&str, usize> = BTreeMap::new();
        let mut arrays: BTreeMap<&str, usize> = BTreeMap::new();
        for job in &self.batch.jobs {
            for run in &job.runs {
                *jobs.entry(run.progress.status.as_str()).or_default() += 1;
            }
            if let Some(parent) = &job.parent {
                *arrays.entry(parent.progress.status.as_str()).or_default() += 1;
            }
        }
        let queues: BTreeMap<_, _> =
            self.batch.queues.iter().map(|(name, queue)| (name, queue.runnable.len())).collect();
        json!({
            "now": self.now.to_string(),
            "zones": zones,
            "instances": self.instance_list(),
            "jobs": jobs,
            "arrays": arrays,
            "queues": queues,
            "leftovers": self.leftovers(),
            "calls": self.call_counts(),
        })
    }

    fn instance_list(&self) -> Vec<Value> {
        let shown = self.instances.values().map(|instance| {
            json!({
                "id": instance.id,
                "zone": instance.zone,
                "type": instance.instance_type,
                "state": instance.state.as_str(),
                "environment": instance.environment,
                "vcpus": instance.total.vcpus,
                "free_vcpus": instance.free.vcpus,
                "jobs": instance.runs.iter().map(|run| self.batch.run_id(*run)).collect::<Vec<_>>(),
                "interruption": instance.interruption.map(|at| at.to_string()),
            })
        });
        shown.collect()
    }
}
