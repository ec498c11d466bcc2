//! The runner's side of `trial-claim`: the requests of an attempt and their answers.

mod call;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_lambda::Client;
use spotsweep_attempt::{Answer, Claimed, Claiming, Denied};
use spotsweep_protocol::claim::{
    Access, Fetch, Found, Grant, Machine, NoticeKind, Outputs, Reply, Request, Rollback, Seal,
};
use spotsweep_protocol::metric::Metric;
use spotsweep_protocol::rungs::Reached;
use spotsweep_protocol::secret::Secret;
use tokio::time::{Instant, sleep};

pub(crate) use self::call::CallError;
use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;

/// Longer than `trial-claim` may run (60 s), so that the function's own timeout is reported.
pub(crate) const INVOKE_TIMEOUT: Duration = Duration::from_secs(70);

/// What a training has reported so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latest {
    pub(crate) metrics: BTreeMap<String, Metric>,
    /// All rungs that the trial has reached.
    pub(crate) rungs: Vec<Reached>,
}

/// What an attempt leaves to the next one.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// The last seal, if it is valid.
    pub(crate) seal: Option<Seal>,
    /// The rollback, if this attempt has moved a checkpoint away.
    pub(crate) rollback: Option<Rollback>,
    /// Seconds without a sign of progress, if a stall ended the attempt or the command.
    pub(crate) stalled_seconds: Option<u64>,
}

/// How an attempt has ended its trial.
#[derive(Debug)]
pub(crate) struct End {
    /// The job's exit code.
    pub(crate) exit_code: i32,
    /// The uploaded outputs.
    pub(crate) outputs: Outputs,
    /// Wall time of the command.
    pub(crate) seconds: f64,
    /// The reason of a failure.
    pub(crate) error: Option<String>,
    /// Seconds without a sign of progress, if a stall ended the attempt or the command.
    pub(crate) stalled_seconds: Option<u64>,
}

/// Sends one attempt's requests to `trial-claim`.
#[derive(Debug)]
pub(crate) struct Claims {
    lambda: Client,
    function: String,
    sweep: String,
    index: u32,
    job: String,
    attempt: u32,
    token: Option<Secret>,
    secret: Secret,
    patience: Duration,
    /// Longest time between two reports.
    pub(crate) report_within: Duration,
    sequence: AtomicU64,
    /// How far the data sets are fetched, if that is under way.
    fetch: Mutex<Option<Fetch>>,
}

impl Claims {
    /// Draws the runner's secret, by which `trial-claim` recognizes its requests.
    pub(crate) fn new(lambda: Client, config: &Config) -> io::Result<Self> {
        Ok(Self {
            lambda,
            function: config.claim_function.clone(),
            sweep: config.sweep.clone(),
            index: config.index,
            job: config.job.clone(),
            attempt: config.attempt,
            token: config.token.clone(),
            secret: Secret::draw()?,
            patience: config.patience,
            report_within: config.report_within,
            sequence: AtomicU64::new(1),
            fetch: Mutex::default(),
        })
    }

    /// Claims the trial until its workspace is there too, or until `limit` has passed. Each claim is retried for the
    /// configured patience.
    pub(crate) async fn claim(&self, machine: Machine, limit: Duration) -> Result<Grant, Failure> {
        let started = Instant::now();
        let claiming = Claiming { defect: machine.defect.clone(), until: limit };
        let request = Request::Claim(machine);
        let mut waited_for = String::new();
        loop {
            let reply = self.call_patiently(request.clone()).await?;
            let waited = started.elapsed();
            let seconds = waited.as_secs_f64();
            match claiming.answered(reply, waited) {
                Claimed::Granted(grant) => {
                    if !waited_for.is_empty() {
                        say(&format!("the workspace is there, {seconds:.1} s after the first claim"));
                    }
                    return Ok(*grant);
                }
                Claimed::Waits { reason, pause } => {
                    if waited_for != reason {
                        say(&format!("waiting for the workspace, {seconds:.1} s so far: {reason}"));
                        waited_for = reason;
                    }
                    sleep(pause).await;
                }
                Claimed::Denied(denied) => return Err(self.denied(denied)),
            }
        }
    }

