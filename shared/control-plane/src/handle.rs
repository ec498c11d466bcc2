//! The flow of an invocation: load, decide, commit and execute, until no input is left.

use std::collections::VecDeque;
use std::error::Error;
use std::future::Future;

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::Instrument;

use crate::command::Command;
use crate::decide::{Answer, Decision, Noun, decide};
use crate::input::{About, Followup, Input, Subject};
use crate::log;
use crate::metrics::{Telemetry, measure};
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{Audit, Change, CommitError, Store, View};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Reply;

/// Most steps of one invocation, so that none loops for ever. A sweep of 100 parts takes about 110, and 1 000 overdue
/// records take a few thousand. The rest waits for the next delivery.
const MAX_STEPS: usize = 50_000;

/// How often one step is decided again because another invocation has changed the record.
const MAX_CONFLICTS: usize = 10;

/// The execution of commands: [`crate::execute::Services`].
pub trait Executor: Sync {
    /// Executes a command, and returns its outcomes.
    ///
    /// # Errors
    /// Returns an error if the command may succeed later. A permanent failure is an outcome instead.
    fn execute(&self, command: Command) -> impl Future<Output = Result<Vec<Outcome>, ExecuteError>> + Send;
}

/// The error of a command that may succeed later.
#[derive(Debug, thiserror::Error)]
#[error("{command} failed")]
pub struct ExecuteError {
    /// The command's name.
    pub command: &'static str,
    /// The error of the service.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Why an event could not be handled completely. The stored state is consistent: the next delivery or `reconcile`
/// redrives what was committed.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The store could not be read.
    #[error("load failed")]
    Load(#[source] Box<dyn Error + Send + Sync>),
    /// The store could not be written.
    #[error("{0}")]
    Commit(&'static str, #[source] CommitError),
    /// A command failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// An event that cannot come in the present state. Nothing was changed, and it is an alarm.
    #[error("illegal: {0}")]
    Illegal(String),
    /// The invocation has reached the most steps that it may take.
    #[error("more than {MAX_STEPS} steps in one invocation; the rest waits for the next delivery")]
    Steps,
}

/// The result of an invocation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One line for each step, in order.
    pub steps: Vec<String>,
    /// The reply to the runner, if it has sent a request.
    pub reply: Option<Reply>,
}

impl Report {
    /// Returns the function's response: the reply to the runner, or the steps.
    pub fn into_response(self) -> Value {
        match self.reply {
            Some(reply) => json!(reply),
            None => json!({ "steps": self.steps }),
        }
    }
}

/// Handles one input and everything that follows from it, with the nouns that the function is built with. A function
/// gets one event per invocation.
///
/// # Errors
/// Returns the first error. Independent inputs of the same invocation are still handled.
pub async fn handle(
    store: &(impl Store + Telemetry),
    executor: &impl Executor,
    nouns: &[&dyn Noun],
    settings: &Settings,
    input: impl Into<Input>,
    now: Timestamp,
) -> Result<Report, HandleError> {
    let mut run = Run { queue: VecDeque::from([input.into()]), ..Run::default() };
    for _ in 0..MAX_STEPS {
        let Some(input) = run.queue.pop_front() else {
            return run.failed.map_or(Ok(run.report), Err);
        };
        let about = input.about();
        let span = log::step(&about);
        // The future is boxed, because with the futures of all clients in it its type is too deep for the compiler's
        // default limit.
        Box::pin(step(store, executor, nouns, settings, (input, about), now, &mut run)).instrument(span).await;
    }
    Err(HandleError::Steps)
}

/// The progress of an invocation.
#[derive(Default)]
struct Run {
    /// The inputs that are yet to be decided.
    queue: VecDeque<Input>,
    report: Report,
    /// The first error.
    failed: Option<HandleError>,
    /// The view of the last step, with its subject.
    held: Option<(Subject, View)>,
}

/// Decides one input, commits, and executes the commands.
async fn step(
    store: &(impl Store + Telemetry),
    executor: &impl Executor,
    nouns: &[&dyn Noun],
    settings: &Settings,
    (input, about): (Input, About),
    now: Timestamp,
    run: &mut Run,
) {
    let name = about.name;
    let decision = match commit(store, nouns, settings, &input, about, now, &mut run.held).await {
        Ok(decision) => decision,
        Err(error) => {
            tracing::error!(error = %chain(&error), "step failed");
            run.failed.get_or_insert(error);
            run.held = None;
            return;
        }
    };
    run.report.steps.push(format!("{name}: {}", decision.answer));
    if let Answer::Illegal(reason) = decision.answer {
        tracing::error!(reason, "illegal");
        run.failed.get_or_insert(HandleError::Illegal(reason));
    }
    if decision.reply.is_some() {
        run.report.reply = decision.reply;
    }
    run.queue.extend(decision.next.into_iter().map(Input::Followup));
    // Outcomes are decided before all waiting inputs, because they finish what was begun.
    let mut outcomes = Vec::new();
    for command in decision.commands {
        match executor.execute(command).await {
            Ok(some) => outcomes.extend(some),
            Err(error) => {
                let text = chain(&error);
                tracing::error!(error = text, "command failed");
                run.queue.extend(failed_try(run.held.as_ref(), text).map(Input::Followup));
                run.failed.get_or_insert(error.into());
            }
        }
    }
    outcomes.into_iter().rev().for_each(|outcome| run.queue.push_front(outcome.into()));
}

/// Returns the followup of a failed command, if its sweep is a file that waits for its answer.
fn failed_try(held: Option<&(Subject, View)>, error: String) -> Option<Followup> {
    let (_, view) = held?;
    let sweep = &view.sweep.as_ref()?.record;
    sweep.stage.is_upload().then(|| Followup::TryFailed { sweep: sweep.id.clone(), error })
}

/// Decides one input and commits the change. It decides again while other invocations change the record.
async fn commit(
    store: &(impl Store + Telemetry),
    nouns: &[&dyn Noun],
    settings: &Settings,
    input: &Input,
    about: About,
    now: Timestamp,
    held: &mut Option<(Subject, View)>,
) -> Result<Decision, HandleError> {
    let name = about.name;
    let Some(subject) = about.subject.clone() else {
        tracing::warn!(?input, "unknown event");
        return Ok(decide(nouns, &View::default(), input, settings, now));
    };
    let mut view = view(store, &subject, held.take(), now).await.map_err(HandleError::Load)?;
    log::loaded(&about, &view);
    let mut conflicts = 0;
    loop {
        let mut decision = decide(nouns, &view, input, settings, now);
        let Some(change) = decision.change.take() else {
            tracing::info!(answer = %decision.answer, "decided");
            committed(store, &view, (input, &about), None, now);
            *held = Some((subject, view));
            return Ok(decision);
        };
        let commands = decision.commands.iter().map(|command| command.name().into()).collect();
        let state = change.record.state();
        let audit = Audit { at: now, event: name.into(), answer: decision.answer.to_string(), state, commands };
        match store.commit(&view, &change, &audit).await {
            Ok(recent) => {
                tracing::info!(answer = %decision.answer, commands = ?audit.commands, "committed");
                committed(store, &view, (input, &about), Some(&change), now);
                view.apply(change, recent);
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

/// Returns the view for an input: that of the last step with what it lacks, or a new one.
async fn view(
    store: &impl Store,
    subject: &Subject,
    held: Option<(Subject, View)>,
    now: Timestamp,
) -> Result<View, Box<dyn Error + Send + Sync>> {
    match (held, subject) {
        (Some((loaded, view)), _) if loaded == *subject => Ok(view),
        (Some((Subject::Settlement(of, _), view)), Subject::Sweep(sweep)) if of == *sweep => {
            Ok(View { trials: Vec::new(), ..view })
        }
        (Some((Subject::Trial(of, at), view)), Subject::Comparison(sweep, index)) if (&of, at) == (sweep, *index) => {
            Ok(View { peers: Some(store.peers(sweep).await?), ..view })
        }
        _other => store.load(subject, now).await,
    }
}

/// Counts the figures of a decision that is final.
fn committed(
    store: &(impl Store + Telemetry),
    view: &View,
    (input, about): (&Input, &About),
    change: Option<&Change>,
    now: Timestamp,
) {
    store.decided(view, input);
    let metrics = measure(view, about, change, now);
    if !metrics.is_empty() {
        store.measured(about, &metrics, now);
    }
}
