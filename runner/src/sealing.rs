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

/// A sealer that runs in the background.
pub(crate) struct Sealing {
    running: JoinHandle<Result<Sealer, JoinError>>,
    stop: oneshot::Sender<()>,
    /// The newest seal.
    pub(crate) newest: watch::Receiver<Option<Seal>>,
    next: NextRound,
    reading: StopReading,
}

/// Requests a seal before its time.
#[derive(Debug, Clone)]
pub(crate) struct NextRound {
    wanted: Arc<Notify>,
    /// When the last completed round began.
    began: watch::Receiver<Option<Instant>>,
}

impl NextRound {
    /// Starts a round now, and waits for its end.
    pub(crate) async fn now(mut self) {
        let asked = Instant::now();
        self.wanted.notify_one();
        // Fails only if the sealer has ended.
        let _ = self.began.wait_for(|began| *began >= Some(asked)).await;
    }
}

/// How often files are looked at until the first checkpoint has been sealed for a whole round. A training may write
/// over its checkpoint in its first seconds, and there is no kept copy yet that could replace it.
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
            let mut is_late = false;
            loop {
                let is_settled = was_sealed || first_sealed.is_some_and(|at: Instant| at.elapsed() >= every);
                let wait = match (is_settled, is_late) {
                    (false, _) => AT_FIRST.min(every),
                    (true, true) => QUIET.min(every),
                    (true, false) => every,
                };
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
                // A round may come while a save is under way, again and again.
                is_late = matches!(outcome, Ok(false)) && sealer.has_unsealed();
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

    /// A handle that requests a seal before its time.
    pub(crate) fn next_round(&self) -> NextRound {
        self.next.clone()
    }

    /// Ends the round that is under way. The last seal reads again what the round has not read yet, newest first.
    pub(crate) async fn stop(self) -> io::Result<Sealer> {
        // Fails only if the sealer has ended, which the next line reports.
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

/// The current time in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
