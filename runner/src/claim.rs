//! The runner's side of `trial-claim`: three requests over Lambda Invoke.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::error::SdkError;
use aws_sdk_lambda::operation::invoke::InvokeError;
use aws_sdk_lambda::primitives::Blob;
use spotsweep::claim::{ClaimRequest, Grant, Metric, Outputs, Reply, Request};
use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::exit::{Failure, chain, say};
use crate::place::Place;

/// First pause between two tries; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How much of a function's error text goes into the log.
const ERROR_TEXT_CHARS: usize = 500;

/// Why `trial-claim` gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The call did not go through.
    #[error("invoking {function} failed")]
    Invoke { function: String, source: Box<SdkError<InvokeError>> },
    /// The function ran and failed (Lambda's `FunctionError`).
    #[error("{function} failed ({kind}): {text}")]
    Function { function: String, kind: String, text: String },
    /// The answer is not JSON that we know.
    #[error("{function} gave an answer that this runner does not know")]
    Unreadable { function: String, source: serde_json::Error },
    /// The answer belongs to another request.
    #[error("{function} answered {reply:?}, which does not fit the request")]
    Unfitting { function: String, reply: Box<Reply> },
}

impl CallError {
    /// Whether the same call may go through later. A client error, such as a function that does
    /// not exist or a missing permission, stays what it is.
    fn passing(&self) -> bool {
        match self {
            Self::Function { .. } => true,
            Self::Unreadable { .. } | Self::Unfitting { .. } => false,
            Self::Invoke { source, .. } => {
                let refused = source.raw_response().is_some_and(|response| {
                    let status = response.status().as_u16();
                    (400..500).contains(&status) && status != 429
                });
                !refused && !matches!(**source, SdkError::ConstructionFailure(_))
            }
        }
    }
}

/// The answer to a report or an end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    Refused(String),
}

/// One attempt's line to `trial-claim`.
pub(crate) struct Claims {
    lambda: Client,
    function: String,
    sweep: String,
    index: u32,
    job: String,
    attempt: u32,
    patience: Duration,
    sequence: AtomicU64,
}

impl Claims {
    pub(crate) fn new(lambda: Client, config: &Config) -> Self {
        Self {
            lambda,
            function: config.claim_function.clone(),
            sweep: config.sweep.clone(),
            index: config.index,
            job: config.job.clone(),
            attempt: config.attempt,
            patience: config.patience,
            sequence: AtomicU64::new(1),
        }
    }

    /// Asks for the trial, again and again for the configured patience.
    pub(crate) async fn claim(&self, place: Place) -> Result<Grant, Failure> {
        let request = Request::Claim { instance: place.instance, zone: place.zone };
        match self.call_patiently(request).await.map_err(Failure::Claim)? {
            Reply::Granted(grant) => Ok(grant),
            Reply::Refused { reason } => Err(Failure::Refused(reason)),
            reply @ Reply::Accepted {} => Err(Failure::Claim(self.unfitting(reply))),
        }
    }

    /// Tells the metrics so far, once: the next report makes up for a lost one.
    pub(crate) async fn report(&self, metrics: BTreeMap<String, Metric>) -> Result<Answer, CallError> {
        let request = Request::Report { sequence: self.next_sequence(), metrics };
        self.answer(self.call(request).await?)
    }

    /// Tells that the attempt is over, again and again for the configured patience.
    pub(crate) async fn end(
        &self,
        exit_code: i32,
        metrics: BTreeMap<String, Metric>,
        outputs: Outputs,
        seconds: f64,
    ) -> Result<Answer, CallError> {
        let sequence = self.next_sequence();
        let request = Request::End { sequence, exit_code, metrics, outputs, seconds };
        self.answer(self.call_patiently(request).await?)
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn answer(&self, reply: Reply) -> Result<Answer, CallError> {
        match reply {
            Reply::Accepted {} => Ok(Answer::Accepted),
            Reply::Refused { reason } => Ok(Answer::Refused(reason)),
            reply @ Reply::Granted(_) => Err(self.unfitting(reply)),
        }
    }

    fn unfitting(&self, reply: Reply) -> CallError {
        CallError::Unfitting { function: self.function.clone(), reply: Box::new(reply) }
    }

    async fn call_patiently(&self, request: Request) -> Result<Reply, CallError> {
        let deadline = Instant::now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.call(request.clone()).await {
                Err(error) if error.passing() && Instant::now() + pause < deadline => {
                    say(&format!("{}; trying again in {pause:?}", chain(&error)));
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                answer => return answer,
            }
        }
    }

    async fn call(&self, request: Request) -> Result<Reply, CallError> {
        let function = || self.function.clone();
        let unreadable = |source| CallError::Unreadable { function: function(), source };
        let request = ClaimRequest {
            sweep: self.sweep.clone(),
            index: self.index,
            job: self.job.clone(),
            attempt: self.attempt,
            request,
        };
        let payload = serde_json::to_vec(&request).map_err(unreadable)?;
        let output = self
            .lambda
            .invoke()
            .function_name(&self.function)
            .payload(Blob::new(payload))
            .send()
            .await
            .map_err(|source| CallError::Invoke { function: function(), source: Box::new(source) })?;
        let body = output.payload().map(AsRef::as_ref).unwrap_or_default();
        if let Some(kind) = output.function_error() {
            let text = String::from_utf8_lossy(body).chars().take(ERROR_TEXT_CHARS).collect();
            return Err(CallError::Function { function: function(), kind: kind.to_owned(), text });
        }
        serde_json::from_slice(body).map_err(unreadable)
    }
}
