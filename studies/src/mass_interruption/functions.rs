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
use spotsweep_simulation::kernel::Delivery;
use spotsweep_simulation::nouns;

use super::Scene;
use super::clock::Clock;

/// The most executions at a time of all functions: an account's default
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
const CONCURRENCY: usize = 1000;

/// The functions' timeout (infra/control-plane.yaml).
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time of a command that is not throttled.
const COMMAND: Duration = Duration::from_millis(50);

/// Invokes the function of an event. Lambda keeps asynchronous events while it has no capacity.
pub(super) async fn deliver(scene: Rc<Scene>, delivery: Delivery) {
    while scene.running.get() >= CONCURRENCY {
        scene.clock().sleep(Duration::from_secs(1)).await;
    }
    if invoke(&scene, &delivery.event).await.is_err() {
        // An event that Lambda gives up is lost here.
        let _ = scene.kernel.borrow_mut().retry(scene.clock().now(), delivery);
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
    let now = scene.clock().now();
    let time = &Invocation { clock: scene.clock(), ends: now + TIMEOUT };
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
    clock: Clock<'a>,
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
