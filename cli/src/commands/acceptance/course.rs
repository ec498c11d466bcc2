//! Follows a run from the dropped file to the settled sweep, and injects its interruptions.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;
use aws_sdk_s3::primitives::ByteStream;
use jiff::Timestamp;
use serde_json::Value;
use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::spent::Spent;
use spotsweep_records::sweep::upload::Given;
use spotsweep_records::sweep::{Stage, Sweep};
use spotsweep_records::trial::{JobStatus, Trial};
use tokio::time::{Instant, sleep};

use super::access::{self, Tried};
use super::chaos::{Chaos, Made, Progress as Experiment};
use super::estimate::Estimate;
use super::injection::{self, Injection, Kind, State};
use super::meter::Meter;
use super::own::Own;
use super::subject::{Seen, Subject};
use super::{remove, sweep};
use crate::dropped::{Answer, Dropped, rejected, upload_to};
use crate::out;
use crate::progress::{Figures, Progress};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::dollars;

/// Tag of a sweep's volumes and snapshots.
const SWEEP_TAG: &str = "tag:spotsweep:sweep";

/// What a run has seen so far.
#[derive(Debug)]
pub(super) struct Course<'a> {
    subject: &'a Subject,
    chaos: &'a Chaos<'a>,
    made: &'a Made,
    reader: Reader,
    pub(super) sweep: SweepId,
    pub(super) trials: Vec<Trial>,
    pub(super) own: Own,
    pub(super) injections: Vec<Injection>,
    estimate: Estimate,
    meter: Meter,
    pub(super) access: Option<Tried>,
    /// Errors of the run itself.
    pub(super) troubles: Vec<String>,
    progress: Progress,
}

impl<'a> Course<'a> {
    /// Drops the sweep file, and waits for the plan.
    pub(super) async fn begin(
        subject: &'a Subject,
        chaos: &'a Chaos<'a>,
        made: &'a Made,
        estimate: Estimate,
        max_usd: f64,
    ) -> Result<Self, Failure> {
        let file = sweep::file(subject.pace, &subject.queue, &subject.definition, subject.gpus, max_usd).to_string();
        let upload = upload_to(&subject.bucket, sweep::KEY.to_owned());
        let dropped = Dropped::put_body(
            spotsweep_aws::path_style_s3(&subject.target.config),
            upload,
            ByteStream::from(file.into_bytes()),
            Given::default(),
        )
        .await?;
        let plan = match dropped.answer().await? {
            Answer::Planned(plan) => plan,
            Answer::Rejected(rejection) => {
                let problems = rejected(&rejection).problems;
                return Err(Failure::new(format!("the sweep file was rejected: {problems:?}")));
            }
        };
        let sweep = plan.get("sweep").and_then(Value::as_str).and_then(SweepId::parse);
        let sweep = sweep.ok_or_else(|| Failure::new(format!("the plan names no sweep: {plan}")))?;
        out::note(format_args!("submitted s3://{}/{}: sweep {sweep}", subject.bucket, sweep::KEY));
        Ok(Self {
            subject,
            chaos,
            made,
            reader: Reader::new(&subject.target.config, subject.table.clone()),
            sweep,
            trials: Vec::new(),
            own: Own::default(),
            injections: injection::ALL.map(Injection::new).into(),
            estimate,
            meter: Meter::default(),
            access: None,
            troubles: Vec::new(),
            progress: Progress::new(u64::from(sweep::trials())),
        })
    }

