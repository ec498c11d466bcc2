//! The transitions of a run: SUBMITTED → RUNNABLE → STARTING → RUNNING → SUCCEEDED or FAILED, or back to RUNNABLE for
//! another attempt. Each change has one event (fact 3). Without dependencies only array parents are PENDING (Batch user
//! guide, "Job states").

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::job::End;
use super::{Attempt, Status, Stopping};
use crate::ids::RunRef;
use crate::trouble::take_one;
use crate::{AttemptKey, Effect, InstanceState, Start, Timer, World};

const EXITED: &str = "Essential container in task exited";
const TIMED_OUT: &str = "Job attempt duration exceeded timeout";
const NOT_STARTED: &str = "Task failed to start";
/// The reasons that Batch gives for a container that never started: its status reason, and the container's reason. Two
/// users have reported the first two: amazon-ecs-agent #4308, nextflow #2730. `AGENT` is in the Batch user guide
/// ("Automated job retries"). That both are missing is neither documented nor excluded.
const START_FAILURES: [(&str, Option<&str>); 4] = [
    (NOT_STARTED, Some("CannotPullContainerError: pull image manifest has been retried 5 time(s)")),
    (NOT_STARTED, Some("DockerTimeoutError: Could not transition to started; timed out after waiting 3m0s")),
    (NOT_STARTED, Some("AGENT")),
    ("", None),
];
/// The status reasons other than "Host EC2" that Batch may give for an attempt whose instance is gone: none, or that of
/// a container that ended, but without an exit code. No document promises a text.
const UNNAMED_ENDS: [&str; 2] = ["", EXITED];
/// How long a container on an instance whose agent is disconnected waits before the agent is looked at again.
const RECONNECTS: Duration = Duration::from_secs(60);
const CHILD_FAILED: &str = "Array Child Job failed";

impl World {
    /// Makes a new job runnable, because the scheduler has looked at it.
    pub(crate) fn evaluate(&mut self, job: usize) {
        for index in 0..self.batch.jobs[job].runs.len() {
            let run = RunRef { job, index };
            // The job may have been cancelled since its submission.
            if self.batch.run(run).progress.status != Status::Submitted {
                continue;
            }
            if let Some(queue) = self.queue_of(run) {
                queue.push_back(run);
            }
            self.change(run, Status::Runnable, None);
        }
    }

    /// Places a runnable run on an instance: it is STARTING, and the image is pulled.
    pub(crate) fn place(&mut self, run: RunRef, instance_id: &str) {
        let wanted = self.batch.wanted(run);
        let ecs_id = self.ids.hex(32);
        let job = &self.batch.jobs[run.job];
        let log_stream = format!("{}/default/{ecs_id}", job.definition_name);
        let image = job.container.image.clone();
        let cluster = self.cluster_of(instance_id).unwrap_or_default();
        let ecs_arn = self.arn("ecs", &format!("task/{cluster}/{ecs_id}"));
        let Some(instance) = self.instances.get_mut(instance_id) else { return };
        instance.free.take(&wanted);
        let gpus: Vec<String> = instance.free_gpus.iter().take(wanted.gpus as usize).cloned().collect();
        instance.free_gpus.retain(|gpu| !gpus.contains(gpu));
        instance.runs.insert(run);
        instance.idle_since = None;
        let cached = instance.images.contains(&image);
        let attempts = &mut self.batch.jobs[run.job].runs[run.index].attempts;
        let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        attempts.push(Attempt {
            number,
            instance: instance_id.to_owned(),
            environment: instance.environment.clone(),
            container_instance_arn: instance.container_instance_arn.clone(),
            ecs_arn,
            log_stream,
            gpus,
            started_at: None,
            stopping: None,
            end: None,
        });
        let pull = if cached { Duration::ZERO } else { self.starts.pull(&self.settings.timings) };
        self.change(run, Status::Starting, None);
        self.after(pull, Timer::Pulled { run, attempt: number });
    }

