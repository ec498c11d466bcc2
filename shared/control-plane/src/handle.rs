//! load → decide → commit → execute, until no event is left.

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

/// Steps of one invocation. A sweep of 100 parts takes about 110; 1 000 overdue records a few
/// thousand. Past this the rest waits for the next delivery: nothing loops for ever.
const MAX_STEPS: usize = 50_000;

/// How often one step is decided anew because somebody else changed the record.
const MAX_CONFLICTS: usize = 10;

/// Executes commands: [`crate::execute::Services`].
pub trait Executor: Sync {
    /// Does it, and says what came of it.
    ///
    /// # Errors
    /// What may be tried again later. What will never succeed is an outcome instead.
    fn execute(&self, command: Command) -> impl Future<Output = Result<Vec<Outcome>, ExecuteError>> + Send;
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

/// Handles one input, in a function an event, and everything that follows from it, with the nouns that the function is
/// built with.
///
/// # Errors
/// The first thing that failed; independent events of the same invocation are still handled.
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
        // Boxed: with every client's futures in it, its type is too deep for the compiler's default limit.
        Box::pin(step(store, executor, nouns, settings, (input, about), now, &mut run)).instrument(span).await;
    }
    Err(HandleError::Steps)
}

/// How far an invocation is.
#[derive(Default)]
struct Run {
    /// What has yet to be decided.
    queue: VecDeque<Input>,
    report: Report,
    /// The first thing that failed.
    failed: Option<HandleError>,
    /// What the last step has loaded.
    held: Option<(Subject, View)>,
}

/// Decides one input and carries out what follows from it.
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
    // Outcomes go before whatever else waits: they finish what has been begun.
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

/// What a failed command means to a file that waits for its answer.
fn failed_try(held: Option<&(Subject, View)>, error: String) -> Option<Followup> {
    let (_, view) = held?;
    let sweep = &view.sweep.as_ref()?.record;
    sweep.stage.is_upload().then(|| Followup::TryFailed { sweep: sweep.id.clone(), error })
}

/// Decides one input and commits the change, anew as long as others change the record meanwhile.
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

/// What an input is about: what the last step has left, completed by what it lacks.
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

/// Counts what holds from now on.
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
