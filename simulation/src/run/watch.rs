//! What the run records for the invariants and for measurements.

mod checkpoints;
mod data;
mod decisions;
mod records;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use spotsweep_control_plane::handle::HandleError;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::trial::Trial;
use spotsweep_records::workspace::{SWEEP_TAG, Stage, TRIAL_TAG, TrialRef};
use spotsweep_world::ebs::Volume;

use self::data::Fetches;
use self::decisions::Decided;
use self::records::Outcome;
use crate::calls::Call;
use crate::harness::Harness;
use crate::invocation::Invoked;

/// The `Name` tag of a volume that stays after its sweep has ended.
pub const BY_HAND: &str = "dl-datasets-checkpoints";

/// An attempt that went on with a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The index of the trial.
    pub trial: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The availability zone of its instance.
    pub zone: String,
    /// The completed steps at its start.
    pub step: u32,
    /// The seconds from the container's start until the workspace was mounted.
    pub waited_seconds: f64,
    /// Whether the workspace came from another zone.
    pub moved: bool,
}

/// A violation that is recorded when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Two attempts have one workspace mounted, or an attempt takes a volume that is not on its instance.
    Versioned,
    /// An attempt has mounted the volume of another trial.
    Foreign,
    /// Two trials use one GPU.
    Shared,
    /// An attempt began at a step before the sealed one.
    Lost,
    /// An attempt went on from bytes that do not belong to one save.
    Mixed,
    /// A training did not save at the stop signal, although there was time.
    Unsaved,
    /// A complete checkpoint was quarantined.
    PutAside,
    /// A decision was illegal, or an invocation took too many steps.
    Illegal,
    /// A function made a call that its role does not allow.
    Beyond,
    /// One reclaim cost a trial several attempts.
    Burned,
    /// A workspace was attached to an instance that was known to be under notice.
    Taken,
    /// A permanent refusal cost another attempt.
    SentAway,
    /// Several attempts began on an instance that was known to be unfit.
    Eaten,
    /// A trial failed on an instance that fails each training, while other trials trained elsewhere.
    Blamed,
    /// A forged request was accepted.
    Forged,
    /// The record of a trial changed after its end.
    Changed,
    /// A decision about a trial, or its basis, changed.
    Undecided,
    /// Two trials got the same parameters.
    Doubled,
    /// A trial was stopped although its comparison does not stop it.
    Unfair,
    /// An attempt trained although its trial is stopped early.
    Revived,
    /// An attempt that knew of its end still had its workspace mounted at that time.
    Late,
    /// An attempt repeated a request after its patience was over.
    Insistent,
    /// An attempt left its workspace without a last seal, although there was time for it.
    Unsealed,
    /// A training had a data set that was incomplete, untrusted or not locked by its runner.
    Unready,
    /// A data set was written or removed while an attempt used it.
    Disturbed,
    /// Two attempts on an instance fetched one data set at the same time.
    FetchedTwice,
    /// Data sets took up more than the disk has.
    Overfull,
}

const DELETIONS: [&str; 2] = ["DeleteVolume", "DeleteSnapshot"];

/// The calls of one deletion: the deletion itself, and a read and a write of its trial.
const CALLS_OF_A_DELETION: usize = 3;