    /// Starts the container, because the image is pulled: the run is RUNNING.
    pub(crate) fn image_pulled(&mut self, run: RunRef, attempt: u32) {
        let now = self.now;
        let image = self.batch.jobs[run.job].container.image.clone();
        let Some(current) = self.batch.run_mut(run).current_mut() else { return };
        let host = self.instances.get_mut(&current.instance);
        let Some(host) = host.filter(|host| host.state == InstanceState::Running) else { return };
        if current.number != attempt {
            return;
        }
        if host.disconnected {
            // The container starts, or Batch learns of its start, only when the agent is connected again.
            return self.after(RECONNECTS, Timer::Pulled { run, attempt });
        }
        let failing = self.trouble.failing_starts;
        if take_one(&mut self.trouble.failing_starts) {
            let (status_reason, reason) = START_FAILURES[failing as usize % START_FAILURES.len()];
            return self.end_attempt(run, None, reason, status_reason.to_owned());
        }
        host.images.insert(image);
        current.started_at = Some(now);
        self.batch.run_mut(run).progress.started_at = Some(now);
        self.change(run, Status::Running, None);
        if let Some(start) = self.start_of(run) {
            self.effects.push(Effect::Start(start));
        }
        if let Some(seconds) = self.batch.jobs[run.job].timeout_seconds {
            self.after(Duration::from_secs(seconds), Timer::TimedOut { run, attempt });
        }
    }

    fn start_of(&self, run: RunRef) -> Option<Start> {
        let job = &self.batch.jobs[run.job];
        let attempt = self.batch.run(run).current()?;
        let mut environment = job.container.environment.clone();
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set("AWS_BATCH_JOB_ID", job.run_id(run.index));
        set("AWS_BATCH_JOB_ATTEMPT", attempt.number.to_string());
        set("AWS_BATCH_JQ_NAME", job.queue.clone());
        set("AWS_BATCH_CE_NAME", attempt.environment.clone());
        if job.parent.is_some() {
            set("AWS_BATCH_JOB_ARRAY_INDEX", run.index.to_string());
        }
        if !attempt.gpus.is_empty() {
            let uuids = attempt.gpus.join(",");
            set("NVIDIA_VISIBLE_DEVICES", if self.trouble.legacy_nvidia_runtime { uuids } else { "void".to_owned() });
        }
        Some(Start {
            attempt: AttemptKey { job: job.run_id(run.index), attempt: attempt.number },
            instance: attempt.instance.clone(),
            image: job.container.image.clone(),
            command: job.container.command.clone(),
            environment,
            log_stream: attempt.log_stream.clone(),
            task: attempt.ecs_arn.clone(),
        })
    }

    /// Reports that a container has exited, by itself or after [`Effect::Stop`]. The exit code is 128 + n for signal n.
    ///
    /// A report about an attempt that has ended already, because its instance is gone, changes nothing.
    pub fn job_exited(&mut self, attempt: &AttemptKey, exit_code: i32, now: Timestamp) {
        self.container_ended(attempt, Some(exit_code), None, EXITED, now);
    }

    /// Reports that a container could not be started. `reason` is the container's, such as `CannotPullContainerError:
    /// …`.
    pub fn job_failed_to_start(&mut self, attempt: &AttemptKey, reason: &str, now: Timestamp) {
        self.container_ended(attempt, None, Some(reason), NOT_STARTED, now);
    }

    fn container_ended(
        &mut self,
        key: &AttemptKey,
        exit_code: Option<i32>,
        reason: Option<&str>,
        status_reason: &str,
        now: Timestamp,
    ) {
        self.advance(now);
        let Some(super::Named::Run(run)) = self.batch.find(&key.job) else { return };
        let current = self.batch.run(run).current().filter(|a| a.number == key.attempt);
        let Some(current) = current else { return };
        // If the container died with its instance, Batch reports that without an exit code once the instance is gone.
        let host = self.instances.get(&current.instance);
        if host.is_some_and(|host| host.state == InstanceState::Running) {
            self.end_attempt(run, exit_code, reason, status_reason.to_owned());
            self.schedule();
        }
    }

    /// Stops an attempt because of its timeout. It is not retried (fact 18).
    pub(crate) fn attempt_timed_out(&mut self, run: RunRef, attempt: u32) {
        let grace = self.settings.timings.stop_grace;
        let Some(key) = self.batch.running_attempt(run).filter(|key| key.attempt == attempt) else {
            return;
        };
        if let Some(current) = self.batch.run_mut(run).current_mut() {
            current.stopping.get_or_insert(Stopping::TimedOut);
            self.effects.push(Effect::Stop { attempt: key, grace });
        }
    }

