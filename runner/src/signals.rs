//! The signals that ask a container to stop.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// SIGTERM (Batch, ECS, `docker stop`) and SIGINT (a person).
pub(crate) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// Catches both signals, so that neither ends the runner by itself. Must be called early: process 1 of a container
    /// has no default actions, so a signal without a handler would be lost.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
        }
    }
}
