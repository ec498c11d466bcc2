//! Calls that invocations make on AWS. Each has two fault points, before and after its effect. There an invocation may
//! be killed, lose the answer, or be overtaken by another one.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use crate::limits::{Units, Used};

/// IAM's name of a service, and AWS's name of an action.
pub type Name = (&'static str, &'static str);

/// One call, as IAM sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// IAM's name of the service, such as `batch`.
    pub service: &'static str,
    /// AWS's name of the action, such as `SubmitJob`.
    pub action: &'static str,
    /// The S3 key or the index, if permissions depend on it.
    pub on: Option<String>,
}

/// The service gave an error or no answer. The call may have had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered(&'static str);

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} was not answered", self.0)
    }
}

impl Error for Unanswered {}

/// Records calls, and makes the chosen ones fail.
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
    /// Makes one call: an effect between two fault points.
    ///
    /// # Errors
    /// If the call was chosen to fail, before or after its effect.
    pub async fn call<T>(&self, name: Name, effect: impl FnOnce() -> T) -> Result<T, Unanswered> {
        self.call_on(name, None, effect).await
    }

    /// Makes a call on an S3 key or an index that permissions name.
    ///
    /// # Errors
    /// Those of [`Self::call`].
    pub async fn call_on<T>(
        &self,
        (service, action): Name,
        on: Option<String>,
        effect: impl FnOnce() -> T,
    ) -> Result<T, Unanswered> {
        self.point(action).await?;
        self.lock().made.push(Call { service, action, on });
        let result = effect();
        self.point(action).await?;
        Ok(result)
    }

    /// Removes and returns the calls made so far.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().made)
    }

    /// Counts units of the table that a call has used.
    pub(crate) fn use_units(&self, partition: &str, units: Units) {
        self.lock().used.add(partition, units);
    }

    /// Adds the units used since the last `take_used` to `all`.
    pub(crate) fn take_used(&self, all: &mut Used) {
        all.take(&mut self.lock().used);
    }

    /// Chooses whether the next call to continue fails at its fault point.
    pub(crate) fn fail_next(&self, fails: bool) {
        self.lock().fails_now = fails;
    }

    /// Yields once, so that the caller decides how the invocation continues.
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
