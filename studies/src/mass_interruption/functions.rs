//! Functions on Lambda, with its limits and retries.

use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use spotsweep_control_plane::calls::Wait;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event;
use spotsweep_control_plane::handle::{ExecuteError, Executor, handle};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_protocol::claim::Reply;
use spotsweep_simulation::nouns;

use super::clock::Clock;
use super::{RECONCILE, Scene};

/// The most executions at a time of all functions: an account's default
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
const CONCURRENCY: usize = 1000;

/// The functions' timeout (infra/control-plane.yaml).
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time from an event to its function. EventBridge states "typically half a second".
const DELIVERY: Duration = Duration::from_millis(500);

/// Lambda's retries of an asynchronous invocation (fact 34).
const RETRIES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];

/// The time of a command that is not throttled.
const COMMAND: Duration = Duration::from_millis(50);

/// Delivers an event to its function until it is handled or Lambda gives up.
pub(super) async fn deliver(scene: Rc<Scene>, event: Value) {
    if scene.harness.permissions.function_of(&event).is_none() {
        return;
    }
    scene.clock.sleep(DELIVERY).await;
    for wait in RETRIES.into_iter().map(Some).chain([None]) {
        // Lambda keeps asynchronous events while it has no capacity.
        while scene.running.get() >= CONCURRENCY {
            scene.clock.sleep(Duration::from_secs(1)).await;
        }
        if invoke(&scene, &event).await.is_ok() {
            return;
        }
        if let Some(wait) = wait {
            scene.clock.sleep(wait).await;
        }
    }
}

/// Sends the schedule's events.
pub(super) async fn schedule(scene: Rc<Scene>) {
    loop {
        scene.clock.sleep(RECONCILE).await;
        let tick = scene.harness.reconcile();
        scene.begin(deliver(Rc::clone(&scene), tick));
    }
}

/// Invokes the function for a runner; `None` if Lambda has no capacity or the invocation fails.
pub(super) async fn asked(scene: &Scene, request: &Value) -> Option<Reply> {
    if scene.running.get() >= CONCURRENCY {
        return None;
    }
    invoke(scene, request).await.ok().flatten()
}

async fn invoke(scene: &Scene, raw: &Value) -> Result<Option<Reply>, ()> {
    let event = event::parse(raw.clone()).map_err(|_| ())?;
    scene.running.set(scene.running.get() + 1);
    let now = scene.clock.now();
    let time = &Invocation { clock: &scene.clock, ends: now + TIMEOUT };
    let executor = Timed { executor: scene.harness.cloud.executor(time), time };
    let (nouns, settings) = (nouns::of(&event), scene.harness.settings());
    let report = handle(&scene.harness.store, &executor, nouns, settings, event, now).await;
    scene.harness.calls.take();
    scene.running.set(scene.running.get() - 1);
    match report {
        Ok(report) => Ok(report.reply),
        Err(_) => {
            scene.failed.set(scene.failed.get() + 1);
            Err(())
        }
    }
}

/// The clock and the timeout of an invocation.
#[derive(Debug)]
struct Invocation<'a> {
    clock: &'a Clock,
    /// The time at which Lambda ends the invocation.
    ends: Timestamp,
}

impl Wait for Invocation<'_> {
    async fn wait(&self, time: Duration) -> bool {
        let left = Duration::try_from(self.ends.duration_since(self.clock.now())).unwrap_or_default();
        self.clock.sleep(time.min(left)).await;
        time < left
    }
}

/// An executor whose commands take time.
struct Timed<'a, E> {
    executor: E,
    time: &'a Invocation<'a>,
}

impl<E: Executor> Executor for Timed<'_, E> {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        let timed_out = |command| ExecuteError { command, source: "the function has timed out".into() };
        let name = command.name();
        if !self.time.wait(COMMAND).await {
            return Err(timed_out(name));
        }
        let executed = self.executor.execute(command).await;
        // Lambda may have ended the invocation while it waited.
        if self.time.clock.now() >= self.time.ends { Err(timed_out(name)) } else { executed }
    }
}
