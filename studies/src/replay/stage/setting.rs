//! Prepares a run: queue, job definition, dataset, the zones' changes, and the sweep.

use std::time::Duration;

use serde_json::json;
use spotsweep_control_plane::calls::SpotPriceRow;
use spotsweep_simulation::cloud::Charged;
use spotsweep_world::Timings;
use spotsweep_world::ebs::FileSystem;
use spotsweep_world::trace::Change;

use super::super::ledger::MIB_PER_GIB;
use super::super::{Plan, Policy, Study};

use super::{INSTANCE_TYPE, Scheduled, Stage};

impl Stage<'_> {
    pub(super) fn set_up(&mut self, workspace_gib: u32) -> Result<(), String> {
        let needs = json!([{ "type": "VCPU", "value": "8" }, { "type": "MEMORY", "value": "49152" },
            { "type": "GPU", "value": "1" }]);
        let container = json!({ "image": "train:1", "command": ["train"], "resourceRequirements": needs });
        let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
        let definition = serde_json::from_value(definition).map_err(|error| error.to_string())?;
        self.harness.cloud.world().register_job_definition(definition).map_err(|error| error.to_string())?;
        if self.policy.is_spot() {
            let zones = self.plan.zones.clone();
            let turns: Vec<Change> = self.trace.changes(1.0).filter(|turn| zones.contains(&turn.zone)).collect();
            turns.into_iter().for_each(|turn| self.at(turn.at, Scheduled::Turn(turn)));
        }
        match self.policy {
            Policy::Spotsweep => {
                self.harness.cloud.charge(self.prices());
                let snapshot = self.dataset(workspace_gib);
                let file = sweep_file(self.plan.trials, workspace_gib, &snapshot, self.study);
                let dropped = self.harness.put("replay.yaml", &file);
                self.send(&dropped);
                self.kernel.start_schedule(self.harness.now);
            }
            Policy::SeedScript => {
                let snapshot = self.dataset(workspace_gib);
                self.prepare_volumes(&snapshot)?;
                self.submit_all();
            }
            Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => self.submit_all(),
        }
        Ok(())
    }

    /// Returns the record's prices as EC2 and the price list return them.
    fn prices(&self) -> Charged {
        let mut spot = Vec::new();
        for zone in &self.plan.zones {
            spot.extend(self.trace.prices(zone).map(|(from, usd)| SpotPriceRow {
                instance_type: INSTANCE_TYPE.to_owned(),
                zone: zone.clone(),
                from: self.started + from,
                usd: usd.to_string(),
            }));
        }
        let on_demand = [(INSTANCE_TYPE.to_owned(), self.plan.parameters.on_demand_usd)].into();
        Charged { spot, on_demand }
    }

    /// Makes the snapshot from which every volume is first made.
    fn dataset(&mut self, size_gib: u32) -> String {
        let mib = (self.plan.parameters.dataset_gib * MIB_PER_GIB).ceil() as usize;
        let files = FileSystem::of([("datasets/all".to_owned(), vec![1; mib])]);
        self.harness.cloud.world().prepare_snapshot(size_gib, files)
    }

    fn submit_all(&mut self) {
        (0..self.plan.trials).for_each(|trial| self.at(Duration::ZERO, Scheduled::Submit(trial)));
    }
}

/// Returns the size for the dataset, two checkpoints (a new one is complete before the old one is deleted) and the file
/// system.
pub(in crate::replay) fn volume_gib(plan: &Plan) -> u32 {
    let model = &plan.parameters;
    ((model.dataset_gib + 2.0 * model.checkpoint_gib) * 1.05 + 1.0).ceil() as u32
}

/// Returns the model's times and rates in the World's units.
pub(super) fn timings(plan: &Plan, policy: Policy) -> Timings {
    let model = &plan.parameters;
    let lazy = match policy {
        Policy::Spotsweep => model.initialization_mib,
        Policy::SeedScript | Policy::S3Checkpoint | Policy::S3OnNotice | Policy::Restart | Policy::OnDemand => {
            model.lazy_mib
        }
    };
    let rate = |mib: f64| mib.round().max(1.0) as u64;
    Timings {
        boot: Duration::from_secs_f64(model.boot_seconds),
        image_pull: Duration::from_secs_f64(model.image_gib * MIB_PER_GIB / model.image_mib),
        snapshot_base: Duration::from_secs_f64(model.snapshot_seconds),
        snapshot_bytes_per_second: rate(model.snapshot_mib),
        initialization_bytes_per_second: rate(lazy),
        ..Timings::realistic()
    }
}

fn sweep_file(trials: u32, size_gib: u32, snapshot: &str, study: Option<&Study>) -> String {
    let settings = format!("spotsweep: {{attempts: 100, workspace: {{size: {size_gib}GiB, snapshot: {snapshot}}}}}\n");
    let Some(study) = study else {
        let trials: String = (0..trials).map(|trial| format!("  - {{a: {trial}}}\n")).collect();
        return format!("{settings}trials:\n{trials}");
    };
    let numbers: Vec<String> = (0..trials).map(|trial| trial.to_string()).collect();
    format!("{settings}{}method: grid\nparameters: {{a: {{values: [{}]}}}}\n", study.lines(), numbers.join(", "))
}
