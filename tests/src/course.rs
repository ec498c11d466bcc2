//! A sweep's way through Batch: the events that the emulated Batch sends while all its trials succeed, for each of them
//! RUNNABLE, STARTING, RUNNING, SUCCEEDED, and the array job's own. Without workspaces, so that a trial's events reach
//! nothing but the table.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_aws::DynamoStore;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::handle::{ExecuteError, Executor};
use spotsweep_control_plane::input::Subject;
use spotsweep_control_plane::metrics::Telemetry;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::store::{Audit, Change, CommitError, History, Record, Store, Versioned, View};
use spotsweep_protocol::ids::SweepId;
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_sweep_file::{Search, parse};

/// Seconds that each container runs.
const RUNS_FOR: u64 = 60;

/// What a sweep that compares its trials has more.
const COMPARING: &str = "metric: {name: loss, goal: minimize}\nearly_terminate: {type: hyperband, min_iter: 3}\n";

/// What a sweep searches in whose parameters are suggested.
const SPACE: &str = "metric: {name: loss, goal: minimize}\nparameters:\n  learning_rate: {distribution: \
    log_uniform_values, min: 0.00001, max: 0.1}\n  dropout: {min: 0.0, max: 0.5}\n  layers: {min: 1, max: 8}\n  \
    optimizer: {values: [adam, sgd]}\n";

/// A sweep that runs and has had no events yet, and those that it will have.
#[derive(Debug)]
pub struct Course {
    /// Its account; the store has the sweep.
    pub harness: Harness,
    /// The sweep as stored.
    pub sweep: Sweep,
    /// What Batch sends, in order, as far as `batch-job-state` has a rule for it.
    pub events: Vec<Value>,
}

impl Course {
    /// The same for the same name and number of trials.
    ///
    /// # Panics
    /// Where the sweep is not submitted.
    pub async fn new(name: &str, trials: u32) -> Self {
        // The World has the events; a twin of the harness, with the same jobs, does not have them yet.
        let text = grid(trials, "");
        let mut played = harness(name, trials, &text).await;
        let events = played.run_jobs(|_| (RUNS_FOR, 0));
        let is_ours = |event: &Value| played.permissions.function_of(event) == Some("batch-job-state");
        let events = events.into_iter().filter(is_ours).collect();
        Self { events, ..Self::of(harness(name, trials, &text).await) }
    }

    /// Of a sweep that compares its trials at the steps 3, 9, 27 and so on, without events.
    ///
    /// # Panics
    /// Where the sweep is not submitted.
    pub async fn comparing(name: &str, trials: u32) -> Self {
        Self::of(harness(name, trials, &grid(trials, COMPARING)).await)
    }

    /// Of a sweep whose parameters are suggested, and what they are searched in; without events.
    ///
    /// # Panics
    /// Where the sweep is not submitted.
    pub async fn searching(name: &str, trials: u32) -> (Self, Arc<Search>) {
        let text = format!("method: bayes\nrun_cap: {trials}\n{SPACE}");
        let file = parse(name, "1", text.as_bytes()).expect("the file is right");
        let search = file.search().expect("a search").clone();
        (Self::of(harness(name, trials, &text).await), Arc::new(search))
    }

    /// Writes a trial into a table, in which it is new.
    ///
    /// # Panics
    /// Where the table does not take it.
    pub async fn put(&self, store: &impl Store, trial: Trial) {
        let sweep = Some(Versioned { record: self.sweep.clone(), version: 1, due: None, recent: History::new() });
        let (at, record) = (self.harness.now, Record::Trial(Box::new(trial)));
        let event = "trial-reported".into();
        let audit = Audit { at, event, answer: String::new(), state: record.state(), commands: vec![] };
        let change = Change { record, due: Some(at), figures_only: false, reserved: Vec::new() };
        store.commit(&View { sweep, ..View::default() }, &change, &audit).await.expect("the table takes the trial");
    }

    fn of(harness: Harness) -> Self {
        let sweep = harness.store.state().0.pop().expect("the sweep is stored");
        Self { harness, sweep, events: Vec::new() }
    }

    /// Writes the sweep into a table, as it is when its trials begin.
    ///
    /// # Panics
    /// Where the table does not take it.
    pub async fn begin(&self, store: &impl Store) {
        let (at, record) = (self.harness.now, Record::Sweep(Box::new(self.sweep.clone())));
        let audit =
            Audit { at, event: "plan-written".into(), answer: String::new(), state: record.state(), commands: vec![] };
        let change = Change { record, due: Some(at), figures_only: false, reserved: Vec::new() };
        store.commit(&View::default(), &change, &audit).await.expect("the table takes the sweep");
    }
}

fn grid(trials: u32, more: &str) -> String {
    format!("method: grid\n{more}parameters:\n  seed: {{distribution: int_uniform, min: 1, max: {trials}}}\n")
}

async fn harness(name: &str, trials: u32, text: &str) -> Harness {
    let harness = Harness::with(1, &Account { max_vcpus: trials, ..Account::default() });
    let dropped = harness.put(&format!("{name}.yaml"), text);
    harness.deliver(&dropped).await.expect("the file is submitted");
    harness.calls.take();
    harness
}

/// What an event is of: `trial RUNNING`, `array job SUCCEEDED`.
pub fn kind(event: &Value) -> String {
    let detail = &event["detail"];
    let of = if detail["arrayProperties"]["size"].is_null() { "trial" } else { "array job" };
    format!("{of} {}", detail["status"].as_str().unwrap_or("?"))
}

/// Carries out nothing.
#[derive(Debug, Clone, Copy)]
pub struct Idle;

impl Executor for Idle {
    async fn execute(&self, _command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        Ok(Vec::new())
    }
}

/// A table that publishes no figures: who measures in the same process would find them in its output.
#[derive(Debug, Clone)]
pub struct Unpublished(pub DynamoStore);

impl Store for Unpublished {
    async fn load(&self, subject: &Subject, now: Timestamp) -> Result<View, Box<dyn Error + Send + Sync>> {
        self.0.load(subject, now).await
    }

    async fn peers(&self, sweep: &SweepId) -> Result<BTreeMap<u32, Peer>, Box<dyn Error + Send + Sync>> {
        self.0.peers(sweep).await
    }

    async fn commit(&self, view: &View, change: &Change, audit: &Audit) -> Result<History, CommitError> {
        self.0.commit(view, change, audit).await
    }
}

impl Telemetry for Unpublished {}

/// Drives what never waits for anything outside, without a runtime.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