/// The records of a run.
#[derive(Debug, Default)]
pub struct Watch {
    /// Every attempt that mounted its workspace.
    pub resumes: Vec<Resume>,
    /// The calls of all functions.
    pub calls: u64,
    /// The most calls of one invocation, for each function.
    pub most_calls: BTreeMap<String, usize>,
    /// The same without deletions, because their number depends on how long they were refused.
    pub most_other_calls: BTreeMap<String, usize>,
    /// How often a runner had to wait for its workspace.
    pub waits: u64,
    /// How often a runner has reported how far it has fetched its data sets.
    pub fetches: u64,
    /// The number of invocations of all functions.
    pub invocations: u64,
    /// Which function made which calls; `None` if this is not recorded.
    pub used: Option<BTreeSet<(String, Call)>>,
    /// The earliest step from which each trial's next attempt may start.
    sealed: BTreeMap<TrialRef, u32>,
    /// What `sealed` had for each trial before its last rollback of a complete checkpoint.
    before_rollback: BTreeMap<TrialRef, u32>,
    /// The completed steps of each trial that has ended by itself.
    finished: BTreeMap<TrialRef, u32>,
    /// The volumes of each trial that a runner has verified.
    verified: BTreeMap<TrialRef, BTreeSet<String>>,
    /// The job and attempt that has each trial's workspace mounted.
    holders: BTreeMap<TrialRef, (String, u32)>,
    /// The trial that uses each GPU.
    gpus: BTreeMap<String, TrialRef>,
    /// Instances under notice on which an attempt of the trial has begun.
    under_notice: BTreeSet<(TrialRef, String)>,
    /// Instances that a trial's runner has reported to be under notice.
    warned: BTreeSet<(TrialRef, String)>,
    /// The instance to which each trial's workspace is being attached.
    attaching: BTreeMap<TrialRef, String>,
    /// Instances that an attempt has left as unfit, with the number of attempts that have begun there since.
    unfit: BTreeMap<String, usize>,
    /// Instances on which a trial has trained, with its sweep.
    trained_on: BTreeSet<(SweepId, String)>,
    /// Trials whose newest checkpoint may be cut or mixed.
    in_doubt: BTreeSet<TrialRef>,
    /// Whether that is so of the trial from whose kept workspace a later sweep goes on.
    is_start_in_doubt: bool,
    /// Trials that have failed for good on an instance that fails each training.
    failed_alone: BTreeSet<TrialRef>,
    /// The outcome of each trial that has ended.
    ended: BTreeMap<TrialRef, Outcome>,
    /// The decisions about each trial that has reached a rung.
    decided: BTreeMap<TrialRef, Decided>,
    /// The parameters that each trial's runner was granted.
    granted: BTreeMap<TrialRef, Option<Map<String, Value>>>,
    /// Trials for which a runner has received the early stop.
    has_stop: BTreeSet<TrialRef>,
    data: Fetches,
    wrong: Option<(Seen, String)>,
}

impl Watch {
    /// Records an invocation. Only illegal decisions and calls outside of the role are violations; other failures are
    /// allowed.
    pub(super) fn invoked(&mut self, harness: &Harness, event: &Value, invoked: &Invoked) {
        if let Some(Err(error @ (HandleError::Illegal(_) | HandleError::Steps))) = &invoked.answer {
            self.is_wrong(Seen::Illegal, chain(error));
        }
        if let Some(limit) = &invoked.exceeded {
            self.is_wrong(Seen::Beyond, limit.clone());
        }
        self.attachments(harness);
        self.records(harness);
        self.decisions(harness);
        self.invocations += 1;
        self.calls += invoked.calls.len() as u64;
        let function = harness.permissions.function_of(event).unwrap_or("no function");
        let deletions = invoked.calls.iter().filter(|call| DELETIONS.contains(&call.action)).count();
        let others = invoked.calls.len().saturating_sub(deletions * CALLS_OF_A_DELETION);
        for (all, calls) in [(&mut self.most_calls, invoked.calls.len()), (&mut self.most_other_calls, others)] {
            let most = all.entry(function.to_owned()).or_default();
            *most = calls.max(*most);
        }
        for call in &invoked.calls {
            if let Some(lack) = harness.permissions.lacks(function, call) {
                self.is_wrong(Seen::Beyond, lack);
            }
            if let Some(used) = &mut self.used {
                used.insert((function.to_owned(), Call { on: None, ..call.clone() }));
            }
        }
    }

    /// Invariant 2: at most one attempt has a trial's workspace mounted.
    pub(super) fn mounted(&mut self, trial: &TrialRef, job: &str, attempt: u32) {
        if let Some(held) = self.holders.insert(trial.clone(), (job.to_owned(), attempt)) {
            self.is_wrong(Seen::Versioned, format!("{trial}: attempt {attempt} mounts what {held:?} has mounted"));
        }
    }

