//! CancelJob and TerminateJob, and the same of several jobs (Batch API reference): neither is followed by a retry (fact 18).

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Named, Status, Stopping};
use crate::ids::RunRef;
use crate::{ApiError, Effect, World};

const LONGEST_REASON: usize = 1024;
const MOST_JOBS: usize = 50;

/// Parameters of CancelJob and TerminateJob.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopJob {
    /// A job, an array child, or an array job with all its children.
    #[serde(default)]
    pub job_id: String,
    /// Becomes the statusReason.
    #[serde(default)]
    pub reason: String,
}

/// Parameters of CancelJobs and TerminateJobs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopJobs {
    /// At most 50 jobs.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Becomes their statusReason.
    #[serde(default)]
    pub reason: String,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Ends what has not started.
    Cancel,
    /// Ends anything.
    Terminate,
}

impl World {
    /// Ends jobs that have not reached STARTING; succeeds also where there is none.
    ///
    /// # Errors
    /// `ClientException` for missing parameters.
    pub fn cancel_job(&mut self, request: &StopJob) -> Result<Value, ApiError> {
        self.stop_job(request, How::Cancel)
    }

    /// Ends jobs in any state; running containers get SIGTERM, then SIGKILL.
    ///
    /// # Errors
    /// `ClientException` for missing parameters.
    pub fn terminate_job(&mut self, request: &StopJob) -> Result<Value, ApiError> {
        self.stop_job(request, How::Terminate)
    }

    /// [`Self::cancel_job`] of each.
    ///
    /// # Errors
    /// `ClientException` for missing parameters, and for too many jobs. What is wrong with one job is in the answer.
    pub fn cancel_jobs(&mut self, request: &StopJobs) -> Result<Value, ApiError> {
        self.stop_jobs(request, How::Cancel)
    }

    /// [`Self::terminate_job`] of each.
    ///
    /// # Errors
    /// As [`Self::cancel_jobs`].
    pub fn terminate_jobs(&mut self, request: &StopJobs) -> Result<Value, ApiError> {
        self.stop_jobs(request, How::Terminate)
    }

    fn stop_jobs(&mut self, StopJobs { jobs, reason }: &StopJobs, how: How) -> Result<Value, ApiError> {
        if !(1..=MOST_JOBS).contains(&jobs.len()) {
            return Err(ApiError::client(format!("jobs must have 1 to {MOST_JOBS} ids")));
        }
        let (mut successful, mut errors) = (Vec::new(), Vec::new());
        for job in jobs {
            match self.stop_job(&StopJob { job_id: job.clone(), reason: reason.clone() }, how) {
                Ok(_) => successful.push(job),
                Err(error) => errors.push(json!({ "job": job, "code": error.code, "message": error.message })),
            }
        }
        Ok(json!({ "successful": successful, "errors": errors }))
    }

    fn stop_job(&mut self, request: &StopJob, how: How) -> Result<Value, ApiError> {
        if request.job_id.is_empty() {
            return Err(ApiError::client("'jobId' is a required field (cannot be an empty string)"));
        }
        if request.reason.is_empty() {
            return Err(ApiError::client("'reason' is a required field (cannot be an empty string)"));
        }
        if request.reason.len() > LONGEST_REASON {
            return Err(ApiError::client("reason can be at most 1024 characters long"));
        }
        match self.batch.find(&request.job_id) {
            None => {}
            Some(Named::Run(run)) => {
                if let Some(queue) = self.queue_of(run) {
                    queue.retain(|other| *other != run);
                }
                self.stop_run(run, how, &request.reason);
            }
            Some(Named::Parent(job)) => self.stop_array(job, how, &request.reason),
        }
        self.schedule();
        Ok(json!({}))
    }

    fn stop_array(&mut self, job: usize, how: How, reason: &str) {
        let Some(parent) = &mut self.batch.jobs[job].parent else { return };
        if parent.progress.status.is_terminal() {
            return;
        }
        match how {
            How::Cancel => parent.progress.cancelled = true,
            How::Terminate => parent.progress.terminated = true,
        }
        parent.progress.reason = Some(reason.to_owned());
        if let Some(queue) = self.queue_of(RunRef { job, index: 0 }) {
            queue.retain(|run| run.job != job);
        }
        for index in 0..self.batch.jobs[job].runs.len() {
            self.stop_run(RunRef { job, index }, how, reason);
        }
    }

    /// The run is no longer queued when this is called.
    fn stop_run(&mut self, run: RunRef, how: How, reason: &str) {
        let grace = self.settings.timings.stop_grace;
        let running = self.batch.running_attempt(run);
        let state = self.batch.run_mut(run);
        match state.progress.status {
            Status::Succeeded | Status::Failed => {}
            Status::Submitted | Status::Pending | Status::Runnable => {
                match how {
                    How::Cancel => state.progress.cancelled = true,
                    How::Terminate => state.progress.terminated = true,
                }
                self.finish(run, Status::Failed, reason.to_owned());
            }
            Status::Starting | Status::Running => {
                if how == How::Cancel {
                    return;
                }
                state.progress.terminated = true;
                let Some(attempt) = state.current_mut() else { return };
                attempt.stopping = Some(Stopping::Terminated(reason.to_owned()));
                match running {
                    Some(attempt) => self.effects.push(Effect::Stop { attempt, grace }),
                    // No container yet: nothing to wait for.
                    None => self.end_attempt(run, None, None, reason.to_owned()),
                }
            }
        }
    }
}
