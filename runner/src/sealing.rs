//! Seals the workspace in the background while the command runs.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::process::getpid;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Seal;
use spotsweep_seal::disk::{MountedDisk, StopReading};
use spotsweep_seal::{QUIET, Sealer};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep};

use crate::log::say;
use crate::processes;

/// A sealer at work.
pub(crate) struct Sealing {
    running: JoinHandle<Result<Sealer, JoinError>>,
    stop: oneshot::Sender<()>,
    /// The newest seal.
    pub(crate) newest: watch::Receiver<Option<Seal>>,
    next: NextRound,
    reading: StopReading,
}

/// Asks for a seal before its time.
#[derive(Debug, Clone)]
pub(crate) struct NextRound {
    wanted: Arc<Notify>,
    /// When the last round began that has ended.
    began: watch::Receiver<Option<Instant>>,
}

impl NextRound {
    /// Has a round begin now, and waits for its end.
    pub(crate) async fn now(mut self) {
        let asked = Instant::now();
        self.wanted.notify_one();
        // Fails only where the sealer is gone.
        let _ = self.began.wait_for(|began| *began >= Some(asked)).await;
    }
}

/// Until the first checkpoint has been sealed for a whole round, files are looked at so often: a training may write over
/// it in its first seconds, and nothing is kept that could take its place.
const AT_FIRST: Duration = Duration::from_secs(1);

impl Sealing {
    /// Seals every `every`, and more often at first, until it is stopped.
    pub(crate) fn start(mut sealer: Sealer, disk: &MountedDisk, every: Duration) -> Self {
        let (disk, reading) = disk.stoppable();
        let (stop, mut stopped) = oneshot::channel();
        let (publisher, newest) = watch::channel(sealer.summary());
        let (rounds, began) = watch::channel(None);
        let wanted = Arc::new(Notify::new());
        let next = NextRound { wanted: Arc::clone(&wanted), began };
        let running = tokio::spawn(async move {
            let (was_sealed, mut first_sealed) = (sealer.summary().is_some(), None);
            loop {
                let is_settled = was_sealed || first_sealed.is_some_and(|at: Instant| at.elapsed() >= every);
                let wait = if is_settled { every } else { AT_FIRST.min(every) };
                tokio::select! {
                    _ = &mut stopped => return Ok(sealer),
                    () = sleep(wait) => {}
                    () = wanted.notified() => {}
                }
                let began = Instant::now();
                let disk = disk.clone();
                let round = tokio::task::spawn_blocking(move || {
                    let outcome = seal_resting(&mut sealer, &disk, QUIET.min(wait));
                    (sealer, outcome)
                });
                let outcome;
                (sealer, outcome) = round.await?;
                match outcome {
                    Ok(true) => {
                        first_sealed.get_or_insert(began);
                        publisher.send_replace(sealer.summary());
                    }
                    Ok(false) => {}
                    Err(error) => say(&format!("not yet sealed, trying again: {}", chain(&error))),
                }
                rounds.send_replace(Some(began));
            }
        });
        Self { running, stop, newest, next, reading }
    }

    /// Asks for a seal before its time.
    pub(crate) fn next_round(&self) -> NextRound {
        self.next.clone()
    }

    /// Ends the round that is underway: what it has not read yet is read again by the last seal, newest first.
    pub(crate) async fn stop(self) -> io::Result<Sealer> {
        // Fails only where the sealer is gone, which the line after tells.
        let _ = self.stop.send(());
        self.reading.stop();
        Ok(self.running.await??)
    }
}

fn seal_resting(sealer: &mut Sealer, disk: &MountedDisk, quiet: Duration) -> io::Result<bool> {
    let open = || {
        let own = getpid().as_raw_nonzero().get();
        processes::written_below(own, &processes::all())
    };
    sealer.seal_resting(disk, quiet, now_ns(), &open)
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
