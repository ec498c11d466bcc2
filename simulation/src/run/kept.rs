//! Workspaces that are kept after their trials have ended: they have the newest checkpoints and are deleted after the
//! keep time. Also the uploaded checkpoints of successful trials.

use std::collections::BTreeMap;
use std::time::Duration;

use spotsweep_protocol::claim::COLLECTED;
use spotsweep_records::sweep::Stage as Sweeps;
use spotsweep_records::sweep::continuation::Listed;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::{OPERATION_TAG, SWEEP_TAG, Stage, TRIAL_TAG, TrialRef, Workspace};
use spotsweep_world::ebs::Leftovers;

use super::training::load::newest_whole;
use super::{BY_HAND, STALLED, Scheduled, Simulation, ZONES};

/// How long the second sweep waits for capacity. It is longer than any workspace of a seed is kept.
const WAITS: Duration = Duration::from_secs(5400);

impl Simulation {
    /// Runs a second sweep if the seed asks for one. It goes on from the kept workspace or the uploaded checkpoint of
    /// the first trial.
    pub(super) fn go_on_from_what_is_kept(&mut self) -> Result<(), String> {
        let mut kept = None;
        self.harness.store.each_trial(|trial| {
            let of_trial = trial.workspace.as_ref().and_then(Workspace::kept).and_then(|kept| kept.snapshot);
            kept = kept.take().or(of_trial.filter(|_| trial.index == 0).map(str::to_owned));
        });
        let start = match kept.filter(|_| self.continues) {
            Some(snapshot) => format!("workspace: {{snapshots: [{snapshot}], keep_failed: 0}}"),
            None => match self.collected().filter(|_| self.restores) {
                Some(trial) => format!("checkpoints_of: [{trial}], workspace: {{keep_failed: 0}}"),
                None => return Ok(()),
            },
        };
        let data = self.data.map(|data| format!(", {}", data.settings())).unwrap_or_default();
        let file = format!("trials: [{{a: 0}}]\nspotsweep: {{{start}{}{data}}}\n", self.stalled());
        self.watch.goes_on_from_first();
        self.drop_file("again.yaml", &file);
        let now = self.harness.now;
        for zone in ZONES {
            self.harness.cloud.world().set_zone_capacity(zone, Some(0), now);
            self.at(WAITS, Scheduled::Reopen(zone.to_owned()));
        }
        self.run_until(|run| {
            let mut ended = Vec::new();
            run.harness.store.each_sweep(|sweep| ended.push(matches!(sweep.stage, Sweeps::Settled | Sweeps::Rejected)));
            ended.len() == run.sweeps + 1 && ended.into_iter().all(|has_ended| has_ended)
        })?;
        self.check(|invariant| invariant.at_the_end)
    }

    /// The setting of a sweep whose trainings may hang.
    pub(super) fn stalled(&self) -> String {
        if self.chaos.hangs > 0.0 { format!(", stalled: {STALLED}") } else { String::new() }
    }

    /// The first trial, if its newest checkpoint is in the bucket.
    pub fn collected(&self) -> Option<TrialRef> {
        let mut first = None;
        self.harness.store.each_trial(|trial| first = first.take().or((trial.index == 0).then(|| trial.of())));
        first.filter(|of| self.harness.cloud.get(&format!("{}{COLLECTED}", of.sweep.trial_prefix(0))).is_some())
    }

    /// Checks that each snapshot that an open sweep names exists.
    pub(super) fn named_are_there(&self) -> Result<(), String> {
        let world = self.harness.cloud.world();
        let mut lost = None;
        self.harness.store.each_sweep(|sweep| {
            let is_open = match sweep.stage {
                Sweeps::Submitting { .. } | Sweeps::Announcing | Sweeps::Running | Sweeps::Settling => true,
                Sweeps::Reading
                | Sweeps::Keeping { .. }
                | Sweeps::Withdrawing { .. }
                | Sweeps::Settled
                | Sweeps::Rejected => false,
            };
            let key = Listed::Snapshots.key(&sweep.id);
            let listed = self.harness.cloud.get(&key).filter(|_| is_open).unwrap_or_default();
            let named: Vec<String> = serde_json::from_slice(&listed).unwrap_or_default();
            lost = lost.take().or(named.into_iter().find(|id| world.snapshot_of(id).is_none()));
        });
        lost.map_or(Ok(()), |snapshot| Err(format!("{snapshot} is deleted, and a sweep that is open names it")))
    }

