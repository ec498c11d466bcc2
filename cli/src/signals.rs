//! Ends a command in order at Ctrl-C and SIGTERM: what it has started is stopped first.

use tokio::signal::unix::{SignalKind, signal};

use spotsweep_protocol::failure::{Context, Failure};

/// Waits for SIGINT, SIGTERM or SIGHUP, and returns its name.
pub(crate) async fn requested_stop() -> Result<&'static str, Failure> {
    let listen = |kind| signal(kind).context(|| "cannot listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = hangup.recv() => "SIGHUP",
    })
}

/// Runs `work` until it ends or a signal asks to stop. Then `work` is dropped, and the failure names the signal.
pub(crate) async fn unless_stopped<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        outcome = work => outcome,
        signal = requested_stop() => Err(Failure::new(format!("stopped by {}", signal?))),
    }
}
