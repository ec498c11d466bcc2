//! load → decide → commit → execute, until no event is left.

use std::collections::VecDeque;
use std::error::Error;
use std::future::Future;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::claim::Reply;
use crate::command::Command;
use crate::decide::{Answer, Decision, decide};
use crate::event::{Event, Subject};
use crate::settings::Settings;
use crate::store::{Audit, CommitError, Store, View};

/// Steps of one invocation. A sweep of 100 parts takes about 110; 1 000 overdue records a few
/// thousand. Past this the rest waits for the next delivery: nothing loops for ever.
const MAX_STEPS: usize = 50_000;

/// How often one step is decided anew because somebody else changed the record.
const MAX_CONFLICTS: usize = 10;

/// Carries out commands: the AWS SDKs, or the emulator's World. Makes no choices.
pub trait Executor: Sync {
    /// Does it, and says what came of it.
    ///
    /// # Errors
    /// What may be tried again later. What will never succeed is an event instead.
    fn execute(&self, command: Command) -> impl Future<Output = Result<Vec<Event>, ExecuteError>> + Send;
}

/// A command that did not succeed this time.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed")]
pub struct ExecuteError {
    /// The command's name.
    pub command: &'static str,
    /// What the service said.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Why an event could not be handled to its end. State is whole: whatever was committed is
/// re-driven by the next delivery or by `reconcile`.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The store could not be read.
    #[error("load failed")]
    Load(#[source] Box<dyn Error + Send + Sync>),
    /// The store could not be written.
    #[error("{0}")]
    Commit(&'static str, #[source] CommitError),
    /// An effect failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// An event that cannot be, in the state that is: an alarm, nothing was changed.
    #[error("illegal: {0}")]
    Illegal(String),
    /// More steps than one invocation may take.
    #[error("more than {MAX_STEPS} steps in one invocation; the rest waits for the next delivery")]
    Steps,
}

/// What an invocation did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One line a step, in order.
    pub steps: Vec<String>,
    /// The runner's answer, where a runner asked.
    pub reply: Option<Reply>,
}

impl Report {
    /// The function's response: the runner's reply as it is, or the steps.
    pub fn into_response(self) -> Value {
        match self.reply {
            Some(reply) => json!(reply),
            None => json!({ "steps": self.steps }),
        }
    }
}

/// Handles one event and everything that follows from it.
///
/// # Errors
/// The first thing that failed; independent events of the same invocation are still handled.
pub async fn handle(
    store: &impl Store,
    executor: &impl Executor,
    settings: &Settings,
    event: Event,
    now: Timestamp,
) -> Result<Report, HandleError> {
    let mut queue = VecDeque::from([event]);
    let mut report = Report::default();
    let mut failed = None;
    let mut held: Option<(Subject, View)> = None;
    for _ in 0..MAX_STEPS {
        let Some(event) = queue.pop_front() else {
            return failed.map_or(Ok(report), Err);
        };
        let name = event.name();
        let decision = match settle(store, settings, event, now, &mut held).await {
            Ok(decision) => decision,
            Err(error) => {
                tracing::error!(event = name, error = %chain(&error), "step failed");
                failed.get_or_insert(error);
                held = None;
                continue;
            }
        };
        report.steps.push(format!("{name}: {}", decision.answer));
        if let Answer::Illegal(reason) = decision.answer {
            failed.get_or_insert(HandleError::Illegal(reason));
        }
        if decision.reply.is_some() {
            report.reply = decision.reply;
        }
        queue.extend(decision.next);
        // Outcomes go before whatever else waits: they finish what has been begun.
        let mut outcomes = Vec::new();
        for command in decision.commands {
            match executor.execute(command).await {
                Ok(events) => outcomes.extend(events),
                Err(error) => {
                    tracing::error!(event = name, error = %chain(&error), "command failed");
                    failed.get_or_insert(error.into());
                }
            }
        }
        outcomes.into_iter().rev().for_each(|outcome| queue.push_front(outcome));
    }
    Err(HandleError::Steps)
}

/// Decides one event and commits the change, anew as long as others change the record meanwhile.
async fn settle(
    store: &impl Store,
    settings: &Settings,
    event: Event,
    now: Timestamp,
    held: &mut Option<(Subject, View)>,
) -> Result<Decision, HandleError> {
    let name = event.name();
    let Some(subject) = event.subject() else {
        tracing::warn!(event = name, ?event, "unknown event");
        return Ok(decide(&View::default(), &event, settings, now));
    };
    let mut view = match held.take() {
        Some((loaded, view)) if loaded == subject => view,
        _ => store.load(&subject, now).await.map_err(HandleError::Load)?,
    };
    let mut conflicts = 0;
    loop {
        let mut decision = decide(&view, &event, settings, now);
        let Some(change) = decision.change.take() else {
            tracing::info!(event = name, ?subject, answer = %decision.answer, "decided");
            store.heard(&view, &event);
            *held = Some((subject, view));
            return Ok(decision);
        };
        let commands = decision.commands.iter().map(Command::name).collect();
        let state = change.record.state();
        let audit = Audit { at: now, event: name, answer: decision.answer.to_string(), state, commands };
        match store.commit(&view, &change, &audit).await {
            Ok(()) => {
                tracing::info!(event = name, ?subject, answer = %decision.answer, commands = ?audit.commands, "committed");
                store.heard(&view, &event);
                view.apply(change);
                *held = Some((subject, view));
                return Ok(decision);
            }
            Err(CommitError::Conflict) if conflicts < MAX_CONFLICTS => {
                conflicts += 1;
                view = store.load(&subject, now).await.map_err(HandleError::Load)?;
            }
            Err(error) => return Err(HandleError::Commit(name, error)),
        }
    }
}

/// An error and its causes in one line: Display of each names only itself.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
