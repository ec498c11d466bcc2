//! Invocations of functions, one at a time or concurrent. Each runs from fault point to fault point.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use spotsweep_control_plane::handle::{HandleError, Report};

use crate::calls::Call;
use crate::harness::Harness;
use crate::limits::{Used, exceeded};

/// Faults of one invocation. Fault points count from 0: each call has one before its effect and one after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvocationFault {
    /// The fault point at which the invocation is killed, as by `kill -9`.
    pub dies_at: Option<usize>,
    /// The fault point at which a call fails. Its answer is an error, whether or not it had its effect.
    pub fails_at: Option<usize>,
    /// How far its clock is ahead of the World's, in milliseconds; negative if behind.
    pub skew_ms: i64,
    /// If EventBridge takes none of its events: the error code in an answer with status 200.
    pub entry_error: Option<&'static str>,
}

/// Result of an invocation.
#[derive(Debug, Default)]
pub struct Invoked {
    /// Its answer; `None` if it was killed.
    pub answer: Option<Result<Report, HandleError>>,
    /// Number of fault points that it passed.
    pub passed: usize,
    /// Its calls, in order.
    pub calls: Vec<Call>,
    /// Units of the table that it has used.
    pub used: Used,
    /// The limit at which Lambda has ended it.
    pub exceeded: Option<String>,
}

type Handling<'a> = Pin<Box<dyn Future<Output = Result<Report, HandleError>> + 'a>>;

struct Invocation<'a> {
    /// `None` once it has ended.
    future: Option<Handling<'a>>,
    fault: InvocationFault,
    invoked: Invoked,
}

impl Invocation<'_> {
    /// Runs to the next fault point or the end, or is killed.
    fn go_on(&mut self, harness: &Harness) {
        let Some(future) = &mut self.future else { return };
        let passed = self.invoked.passed;
        harness.calls.fail_next(passed > 0 && self.fault.fails_at == Some(passed - 1));
        harness.cloud.fail_entries(self.fault.entry_error);
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.invoked.calls.extend(harness.calls.take());
        harness.calls.take_used(&mut self.invoked.used);
        self.invoked.exceeded = exceeded(&self.invoked.used, &polled);
        match polled {
            _any if self.invoked.exceeded.is_some() => self.future = None,
            Poll::Ready(answer) => {
                self.invoked.answer = Some(answer);
                self.future = None;
            }
            Poll::Pending if self.fault.dies_at == Some(passed) => self.future = None,
            Poll::Pending => self.invoked.passed += 1,
        }
    }
}

impl Harness {
    /// Passes each event to an invocation of its own. `choose` selects which unfinished invocation goes on next.
    pub fn invoke_all(
        &self,
        events: &[(Value, InvocationFault)],
        mut choose: impl FnMut(usize) -> usize,
    ) -> Vec<Invoked> {
        self.calls.take();
        self.calls.take_used(&mut Used::default());
        let begin = |(event, fault): &(Value, InvocationFault)| Invocation {
            future: Some(Box::pin(self.deliver_at(event.clone(), fault.skew_ms))),
            fault: *fault,
            invoked: Invoked::default(),
        };
        let mut invocations: Vec<Invocation<'_>> = events.iter().map(begin).collect();
        loop {
            let mut going: Vec<_> = invocations.iter_mut().filter(|one| one.future.is_some()).collect();
            match going.len() {
                0 => break,
                1 => going[0].go_on(self),
                many => going[choose(many)].go_on(self),
            }
        }
        invocations.into_iter().map(|one| one.invoked).collect()
    }

    /// Passes one event to an invocation without faults.
    pub fn invoke(&self, event: &Value) -> Invoked {
        self.invoke_with(event, InvocationFault::default())
    }

    /// Passes one event to an invocation with this fault.
    pub fn invoke_with(&self, event: &Value, fault: InvocationFault) -> Invoked {
        self.invoke_all(&[(event.clone(), fault)], |_| 0).pop().unwrap_or_default()
    }
}