    /// A trial's attempt takes a volume. The volume must have this trial's tags or be adopted.
    pub(super) fn takes(&mut self, trial: &TrialRef, volume: &Volume) {
        let tag = |name: &str| volume.tags.0.get(name).map(String::as_str);
        let is_own = tag(SWEEP_TAG) == Some(trial.sweep.as_str()) && tag(TRIAL_TAG) == Some(&trial.index.to_string());
        if !is_own && tag("Name") != Some(BY_HAND) {
            self.is_wrong(Seen::Foreign, format!("{trial} takes {}, which has the tags {:?}", volume.id, volume.tags));
        }
    }

    /// The trial's command starts on these GPUs.
    pub(super) fn uses(&mut self, trial: &TrialRef, gpus: &[String]) {
        for gpu in gpus {
            if let Some(other) = self.gpus.insert(gpu.clone(), trial.clone()).filter(|other| other != trial) {
                self.is_wrong(Seen::Shared, format!("{trial} uses {gpu}, which {other} uses"));
            }
        }
    }

    /// An attempt of the trial has ended.
    pub(super) fn stopped(&mut self, trial: &TrialRef) {
        self.holders.remove(trial);
        self.gpus.retain(|_, user| user != trial);
    }

    /// An attempt begins on an instance under notice.
    pub(super) fn began_under_notice(&mut self, trial: &TrialRef, instance: &str) {
        if !self.under_notice.insert((trial.clone(), instance.to_owned())) {
            self.is_wrong(
                Seen::Burned,
                format!("{trial}: a second attempt begins on {instance}, which is under notice"),
            );
        }
    }

    /// An attempt that waits for the end of its instance is stopped, so the next one may begin there.
    pub(super) fn leaves_under_notice(&mut self, trial: &TrialRef, instance: &str) {
        self.under_notice.remove(&(trial.clone(), instance.to_owned()));
    }

    /// An attempt leaves an unfit instance.
    pub(super) fn left_unfit(&mut self, instance: &str) {
        self.unfit.entry(instance.to_owned()).or_default();
    }

    /// A container begins on an instance. One more is allowed, because two trials share an instance and the second may
    /// have been on its way there.
    pub(super) fn begins(&mut self, instance: &str) {
        let Some(begun) = self.unfit.get_mut(instance) else { return };
        *begun += 1;
        if *begun > 1 {
            let what = format!("{begun} attempts have begun on {instance} since one has left it as it cannot train");
            self.is_wrong(Seen::Eaten, what);
        }
    }

    /// A trial of the sweep has trained on an instance, and the control plane knows that.
    pub(super) fn trained_on(&mut self, trial: &TrialRef, instance: &str) {
        self.trained_on.insert((trial.sweep.clone(), instance.to_owned()));
    }

    /// A trial has failed for good on an instance that fails each training. If the control plane knows the instance, no
    /// other trial of the sweep may have trained elsewhere.
    pub(super) fn failed_for_good(&mut self, trial: &TrialRef, known: Option<&String>) {
        self.failed_alone.insert(trial.clone());
        // Data that has changed is the same on each instance.
        let Some(instance) = known.filter(|_| !self.has_lacked_data(trial)) else { return };
        let mut others = self.trained_on.iter().filter(|(sweep, other)| *sweep == trial.sweep && other != instance);
        if let Some((_, other)) = others.next() {
            let what = format!("{trial} failed on {instance}, while others trained on {other}");
            self.is_wrong(Seen::Blamed, what);
        }
    }

    /// Whether a trial has failed because of its instance, while no other instance could show that.
    pub(super) fn has_failed_alone(&self, trial: &TrialRef) -> bool {
        self.failed_alone.contains(trial)
    }

    /// An attempt must leave because its workspace cannot come.
    pub(super) fn sent_away(&mut self, trial: &TrialRef, reason: &str) {
        // If a volume was mounted, the control plane cannot exclude that it was trained on.
        if reason.contains("UnauthorizedOperation") && self.verified(trial).next().is_none() {
            self.is_wrong(Seen::SentAway, format!("{trial}: the attempt leaves for another to be refused: {reason}"));
        }
    }

    /// The control plane knows that the instance is under notice.
    pub(super) fn warned(&mut self, trial: &TrialRef, instance: &str) {
        self.warned.insert((trial.clone(), instance.to_owned()));
    }

