//! A sweep's stages, from the dropped file to the collected results.
//!
//! ```text
//! (absent)    --uploaded-----------------> Reading       ReadUpload
//! Reading     --read, problems-----------> Reading       WriteRejection
//! Reading     --read, fine---------------> Reading       CheckTarget, with an image RegisterImage, then StoreTrials
//! Reading     --rejection announced------> Rejected      none
//! Reading     --trials stored------------> Submitting{0} SubmitPart 0
//! Reading     --trials stored, continued-> Keeping{0}    none: the trials that are continued note the sweep
//! Keeping     --a page is noted----------> Keeping{n}    none
//! Keeping     --all are noted------------> Submitting{0} SubmitPart 0
//! Keeping     --one is not kept any more-> Keeping       WriteRejection
//! Keeping     --rejection announced------> Rejected      none
//! Submitting  --part submitted-----------> Submitting{n} SubmitPart n, while parts are left
//! Submitting  --last part submitted------> Announcing    WritePlan
//! Submitting  --refused, nothing runs----> Withdrawing   WriteRejection
//! Submitting  --refused, parts run-------> Withdrawing   TerminateJobs, then WriteRejection
//! Withdrawing --rejection announced------> Rejected      none
//! Announcing  --plan written-------------> Running       none (DescribeJobs and Announce when overdue)
//! Running     --every part ended---------> Settling      Announce
//! Settling    --results published--------> Settling      Announce, to people
//! Settling    --announced----------------> Settled       none
//! ```
//! The function `pending` of `decide/reconcile.rs` says what is done for a record past its due time. That is safe to
//! repeat: for `Submitting` it is FindPart, never SubmitPart (fact 1).

pub mod continuation;
pub mod instances;
pub mod notification;
pub mod pages;
mod preparation;
mod ranking;
pub mod spent;
pub mod target;
pub mod upload;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::stored::is_default;
use crate::sweep::instances::Instances;
use crate::sweep::pages::{Pages, is_usual, page_trials};
use crate::sweep::spent::Spent;
use crate::sweep::target::DataDisk;
use crate::sweep::upload::Upload;
use crate::trial::JobStatus;
use crate::workspace::WorkspacePlan;
pub use ranking::Ranking;
use spotsweep_protocol::claim::{Patterns, Preparation, WandbPlace};
use spotsweep_protocol::ids::{JobId, JobName, PART_TRIALS, Run, SweepId};
use spotsweep_protocol::metric::MetricPattern;
use spotsweep_protocol::rungs::{RungPlan, Unit};
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stall::StallRule;
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::{dollars, figure, noun_for};
use spotsweep_search::stop::Rule;
pub use spotsweep_sweep_file::Over;
use spotsweep_sweep_file::{Budget, Hidden, Repeats, SweepFile, Warning};

/// The record of one dropped file and its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The id, which is derived from the upload.
    pub id: SweepId,
    /// The dropped file's version.
    pub upload: Upload,
    /// The stage in the table at the head of this file.
    pub stage: Stage,
    /// The claim token, which each request of a runner must have. It is drawn once, at the first submission, so that
    /// each repetition of a submission has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_token: Option<Secret>,
    /// How often the present stage was redriven. The wait before the next time doubles with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub redriven: u32,
    /// The error of the newest failed try of the present stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What the sweep runs. It is known once the file was read and has no problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Which pages of the sweep's trials are stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pages: Pages,
    /// What the sweep has cost until its records were last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What a person should know before trusting the results, one sentence each, as of the last reading of the records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why no further attempt starts, once the sweep is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// What the attempts have shown about their instances.
    #[serde(default, skip_serializing_if = "Instances::is_empty")]
    pub instances: Instances,
}

/// A sweep's stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Stage {
    /// The file is being read, checked and expanded.
    Reading,
    /// The trials whose kept snapshots the sweep starts from note the sweep, so that these snapshots are not deleted.
    Keeping {
        /// The place of the next snapshot in the plan.
        next: u32,
    },
    /// The array jobs are being submitted one after the other.
    Submitting {
        /// Number of the next part, from 0.
        part: u32,
    },
    /// All parts are submitted, and the plan is being written next to the upload.
    Announcing,
    /// Trials run.
    Running,
    /// Every part has ended, and the results are being collected.
    Settling,
    /// Every trial is terminal and every result is in place.
    Settled,
    /// Batch refused a part, and the parts that were submitted are being terminated.
    Withdrawing {
        /// Batch's reason.
        refusal: String,
    },
    /// The rejection is written next to the upload.
    Rejected,
}