    /// Ends an attempt whose instance is gone (fact 12).
    pub(crate) fn host_terminated(&mut self, run: RunRef, instance: &str) {
        let share = self.trouble.unnamed_ends;
        let reason = match share > 0.0 && self.throttle.unit() < share {
            true => UNNAMED_ENDS[usize::from(self.throttle.unit() < 0.5)].to_owned(),
            false => format!("Host EC2 (instance {instance}) terminated."),
        };
        self.end_attempt(run, None, None, reason);
    }

    /// Ends the current attempt, frees its resources, and retries or finishes the run.
    pub(super) fn end_attempt(
        &mut self,
        run: RunRef,
        exit_code: Option<i32>,
        reason: Option<&str>,
        status_reason: String,
    ) {
        let now = self.now;
        let Some(attempt) = self.batch.run_mut(run).current_mut() else { return };
        let (number, stopping) = (attempt.number, attempt.stopping.clone());
        let (instance, gpus) = (attempt.instance.clone(), attempt.gpus.clone());
        let status_reason = match stopping.clone() {
            Some(Stopping::TimedOut) => TIMED_OUT.to_owned(),
            Some(Stopping::Terminated(why)) => why,
            None => status_reason,
        };
        attempt.end = Some(End {
            stopped_at: now,
            exit_code,
            reason: reason.map(str::to_owned),
            status_reason: status_reason.clone(),
        });
        self.leave_instance(run, &instance, gpus);
        let retry = &self.batch.jobs[run.job].retry;
        let retried = stopping.is_none() && retry.retries(number, &status_reason, reason, exit_code);
        if stopping.is_none() && exit_code == Some(0) {
            self.finish(run, Status::Succeeded, status_reason);
        } else if retried {
            if let Some(queue) = self.queue_of(run) {
                queue.push_front(run);
            }
            self.change(run, Status::Runnable, Some(status_reason));
        } else {
            self.finish(run, Status::Failed, status_reason);
        }
    }

    fn leave_instance(&mut self, run: RunRef, id: &str, gpus: Vec<String>) {
        let now = self.now;
        let wanted = self.batch.wanted(run);
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.runs.remove(&run);
        instance.free.put_back(&wanted);
        instance.free_gpus.extend(gpus);
        if instance.runs.is_empty() {
            instance.idle_since = Some(now);
            self.watch_idle(id);
        }
    }

    /// Finishes a run after its last attempt.
    pub(super) fn finish(&mut self, run: RunRef, status: Status, reason: String) {
        self.batch.run_mut(run).progress.stopped_at = Some(self.now);
        self.change(run, status, Some(reason));
    }

    /// Changes a run's status, with the event and the parent's counts. Every change goes through this function.
    fn change(&mut self, run: RunRef, status: Status, reason: Option<String>) {
        let progress = &mut self.batch.run_mut(run).progress;
        let from = progress.status;
        progress.status = status;
        progress.reason = reason;
        let (arn, detail) = self.run_event(run);
        self.remember_run(run, &detail);
        self.emit_job(&arn, &detail);
        if let Some(parent) = &mut self.batch.jobs[run.job].parent {
            parent.moved(from, status);
            self.update_parent(run.job);
        }
    }

    /// Updates a parent, which is PENDING from its first runnable child until all children are terminal (fact 3).
    fn update_parent(&mut self, job: usize) {
        let now = self.now;
        let size = self.batch.jobs[job].runs.len();
        let Some(parent) = &mut self.batch.jobs[job].parent else { return };
        let count = |status| parent.summary.get(&status).copied().unwrap_or(0);
        let (succeeded, failed) = (count(Status::Succeeded), count(Status::Failed));
        let wanted = if succeeded + failed < size {
            Status::Pending
        } else if failed > 0 {
            Status::Failed
        } else {
            Status::Succeeded
        };
        let running = count(Status::Running) > 0;
        let progress = &mut parent.progress;
        if running {
            progress.started_at.get_or_insert(now);
        }
        if progress.status == wanted {
            return;
        }
        progress.status = wanted;
        if wanted.is_terminal() {
            progress.stopped_at = Some(now);
        }
        if wanted == Status::Failed && progress.reason.is_none() {
            progress.reason = Some(CHILD_FAILED.to_owned());
        }
        let (arn, detail) = self.parent_event(job);
        self.emit_job(&arn, &detail);
    }

    pub(super) fn queue_of(&mut self, run: RunRef) -> Option<&mut VecDeque<RunRef>> {
        let name = &self.batch.jobs[run.job].queue;
        self.batch.queues.get_mut(name).map(|queue| &mut queue.runnable)
    }
}