    /// Follows the sweep until it has settled, and injects interruptions meanwhile. Errors in that are noted, because a
    /// run that has cost something is judged as far as it went. Fails if no instance has started, which has cost
    /// nothing.
    pub(super) async fn follow(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match self.turn().await {
                Ok(Stage::Settled) => return Ok(()),
                Ok(_open) => {}
                Err(failure) => self.note(&failure),
            }
            if self.meter.is_empty() && begun.elapsed() >= self.subject.pace.patience {
                return Err(self.no_instance());
            }
            if let Some(reason) = self.is_over(begun) {
                self.note(&Failure::new(format!("{reason}: the jobs are ended")));
                if let Err(failure) = self.end_jobs().await {
                    self.note(&failure);
                }
                return Ok(());
            }
            sleep(self.subject.pace.poll).await;
        }
    }

    /// Why the run must end, whatever its trials do.
    fn is_over(&self, begun: Instant) -> Option<String> {
        let (pace, most) = (self.subject.pace, self.estimate.most);
        if begun.elapsed() >= pace.deadline {
            return Some(format!("the sweep had not finished after {} minutes", pace.deadline.as_secs() / 60));
        }
        let used = self.meter.total_if_ended(Timestamp::now(), pace.idle);
        (used >= most).then(|| {
            let hours = most.as_secs_f64() / pace.hour.as_secs_f64();
            format!("the instances have used up their {hours:.1} hours, {}", dollars(self.estimate.most_usd))
        })
    }

    fn no_instance(&self) -> Failure {
        let Subject { queue, pace, .. } = self.subject;
        Failure::new(format!(
            "EC2 has started no instance of queue {queue} within {} s, so nothing was tried and no instance is billed. Look \
             for the reason: `aws batch describe-job-queues --job-queues {queue}`, the quota of Spot vCPUs, the role \
             `aws iam get-role --role-name AWSServiceRoleForEC2Spot`, and docs/operations.md, \"A trial does not start\". \
             Without any of these EC2 has no Spot capacity just now: try again later, or add InstanceTypes",
            pace.patience.as_secs()
        ))
    }

    async fn end_jobs(&self) -> Result<(), Failure> {
        let record = self.reader.sweep(&self.sweep).await;
        let record = record.context(|| format!("cannot read the table {}", self.subject.table))?;
        match record {
            Some(record) => remove::end_jobs(self.subject, &self.reader, record).await,
            None => Ok(()),
        }
    }

    /// Looks at the sweep once, and does what follows from it.
    async fn turn(&mut self) -> Result<Stage, Failure> {
        let sweep = self.look().await?;
        self.progress.show(&Figures::counts(sweep::trials().into(), &self.trials));
        let instances = self.subject.instances().await?;
        self.meter.enter(&instances, Timestamp::now());
        if sweep.stage != Stage::Settled {
            // An error here must not delay an injection.
            if let Err(failure) = self.try_credentials(&sweep).await {
                self.note(&failure);
            }
            self.inject(&instances).await;
        }
        Ok(sweep.stage)
    }

    /// Notes an error for the page. The same error is noted once, because each look may meet it again.
    fn note(&mut self, failure: &Failure) {
        let text = failure.to_string().replace("\n", ";");
        let what = |text: &str| text.split(';').next().map(str::to_owned);
        if self.troubles.iter().all(|known| what(known) != what(&text)) {
            self.progress.say(&text);
            self.troubles.push(text);
        }
    }

    /// Reads the records, and notes which resources belong to the run.
    async fn look(&mut self) -> Result<Sweep, Failure> {
        let cannot_read = || format!("cannot read the table {}", self.subject.table);
        let record = self.reader.sweep(&self.sweep).await.context(cannot_read)?;
        let record = record.ok_or_else(|| Failure::new(format!("sweep {} is gone from the table", self.sweep)))?;
        self.trials = self.reader.trials(&self.sweep).await.context(cannot_read)?;
        let parts = record.plan.iter().flat_map(|plan| &plan.parts);
        self.own.jobs.extend(parts.filter_map(|part| part.job.clone()));
        for trial in &self.trials {
            self.own.jobs.insert(trial.job.parent.clone());
            self.own.resources.extend(trial.attempts.values().filter_map(|attempt| attempt.instance.clone()));
        }
        let held = self.held().await?;
        self.own.resources.extend(held);
        Ok(record)
    }

    /// Volumes and snapshots with the sweep's tag.
    pub(super) async fn held(&self) -> Result<Vec<String>, Failure> {
        let ec2 = self.subject.ec2();
        let of_sweep = || Filter::builder().name(SWEEP_TAG).values(self.sweep.as_str()).build();
        let volumes = ec2.describe_volumes().filters(of_sweep()).send().await;
        let volumes = volumes.context(|| "cannot look for volumes (ec2:DescribeVolumes)")?;
        let snapshots = ec2.describe_snapshots().filters(of_sweep()).send().await;
        let snapshots = snapshots.context(|| "cannot look for snapshots (ec2:DescribeSnapshots)")?;
        let volumes = volumes.volumes().iter().filter_map(|volume| volume.volume_id());
        let snapshots = snapshots.snapshots().iter().filter_map(|snapshot| snapshot.snapshot_id());
        Ok(volumes.chain(snapshots).map(str::to_owned).collect())
    }

    /// Tries the credentials of the first trial that trains, once.
    async fn try_credentials(&mut self, sweep: &Sweep) -> Result<(), Failure> {
        let has_step = |trial: &&Trial| trial.metrics.contains_key(sweep::METRIC);
        let training = self.trials.iter().filter(|trial| trial.status == JobStatus::Running).find(has_step);
        if let Some(trial) = training.filter(|_| self.access.is_none()) {
            self.access = access::probe(self.subject, sweep, trial).await?;
        }
        Ok(())
    }

    /// Makes the injections whose time has come. If one fails, the others still happen.
    async fn inject(&mut self, instances: &[Seen]) {
        for place in 0..self.injections.len() {
            let Some(mut injection) = self.injections.get(place).cloned() else { continue };
            if let Err(failure) = self.advance(&mut injection, instances).await {
                self.note(&failure);
                injection.fail(failure.to_string(), Timestamp::now(), self.subject.pace.rest);
            }
            if let Some(known) = self.injections.get_mut(place) {
                *known = injection;
            }
        }
    }

    /// Takes the next step of an injection. Fails if a try has failed.
    async fn advance(&mut self, injection: &mut Injection, instances: &[Seen]) -> Result<(), Failure> {
        if let State::Underway { experiment, instance, since } = &injection.state {
            match self.chaos.progress(experiment).await {
                Ok(Experiment::Underway) => {}
                Ok(Experiment::Completed) => {
                    injection.state = State::Happened { instance: instance.clone(), at: *since };
                }
                Ok(Experiment::Failed(reason)) => return Err(Failure::new(format!("{instance}: {reason}"))),
                // The experiment goes on, whether its state can be read or not.
                Err(failure) => self.note(&failure),
            }
            return Ok(());
        }
        if !injection.is_due(Timestamp::now()) {
            return Ok(());
        }
        let running = instances.iter().filter(|one| one.is_running).map(|one| one.id.as_str()).collect();
        let taken = self.injections.iter().filter_map(Injection::instance).collect();
        let chosen = injection::target(injection.kind, &running, &taken, &self.trials, self.subject.pace.steps);
        let Some(instance) = chosen else { return Ok(()) };
        // Another sweep may share the instance. This does not count as a try, because that sweep may end in time.
        if let Err(failure) = must_be_alone(&self.reader, &self.subject.table, Some(&self.sweep)).await {
            injection.state = State::Waiting { obstacle: Some(failure.to_string()) };
            self.note(&failure);
            return Ok(());
        }
        injection.state = self.take(injection.kind, instance).await?;
        Ok(())
    }

    async fn take(&mut self, kind: Kind, instance: String) -> Result<State, Failure> {
        let now = Timestamp::now();
        match kind {
            Kind::Interruption => {
                self.progress.say(&format!("FIS interrupts {instance}"));
                let experiment = self.chaos.interrupt(self.made, &instance).await?;
                Ok(State::Underway { experiment, instance, since: now })
            }
            Kind::Termination => {
                self.progress.say(&format!("{instance} is terminated without a notice"));
                let ended = self.subject.ec2().terminate_instances().instance_ids(&instance).send().await;
                ended.context(|| format!("cannot terminate {instance} (ec2:TerminateInstances)"))?;
                Ok(State::Happened { instance, at: now })
            }
        }
    }

    /// Reads the texts that the trials have left, and the sweep's costs.
    pub(super) async fn results(&self) -> Result<Results, Failure> {
        let mut results = Results::default();
        for index in 0..sweep::trials() {
            let prefix = self.sweep.trial_prefix(index);
            for (name, texts) in [("story", &mut results.stories), ("model", &mut results.models)] {
                let text = self.read(&format!("{prefix}{name}")).await?;
                texts.extend(text.map(|text| (index, text)));
            }
        }
        let costs = self.read(&format!("{}costs.json", self.sweep.results_prefix())).await?;
        let costs: Option<Value> = costs.and_then(|costs| serde_json::from_str(&costs).ok());
        results.spent = costs.and_then(|costs| serde_json::from_value(costs.get("spent")?.clone()).ok());
        Ok(results)
    }

    async fn read(&self, key: &str) -> Result<Option<String>, Failure> {
        let cannot_read = || format!("cannot read s3://{}/{key}", self.subject.bucket);
        let got = spotsweep_aws::path_style_s3(&self.subject.target.config)
            .get_object()
            .bucket(&self.subject.bucket)
            .key(key)
            .send()
            .await;
        let got = match got {
            Err(error) if spotsweep_aws::is_gone(&error) => return Ok(None),
            got => got.context(cannot_read)?,
        };
        let bytes = got.body.collect().await.context(cannot_read)?.to_vec();
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// What is in the bucket at the end.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) stories: BTreeMap<u32, String>,
    pub(super) models: BTreeMap<u32, String>,
    pub(super) spent: Option<Spent>,
}

/// Fails if another sweep than this one is open.
pub(super) async fn must_be_alone(reader: &Reader, table: &str, own: Option<&SweepId>) -> Result<(), Failure> {
    let open = reader.open_sweeps().await.context(|| format!("cannot read the table {table}"))?;
    match open.iter().find(|sweep| Some(&sweep.id) != own) {
        None => Ok(()),
        Some(other) => Err(Failure::new(format!(
            "sweep {} is {}: its trials might share an instance that a run takes, so wait until no other sweep is open",
            other.id,
            other.stage.name()
        ))),
    }
}