    /// Checks, after an invocation, that no new attachment is to an instance that was known to be under notice.
    fn attachments(&mut self, harness: &Harness) {
        let mut attaching = BTreeMap::new();
        harness.store.each_trial(|trial| {
            if let Some(Stage::Attaching { to, .. }) = trial.workspace.as_ref().map(|workspace| &workspace.stage) {
                attaching.insert(trial.of(), to.instance.clone());
            }
        });
        for (trial, instance) in &attaching {
            let is_new = self.attaching.get(trial) != Some(instance);
            if is_new && self.warned.contains(&(trial.clone(), instance.clone())) {
                self.is_wrong(Seen::Taken, format!("{trial}: attached to {instance}, which is under notice"));
            }
        }
        self.attaching = attaching;
    }

    /// A runner has received its trial's parameters.
    pub(super) fn granted(&mut self, trial: &TrialRef, suggested: Option<&Map<String, Value>>) {
        let before = self.granted.entry(trial.clone()).or_insert_with(|| suggested.cloned());
        if before.as_ref() != suggested {
            let what = format!("{trial}: one attempt had {before:?}, another has {suggested:?}");
            self.is_wrong(Seen::Undecided, what);
        }
    }

    /// A runner has received the answer that its trial is stopped early.
    pub(super) fn has_stop(&mut self, trial: &TrialRef) {
        self.has_stop.insert(trial.clone());
    }

    /// A training begins, or has trained another epoch.
    pub(super) fn trains(&mut self, trial: &TrialRef, attempt: u32) {
        if self.has_stop.contains(trial) {
            self.is_wrong(Seen::Revived, format!("{trial}: attempt {attempt} trains, though it is stopped early"));
        }
    }

    /// The runner has verified the volume and is about to report that.
    pub(super) fn verify(&mut self, trial: &TrialRef, volume: &str) {
        self.verified.entry(trial.clone()).or_default().insert(volume.to_owned());
    }

    pub(super) fn resumed(&mut self, trial: &TrialRef, attempt: u32, zone: &str, step: u32, waited: f64) {
        let sealed = self.sealed(trial);
        if step < sealed {
            self.is_wrong(Seen::Lost, format!("{trial}: attempt {attempt} starts from step {step}, not {sealed}"));
        }
        // It trains from there, so no later undo goes back before this.
        self.before_rollback.remove(trial);
        let before = self.resumes.iter().rev().find(|resume| resume.trial == trial.index);
        let moved = before.is_some_and(|before| before.zone != zone);
        let zone = zone.to_owned();
        self.resumes.push(Resume { trial: trial.index, attempt, zone, step, waited_seconds: waited, moved });
    }

    /// Records a violation. Only the first one counts.
    pub(super) fn is_wrong(&mut self, seen: Seen, what: String) {
        self.wrong.get_or_insert((seen, what));
    }

    /// Returns an error if this violation was recorded.
    pub(super) fn seen(&self, wanted: Seen) -> Result<(), String> {
        match &self.wrong {
            Some((seen, what)) if *seen == wanted => Err(what.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// The earliest step from which the trial's next attempt may start.
    pub(super) fn sealed(&self, trial: &TrialRef) -> u32 {
        self.sealed.get(trial).copied().unwrap_or(0)
    }

    /// The volumes of the trial that a runner has verified.
    pub(super) fn verified(&self, trial: &TrialRef) -> impl Iterator<Item = &String> {
        self.verified.get(trial).into_iter().flatten()
    }

    /// The trials that are not done, for an error message.
    pub(super) fn open(&self, harness: &Harness) -> String {
        let (sweeps, trials) = harness.store.state();
        let open = trials.iter().filter(|trial| !trial.is_done());
        let show = |trial: &Trial| format!("{:?} after {}: {:#?}", trial.status, trial.ended, trial.workspace);
        let open: Vec<String> = open.map(show).collect();
        format!("sweep {:?}, trials {}", sweeps.iter().map(|sweep| &sweep.stage).collect::<Vec<_>>(), open.join("\n"))
    }
}
