//! AWS Batch: submits each job once, and finds, describes and ends jobs.

use super::{BoxError, Executed, Service, Taken, all_pages};
use crate::calls::{Batch, CallError, ListJobs, NotStopped, StopJobs, SubmitJob, Wait};
use crate::command::{Command, STOPPED_IDS, Submission};
use crate::event::Job;
use crate::event::batch_job_state::job;
use crate::outcome::Outcome;
use crate::throttle::submit_pauses;
use spotsweep_protocol::ids::{DescribedJob, JobName, SweepId};
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::retry_rules;

/// How many ids one DescribeJobs takes (fact 19).
const DESCRIBE_IDS: usize = 100;

/// Returns the service that submits, finds, describes and ends jobs.
pub fn batch(batch: impl Batch, time: impl Wait) -> impl Service {
    Jobs { batch, time }
}

#[derive(Debug)]
struct Jobs<C, W> {
    batch: C,
    time: W,
}

impl<C: Batch, W: Wait> Service for Jobs<C, W> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let batch = &self.batch;
        Ok(match *command {
            Command::SubmitPart(submission) => Box::pin(submit(batch, &self.time, submission)),
            Command::FindPart { name, queue } => Box::pin(find(batch, name, queue)),
            Command::TerminateJobs { sweep, jobs, reason } => Box::pin(terminate(batch, sweep, jobs, reason)),
            Command::CancelWaiting { sweep, jobs, reason } => Box::pin(cancel(batch, sweep, jobs, reason)),
            Command::DescribeJobs(jobs) => Box::pin(describe(batch, jobs)),
            other => return Err(Box::new(other)),
        })
    }
}

/// Submits a job. An unclear answer is an error, and the job is looked up before the next try (fact 1).
async fn submit(batch: &impl Batch, time: &impl Wait, submission: Submission) -> Executed {
    let name = submission.name.clone();
    let request = request(submission);
    let mut pauses = submit_pauses();
    loop {
        match batch.submit_job(request.clone()).await {
            Ok(job) => return Ok(vec![Outcome::PartSubmitted { name, job }]),
            Err(error @ CallError::Throttled { .. }) => match pauses.next() {
                Some(pause) if time.wait(pause).await => {}
                Some(_) | None => return Err(error.into()),
            },
            Err(CallError::Refused { code, message }) if code == BAD_REQUEST => {
                return Ok(vec![Outcome::PartRefused { name, message }]);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The error code for a wrong request, which would be refused again.
const BAD_REQUEST: &str = "ClientException";

fn request(submission: Submission) -> SubmitJob {
    SubmitJob {
        name: submission.name.to_string(),
        queue: submission.queue,
        definition: submission.definition,
        array_size: Some(submission.trials).filter(|trials| *trials > 1),
        attempts: submission.attempts,
        retry_rules: retry_rules().into(),
        timeout_seconds: submission.timeout_seconds,
        command: submission.command,
        environment: submission.environment,
        token: submission.token,
        resources: submission.resources,
        tags: submission.tags,
    }
}

/// Finds the oldest job with this name.
async fn find(batch: &impl Batch, name: JobName, queue: String) -> Executed {
    let wanted = name.to_string();
    let page = |next_token| batch.list_jobs(ListJobs { queue: queue.clone(), name: wanted.clone(), next_token });
    let found = all_pages(page).await?.into_iter().filter(|job| job.name == wanted);
    Ok(vec![match found.map(|job| (job.created_at, job.id)).min() {
        Some((_, job)) => Outcome::PartSubmitted { name, job },
        None => Outcome::PartNotFound { name },
    }])
}

/// Terminates jobs. An answer with status 200 may have errors for single jobs
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJobs.html>). Then the whole step is repeated,
/// because each job may be terminated again.
async fn terminate(batch: &impl Batch, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for some in requests(&jobs, &reason) {
        all_stopped(&batch.terminate_jobs(some).await?)?;
    }
    Ok(vec![Outcome::JobsTerminated(sweep)])
}

/// Cancels jobs. For an array job CancelJobs cancels the children that have not started
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJobs.html>). Errors are handled as in
/// [`terminate`].
async fn cancel(batch: &impl Batch, sweep: SweepId, jobs: Vec<String>, reason: StopReason) -> Executed {
    for some in requests(&jobs, &reason) {
        all_stopped(&batch.cancel_jobs(some).await?)?;
    }
    Ok(vec![Outcome::WaitingCancelled(sweep)])
}

fn requests(jobs: &[String], reason: &StopReason) -> impl Iterator<Item = StopJobs> {
    jobs.chunks(STOPPED_IDS).map(|jobs| StopJobs { jobs: jobs.to_vec(), reason: reason.for_batch() })
}

fn all_stopped(errors: &[NotStopped]) -> Result<(), BoxError> {
    match errors.first() {
        Some(NotStopped { job, code, message }) => Err(format!("job {job} was not ended: {code}: {message}").into()),
        None => Ok(()),
    }
}

async fn describe(batch: &impl Batch, jobs: Vec<DescribedJob>) -> Executed {
    let mut outcomes = Vec::new();
    for some in jobs.chunks(DESCRIBE_IDS) {
        let found = batch.describe_jobs(some.iter().map(|wanted| wanted.job.to_string()).collect()).await?;
        for wanted in some {
            let id = wanted.job.to_string();
            if !found.iter().any(|job| job.job_id == id) {
                outcomes.push(Outcome::JobUnknown(wanted.clone()));
            }
        }
        for detail in found {
            outcomes.extend(job(detail)?.map(Outcome::JobDescribed));
        }
    }
    Ok(outcomes)
}

/// Returns the ARN of the ECS container instance on which Batch has placed an attempt of a trial, while the attempt is
/// under way.
pub(super) async fn host(batch: &impl Batch, job: DescribedJob, attempt: u32) -> Result<Option<String>, BoxError> {
    let found = describe(batch, vec![job]).await?;
    Ok(found.iter().find_map(|outcome| match outcome {
        Outcome::JobDescribed(Job::Trial(job)) => job.host(attempt).map(str::to_owned),
        _another => None,
    }))
}