impl Stage {
    /// The stage's name, as stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Keeping { .. } => "keeping",
            Self::Submitting { .. } => "submitting",
            Self::Announcing => "announcing",
            Self::Running => "running",
            Self::Settling => "settling",
            Self::Settled => "settled",
            Self::Withdrawing { .. } => "withdrawing",
            Self::Rejected => "rejected",
        }
    }

    /// Whether the sweep is not submitted or rejected yet, so that its upload event may redrive it.
    pub fn is_upload(&self) -> bool {
        match self {
            Self::Reading
            | Self::Keeping { .. }
            | Self::Submitting { .. }
            | Self::Announcing
            | Self::Withdrawing { .. } => true,
            Self::Running | Self::Settling | Self::Settled | Self::Rejected => false,
        }
    }
}

/// What is run for a sweep. It has everything that a submission needs, so a submission can be repeated without the
/// file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Number of trials.
    pub trials: u32,
    /// Number of trials in a page.
    #[serde(default = "page_trials", skip_serializing_if = "is_usual")]
    pub page_trials: u32,
    /// Job queue: name or ARN.
    pub queue: String,
    /// Job definition with the revision that was active when the file was read.
    pub definition: String,
    /// Container image that takes the place of that of the job definition which the sweep or the deployment names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Attempts per trial. Batch makes up to ten of one job (fact 18). If more are allowed, the trial is submitted
    /// again.
    pub attempts: u8,
    /// Batch's attempt timeout in seconds, at least 60 (fact 18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// GPUs that a trial asks for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: u32,
    /// What is done about a stalled training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stalls: StallRule,
    /// The container's command, with its macros. The job definition's command is used where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// GPUs, vCPUs and memory that replace those of the job definition: Batch's `resourceRequirements`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, String>,
    /// The user's own tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What each trial's workspace is made of; absent where the trials have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspacePlan>,
    /// Whether each trial starts from the collected checkpoint of another one, which `starts.json` names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restores: bool,
    /// What the runner prepares before it starts the command.
    #[serde(default, rename = "code", skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Preparation>,
    /// Which files of a trial are collected.
    #[serde(default)]
    pub patterns: Patterns,
    /// The metric that ranks the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Ranking>,
    /// Whether each trial's parameters are suggested at its first claim.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suggests: bool,
    /// Which trials are repeats of one parameter set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// The value of that metric after which no further trial starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The rule of early stopping; absent where every trial runs to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stopping: Option<EarlyStopping>,
    /// Patterns that find metrics in the trainings' output.
    #[serde(default, skip_serializing_if = "<[MetricPattern]>::is_empty")]
    pub metrics: Box<[MetricPattern]>,
    /// The W&B project of the trials' runs.
    #[serde(default, skip_serializing_if = "WandbPlace::is_default")]
    pub wandb: WandbPlace,
    /// Limits after which no further attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether all trials start even if the first ones all fail at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub starts_all: bool,
    /// ARN of the SNS topic that gets the sweep's notifications for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Warnings of the sweep file for its author.
    #[serde(default, skip_serializing_if = "<[Warning]>::is_empty")]
    pub warnings: Box<[Warning]>,
    /// The places of the file that have credentials of URLs.
    #[serde(default, skip_serializing_if = "Hidden::is_empty")]
    pub hidden: Hidden,
    /// The array jobs, in the order of their trials.
    pub parts: Vec<Part>,
}

/// A sweep file without problems, before its submission.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The parsed file, which expands to the trials.
    pub file: Arc<SweepFile>,
    /// What the sweep will run.
    pub plan: Plan,
    /// The disks for its data sets by instance type, after the check of its target; empty where one of them is unknown.
    pub disks: Vec<DataDisk>,
}

/// One submitted job: an array of up to [`PART_TRIALS`] trials, or a plain job for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of trials in the job.
    pub trials: u32,
    /// The job's id, once SubmitJob has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The state in which the whole job ended; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<JobStatus>,
}