    /// Runs until every kept workspace is deleted.
    pub(super) fn outlast_what_is_kept(&mut self) -> Result<(), String> {
        let mut held = Ok(());
        self.harness.store.each_trial(|trial| {
            if held.is_ok() {
                held = self.is_kept_whole(trial);
            }
        });
        held?;
        self.run_until(|run| {
            let mut is_gone = true;
            run.harness.store.each_trial(|trial| is_gone &= trial.workspace.as_ref().is_none_or(Workspace::is_gone));
            is_gone
        })?;
        let left = self.left_over();
        if left.is_empty() { Ok(()) } else { Err(format!("after all that was kept has gone: {left:?}")) }
    }

    /// The resources that exist and that no trial keeps.
    pub(super) fn left_over(&self) -> Leftovers {
        let mut left = self.harness.cloud.world().leftovers();
        left.volumes.retain(|volume| volume.tags.get("Name").map(String::as_str) != Some(BY_HAND));
        let (sweeps, _) = self.harness.store.state();
        self.harness.store.each_trial(|trial| {
            let plan = sweeps.iter().find(|sweep| sweep.id == trial.sweep).and_then(|sweep| sweep.plan.as_ref());
            let keep =
                plan.and_then(|plan| plan.workspace.as_ref()).map(|workspace| workspace.keep).unwrap_or_default();
            let Some(workspace) = &trial.workspace else { return };
            // The keep time may have ended at the moment at which the sweep settled.
            let has_kept = workspace.stage == Stage::Disposing && trial.keeps_until(keep, self.harness.now).is_some();
            if workspace.kept().is_none() && !has_kept {
                return;
            }
            let is_held =
                |id: &String| workspace.resources().any(|held| held == id) || workspace.pending_deletes.contains(id);
            // The snapshot's id is unknown until `CreateSnapshot` has answered or the tag is looked up.
            let of = trial.of();
            let is_asked = |tags: &BTreeMap<String, String>| {
                let tag = |name: &str| tags.get(name).map(String::as_str).unwrap_or_default();
                let operation = tag(OPERATION_TAG).rsplit('/').next().and_then(|number| number.parse().ok());
                tag(SWEEP_TAG) == of.sweep.as_str()
                    && tag(TRIAL_TAG) == of.index.to_string()
                    && operation.is_some_and(|operation: u32| workspace.snapshots.contains_key(&operation))
            };
            left.volumes.retain(|volume| !is_held(&volume.id) && workspace.unanswered.is_empty());
            left.attachments.retain(|attachment| !is_held(&attachment.volume));
            left.snapshots.retain(|snapshot| !is_held(&snapshot.id) && !is_asked(&snapshot.tags));
        });
        left
    }

    /// Checks that a kept snapshot holds what was sealed last, because a retry starts from it.
    fn is_kept_whole(&self, trial: &Trial) -> Result<(), String> {
        let snapshot = trial.workspace.as_ref().and_then(Workspace::kept).and_then(|kept| kept.snapshot);
        let Some(snapshot) = snapshot else { return Ok(()) };
        let files = self.harness.cloud.world().files_of_snapshot(snapshot);
        let (held, sealed) =
            (newest_whole(&self.chaos.habits, trial.index, files.written(), ""), self.watch.sealed(&trial.of()));
        match held.unwrap_or(0) < sealed {
            true => Err(format!("{}: {snapshot} holds step {held:?}, and {sealed} was sealed", trial.of())),
            false => Ok(()),
        }
    }
}
