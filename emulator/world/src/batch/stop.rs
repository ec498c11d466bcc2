//! CancelJob and TerminateJob, and their forms for several jobs (Batch API reference). No retry follows (fact 18).

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Named, Status, Stopping};
use crate::ids::RunRef;
use crate::{ApiError, Effect, World};

const LONGEST_REASON: usize = 1024;
const MOST_JOBS: usize = 50;

/// The parameters of CancelJob and TerminateJob.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopJob {
    /// The id of a job, an array child, or an array job with all its children.
    #[serde(default)]
    pub job_id: String,
    /// The text that becomes the statusReason.
    #[serde(default)]
    pub reason: String,
}

/// The parameters of CancelJobs and TerminateJobs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopJobs {
    /// Ids of at most 50 jobs.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// The text that becomes their statusReason.
    #[serde(default)]
    pub reason: String,
}

/// Whether jobs are cancelled or terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Ends jobs that have not started.
    Cancel,
    /// Ends jobs in any state.
    Terminate,
}

impl World {
    /// Ends jobs that have not reached STARTING. The call also succeeds if there is none.
    ///
    /// # Errors
    /// `ClientException` for missing parameters.
    pub fn cancel_job(&mut self, request: &StopJob) -> Result<Value, ApiError> {
        self.stop_job(request, How::Cancel)
    }

    /// Ends jobs in any state. Running containers get SIGTERM, then SIGKILL.
    ///
    /// # Errors
    /// `ClientException` for missing parameters.
    pub fn terminate_job(&mut self, request: &StopJob) -> Result<Value, ApiError> {
        self.stop_job(request, How::Terminate)
    }

    /// Calls [`Self::cancel_job`] for each job.
    ///
    /// # Errors
    /// `ClientException` for missing parameters, and for too many jobs. Errors of single jobs are in the answer.
    pub fn cancel_jobs(&mut self, request: &StopJobs) -> Result<Value, ApiError> {
        self.stop_jobs(request, How::Cancel)
    }

    /// Calls [`Self::terminate_job`] for each job.
    ///
    /// # Errors
    /// The same as those of [`Self::cancel_jobs`].
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

    /// Stops a run that is not queued any more.
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
                    // There is no container yet, so the attempt ends at once.
                    None => self.end_attempt(run, None, None, reason.to_owned()),
                }
            }
        }
    }
}
