//! The events of a sweep whose trials all succeed, as the emulated Batch sends them: RUNNABLE, STARTING, RUNNING and
//! SUCCEEDED for each trial, and those of the array job. The sweep has no workspaces, so that a trial's events reach
//! only the table.

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

/// For how many seconds each container runs.
const RUNS_FOR: u64 = 60;

/// Added to the file of a sweep that compares its trials.
const COMPARING: &str = "metric: {name: loss, goal: minimize}\nearly_terminate: {type: hyperband, min_iter: 3}\n";

/// Added to the file of a sweep whose parameters are suggested: its search space.
const SPACE: &str = "metric: {name: loss, goal: minimize}\nparameters:\n  learning_rate: {distribution: \
    log_uniform_values, min: 0.00001, max: 0.1}\n  dropout: {min: 0.0, max: 0.5}\n  layers: {min: 1, max: 8}\n  \
    optimizer: {values: [adam, sgd]}\n";

/// A running sweep that has had no events yet, and the events that it will have.
#[derive(Debug)]
pub struct Course {
    /// The account. Its store has the sweep.
    pub harness: Harness,
    /// The sweep as it is stored.
    pub sweep: Sweep,
    /// The events that Batch sends, in order. Only those are here for which `batch-job-state` has a rule.
    pub events: Vec<Value>,
}

impl Course {
    /// Submits a sweep. The same name and number of trials give the same events.
    ///
    /// # Panics
    /// Panics if the sweep is not submitted.
    pub async fn new(name: &str, trials: u32) -> Self {
        // This World has produced the events. A second harness with the same jobs has not seen them yet.
        let text = grid(trials, "");
        let mut played = harness(name, trials, &text).await;
        let events = played.run_jobs(|_| (RUNS_FOR, 0));
        let is_ours = |event: &Value| played.permissions.function_of(event) == Some("batch-job-state");
        let events = events.into_iter().filter(is_ours).collect();
        Self { events, ..Self::of(harness(name, trials, &text).await) }
    }

    /// Submits a sweep that compares its trials at the steps 3, 9, 27 and so on. It has no events.
    ///
    /// # Panics
    /// Panics if the sweep is not submitted.
    pub async fn comparing(name: &str, trials: u32) -> Self {
        Self::of(harness(name, trials, &grid(trials, COMPARING)).await)
    }

    /// Submits a sweep whose parameters are suggested, and returns its search space too. It has no events.
    ///
    /// # Panics
    /// Panics if the sweep is not submitted.
    pub async fn searching(name: &str, trials: u32) -> (Self, Arc<Search>) {
        let text = format!("method: bayes\nrun_cap: {trials}\n{SPACE}");
        let file = parse(name, "1", text.as_bytes()).expect("the file is right");
        let search = file.search().expect("a search").clone();
        (Self::of(harness(name, trials, &text).await), Arc::new(search))
    }

    /// Writes a new trial into a table.
    ///
    /// # Panics
    /// Panics if the table refuses it.
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

    /// Writes the sweep into a table, in the state in which its trials begin.
    ///
    /// # Panics
    /// Panics if the table refuses it.
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

/// The kind of an event, such as `trial RUNNING` or `array job SUCCEEDED`.
pub fn kind(event: &Value) -> String {
    let detail = &event["detail"];
    let of = if detail["arrayProperties"]["size"].is_null() { "trial" } else { "array job" };
    format!("{of} {}", detail["status"].as_str().unwrap_or("?"))
}

/// Executes no command.
#[derive(Debug, Clone, Copy)]
pub struct Idle;

impl Executor for Idle {
    async fn execute(&self, _command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        Ok(Vec::new())
    }
}

/// A table that writes no figures to the output, in which a test that measures would find them.
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

/// Runs a future that never waits for anything outside, so it needs no runtime.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
