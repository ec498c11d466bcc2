//! Starts and stops containers on the World's orders, and reports how they end.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Core;
use super::process::{Host, exit_code};
use spotsweep_world::{AttemptKey, Effect, Start, World};

/// An awaited result.
enum Done {
    Exited(AttemptKey, io::Result<ExitStatus>),
    GraceOver(AttemptKey),
}

/// The containers of all instances.
pub(crate) struct Jobs {
    core: Arc<Core>,
    host: Host,
    waiting: JoinSet<Done>,
}

impl Jobs {
    pub(crate) fn new(core: Arc<Core>, host: Host) -> Self {
        Jobs { core, host, waiting: JoinSet::new() }
    }

    /// Runs until `closed`; then kills all containers and waits for their end.
    pub(crate) async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Effect>, mut closed: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                Some(order) = orders.recv() => self.execute(order),
                Some(Ok(done)) = self.waiting.join_next() => self.report(done),
                // An error means that the emulator has been dropped, which is the same.
                _ = closed.wait_for(|closed| *closed) => break,
            }
        }
        self.host.groups.kill_all();
        // It does not wait for the grace of containers that have ended.
        while !self.host.groups.is_empty()
            && let Some(done) = self.waiting.join_next().await
        {
            match done {
                Ok(Done::Exited(attempt, _)) => self.host.groups.end(&attempt),
                Ok(Done::GraceOver(_)) | Err(_) => {}
            }
        }
    }

    fn execute(&mut self, order: Effect) {
        match order {
            Effect::Start(start) => self.start(start),
            Effect::Stop { attempt, grace } => self.stop(attempt, grace),
            Effect::Kill(attempt) => self.host.groups.signal(&attempt, Signal::KILL),
            // The delivery gets the events.
            Effect::Emit(_) => {}
        }
    }

    fn start(&mut self, start: Start) {
        match self.host.start(&start) {
            Ok(mut child) => {
                self.waiting.spawn(async move { Done::Exited(start.attempt, child.wait().await) });
            }
            Err(reason) => self.on_world(|world, now| {
                world.job_failed_to_start(&start.attempt, &reason, now);
            }),
        }
    }

    /// Stops a container like `docker stop`.
    fn stop(&mut self, attempt: AttemptKey, grace: Duration) {
        self.host.groups.signal(&attempt, Signal::TERM);
        self.waiting.spawn(async move {
            tokio::time::sleep(grace).await;
            Done::GraceOver(attempt)
        });
    }

    fn report(&mut self, done: Done) {
        match done {
            Done::GraceOver(attempt) => self.host.groups.signal(&attempt, Signal::KILL),
            Done::Exited(attempt, Ok(status)) => {
                self.host.groups.end(&attempt);
                self.on_world(|world, now| world.job_exited(&attempt, exit_code(status), now));
            }
            Done::Exited(attempt, Err(error)) => {
                self.host.groups.end(&attempt);
                let reason = format!("CannotInspectContainerError: {error}");
                self.on_world(|world, now| world.job_failed_to_start(&attempt, &reason, now));
            }
        }
    }

    fn on_world(&self, what: impl FnOnce(&mut World, Timestamp)) {
        self.core.with(what);
    }
}
