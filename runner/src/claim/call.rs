//! One request to `trial-claim` and its answer, over Lambda Invoke.

use aws_sdk_lambda::error::SdkError;
use aws_sdk_lambda::operation::invoke::InvokeError;
use aws_sdk_lambda::primitives::Blob;
use spotsweep_attempt::Patience;
use spotsweep_protocol::claim::{ClaimRequest, Reply, Request};
use tokio::time::{Instant, sleep};

use super::Claims;
use crate::exit::Failure;
use crate::log::say;
use spotsweep_protocol::cause::chain;

/// How many characters of a function's error text go into the log: more than the function itself writes.
const ERROR_TEXT_CHARS: usize = 8_000;

/// Why `trial-claim` gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The call did not go through.
    #[error("invoking {function} failed")]
    Invoke { function: String, source: Box<SdkError<InvokeError>> },
    /// The function ran and failed (Lambda's `FunctionError`).
    #[error("{function} failed ({kind}): {text}")]
    Function { function: String, kind: String, text: String },
    /// The answer is not JSON of a known form.
    #[error("{function} gave an answer that this runner does not know")]
    Unreadable { function: String, source: serde_json::Error },
    /// The answer belongs to another request.
    #[error("{function} answered {reply:?}, which does not fit the request")]
    Unfitting { function: String, reply: Box<Reply> },
}

impl CallError {
    /// Whether the same call may succeed later. A client error is permanent, such as a function that does not exist or
    /// a missing permission.
    pub(crate) fn passing(&self) -> bool {
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

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let passes = error.passing();
        let cause = Box::new(error);
        if passes { Self::Unanswered(cause) } else { Self::Claim(cause) }
    }
}

impl Claims {
    /// Repeats the call until the configured patience has passed since the first failure. A call that took long to fail
    /// is repeated as well.
    pub(super) async fn call_patiently(&self, request: Request) -> Result<Reply, CallError> {
        let (began, mut patience) = (Instant::now(), Patience::new(self.patience));
        loop {
            let error = match self.call(request.clone()).await {
                Err(error) if error.passing() => error,
                answer => return answer,
            };
            let Some(pause) = patience.failed(began.elapsed()) else { return Err(error) };
            say(&format!("{}; trying again in {pause:?}", chain(&error)));
            sleep(pause).await;
        }
    }

    pub(super) async fn call(&self, request: Request) -> Result<Reply, CallError> {
        let function = || self.function.clone();
        let unreadable = |source| CallError::Unreadable { function: function(), source };
        let request = ClaimRequest {
            sweep: self.sweep.clone(),
            index: self.index,
            job: self.job.clone(),
            attempt: self.attempt,
            token: self.token.clone(),
            secret: Some(self.secret.clone()),
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