/// The rule by which trials are stopped early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlyStopping {
    /// The rungs, and how trials are compared at them.
    pub rule: Rule,
    /// The unit of the rungs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unit: Unit,
    /// The length of a full training in the same unit, from which the rungs were derived; absent where the rungs have
    /// no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

impl Plan {
    /// Divides trials into parts that are small enough for Batch.
    pub fn cut(trials: u32) -> Vec<Part> {
        let parts = trials.div_ceil(PART_TRIALS);
        let size = |part: u32| (trials - part * PART_TRIALS).min(PART_TRIALS);
        (0..parts).map(|part| Part { trials: size(part), job: None, ended: None }).collect()
    }

    /// Returns what a runner notes of the metric at which rungs; `None` where trials are not compared.
    pub fn rungs(&self) -> Option<RungPlan> {
        let (by, metric) = self.comparison()?;
        Some(RungPlan { unit: by.unit, steps: by.rule.rungs().to_vec(), maximize: metric.maximize })
    }

    /// Returns the rule and the metric by which trials are compared; `None` where they are not.
    pub fn comparison(&self) -> Option<(&EarlyStopping, &Ranking)> {
        self.early_stopping.as_ref().zip(self.metric.as_ref())
    }

    /// Returns the Batch job of a trial, if its part has been submitted.
    pub fn job_of(&self, index: u32) -> Option<JobId> {
        let part = self.part(index / PART_TRIALS)?;
        let child = (part.trials > 1).then_some(index % PART_TRIALS);
        Some(JobId { parent: part.job.clone()?, child })
    }

    /// Returns a part by its number, from 0.
    pub fn part(&self, part: u32) -> Option<&Part> {
        self.parts.get(usize::try_from(part).ok()?)
    }

    /// Whether every part has ended.
    pub fn ended(&self) -> bool {
        self.parts.iter().all(|part| part.ended.is_some())
    }

    /// Returns the ids of all jobs that were submitted so far.
    pub fn jobs(&self) -> Vec<String> {
        self.parts.iter().filter_map(|part| part.job.clone()).collect()
    }
}

impl Sweep {
    /// Makes the record of a sweep whose file is yet to be read.
    pub fn new(upload: Upload) -> Self {
        Self {
            id: upload.sweep(),
            upload,
            stage: Stage::Reading,
            claim_token: None,
            redriven: 0,
            failure: None,
            plan: None,
            pages: Pages::default(),
            spent: None,
            warnings: Vec::new(),
            stopped: None,
            instances: Instances::default(),
        }
    }

    /// Enters a stage, and forgets the redrives and the failure of the one before.
    pub fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.redriven = 0;
        self.failure = None;
    }

    /// The name of the job of one part.
    pub fn job_name(&self, part: u32) -> JobName {
        JobName { sweep: self.id.clone(), run: Run::Part(part) }
    }

    /// Returns why the sweep's budget is reached, if it is, by its cost or by the time since the upload.
    pub fn over_budget(&self, spent: Option<&Spent>, now: Timestamp) -> Option<String> {
        let budget = self.plan.as_ref()?.budget?;
        let hours = self.seconds_until(now) / 3600.0;
        let usd = spent.or(self.spent.as_ref()).map_or(0.0, |spent| spent.usd);
        match (budget.max_usd, budget.max_hours) {
            (Some(most), _) if usd >= most => Some(format!("its budget of {} is reached", dollars(most))),
            (_, Some(most)) if hours >= most => {
                Some(format!("its budget of {} {} is reached", figure(most), noun_for(most, "hour")))
            }
            (Some(_) | None, Some(_) | None) => None,
        }
    }

    /// Returns the seconds from the upload to `end`.
    pub fn seconds_until(&self, end: Timestamp) -> f64 {
        end.duration_since(self.upload.uploaded_at).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_batch_takes() {
        for (trials, sizes) in [(1, vec![1]), (2, vec![2]), (10_000, vec![10_000]), (10_001, vec![10_000, 1])] {
            let parts = Plan::cut(trials);
            assert_eq!(parts.iter().map(|part| part.trials).collect::<Vec<_>>(), sizes);
        }
        assert_eq!(Plan::cut(100_000).len(), 10);
    }
}
