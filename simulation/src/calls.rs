//! The calls that invocations make on AWS. Each has two fault points, before its effect and after it: there an
//! invocation may die, lose the answer, or be overtaken by another one.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use crate::limits::{Units, Used};

/// One call, as IAM would see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// AWS's name of the action, such as `SubmitJob`.
    pub action: &'static str,
    /// The S3 key or the index, where permissions are given by it.
    pub on: Option<String>,
}

/// The service gave an error, or no answer: nothing is known of the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered(&'static str);

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} was not answered", self.0)
    }
}

impl Error for Unanswered {}

/// Records calls, and fails one where a test wants it.
#[derive(Debug, Default)]
pub struct Calls {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fails_now: bool,
    made: Vec<Call>,
    used: Used,
}

impl Calls {
    /// One call: an effect between two fault points.
    ///
    /// # Errors
    /// Where the call was chosen to fail, before or after its effect.
    pub async fn call<T>(&self, action: &'static str, effect: impl FnOnce() -> T) -> Result<T, Unanswered> {
        self.call_on(action, None, effect).await
    }

    /// The same, on something that permissions name.
    ///
    /// # Errors
    /// As above.
    pub async fn call_on<T>(
        &self,
        action: &'static str,
        on: Option<String>,
        effect: impl FnOnce() -> T,
    ) -> Result<T, Unanswered> {
        self.point(action).await?;
        self.lock().made.push(Call { action, on });
        let result = effect();
        self.point(action).await?;
        Ok(result)
    }

    /// The calls since this was last asked.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().made)
    }

    /// Units of the table that a call has used.
    pub(crate) fn use_units(&self, partition: &str, units: Units) {
        self.lock().used.add(partition, units);
    }

    /// Adds the units since the last call to `all`.
    pub(crate) fn take_used(&self, all: &mut Used) {
        all.take(&mut self.lock().used);
    }

    /// Whether the call that goes on next fails at the point where it waits.
    pub(crate) fn fail_next(&self, fails: bool) {
        self.lock().fails_now = fails;
    }

    /// Stands still once: whoever drives the invocation decides how it goes on.
    async fn point(&self, action: &'static str) -> Result<(), Unanswered> {
        let mut has_stood = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_stood, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if std::mem::take(&mut self.lock().fails_now) { Err(Unanswered(action)) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