    /// Requests the trial's own credentials, with retries for the configured patience.
    pub(crate) async fn access(&self) -> Result<Access, Failure> {
        spotsweep_attempt::access(self.call_patiently(Request::Access).await?).map_err(|denied| self.denied(denied))
    }

    /// The failure with which the attempt ends.
    fn denied(&self, denied: Denied) -> Failure {
        match denied {
            Denied::Unfit(reason) => Failure::Unfit(reason),
            Denied::Unavailable(reason) => Failure::Unavailable(reason),
            Denied::TooLate(reason) => Failure::Interrupted(format!(
                "the workspace did not come in time (SPOTSWEEP_WORKSPACE_SECONDS); the last reason: {reason}"
            )),
            Denied::Refused(reason) => Failure::Refused(reason),
            Denied::Unfitting(reply) => self.unfitting(*reply).into(),
        }
    }

    /// The longest time until the last of several tries has failed.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.patience + INVOKE_TIMEOUT
    }

    /// Reports that the workspace is mounted. The training starts only after that.
    pub(crate) async fn mounted(&self, volume: &str, found: Found, seconds: f64) -> Result<(), Failure> {
        let request = Request::Mounted { volume: volume.to_owned(), found, seconds };
        spotsweep_attempt::mounted(self.call_patiently(request).await?).map_err(|denied| self.denied(denied))
    }

    /// Reports a notice, with retries for the configured patience.
    pub(crate) async fn notice(&self, kind: NoticeKind) -> Result<Answer, CallError> {
        self.answer(self.call_patiently(Request::Notice { kind }).await?)
    }

    /// Reports the metrics so far and the newest seal, without a retry: the next report makes up for a lost one.
    pub(crate) async fn report(
        &self,
        latest: Latest,
        seal: Option<Seal>,
        stalled_seconds: Option<u64>,
    ) -> Result<Answer, CallError> {
        self.answer(self.call(self.next_report(latest, seal, stalled_seconds)).await?)
    }

    /// Like `report`, with retries for the configured patience: if the training is silent, no later report follows.
    pub(crate) async fn report_patiently(
        &self,
        latest: Latest,
        seal: Option<Seal>,
        stalled_seconds: Option<u64>,
    ) -> Result<Answer, CallError> {
        self.answer(self.call_patiently(self.next_report(latest, seal, stalled_seconds)).await?)
    }

    /// Notes how far the data sets are fetched.
    pub(crate) fn fetches(&self, fetch: Fetch) {
        *self.fetch.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetch);
    }

    /// Reports how far the data sets are fetched, if that is new; without a retry.
    pub(crate) async fn report_fetch(&self) -> Option<Result<Answer, CallError>> {
        let fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(match self.call(Request::Fetching { fetch }).await {
            Ok(reply) => self.answer(reply),
            Err(error) => Err(error),
        })
    }

    fn next_report(&self, latest: Latest, seal: Option<Seal>, stalled_seconds: Option<u64>) -> Request {
        let Latest { metrics, rungs } = latest;
        Request::Report { sequence: self.next_sequence(), metrics, seal, stalled_seconds, rungs }
    }

    /// Reports the release, with retries for the configured patience.
    pub(crate) async fn release(&self, latest: Latest, left: Handover) -> Result<Answer, CallError> {
        let (Latest { metrics, rungs }, Handover { seal, rollback, stalled_seconds }) = (latest, left);
        let sequence = self.next_sequence();
        let request = Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs };
        self.answer(self.call_patiently(request).await?)
    }

    /// Reports that the attempt is over, with retries for the configured patience.
    pub(crate) async fn end(&self, latest: Latest, end: End) -> Result<Answer, CallError> {
        let Latest { metrics, rungs } = latest;
        let End { exit_code, outputs, seconds, error, stalled_seconds } = end;
        let sequence = self.next_sequence();
        let request = Request::End { sequence, exit_code, metrics, outputs, seconds, error, stalled_seconds, rungs };
        let reply = self.call_patiently(request).await?;
        Answer::to_end(reply).map_err(|reply| self.unfitting(*reply))
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn answer(&self, reply: Reply) -> Result<Answer, CallError> {
        Answer::of(reply).map_err(|reply| self.unfitting(*reply))
    }

    fn unfitting(&self, reply: Reply) -> CallError {
        CallError::Unfitting { function: self.function.clone(), reply: Box::new(reply) }
    }
}
