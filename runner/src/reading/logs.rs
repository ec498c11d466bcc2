//! Follows the files in which libraries log metrics.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spotsweep_training_metrics::{Logged, Read};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::asked::{Asked, Broken, SILENCE};
use super::lines::started;
use super::{Answer, Request, Task};
use crate::exit::Failure;
use crate::own_files::OwnFiles;
use crate::progress::last_time;
use crate::unread::Unread;
use crate::user::User;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(5);
/// How long the training waits for the first look.
const AT_START: Duration = Duration::from_secs(60);
/// How many processes are started. For each one that ends, one more file is left out.
const MOST_STARTS: u32 = 8;

/// The log files of one attempt.
#[derive(Debug)]
pub(crate) struct Logs {
    roots: Vec<(PathBuf, PathBuf)>,
    user: Option<User>,
    /// The metric that the sweep file names.
    named: Option<String>,
    /// The time of the newest recorded value, in seconds since 1970.
    since: f64,
    skipped: BTreeSet<String>,
    /// The files that are not searched for metrics.
    pub(crate) unread: Unread,
    asked: Option<Asked>,
    starts_left: u32,
    given_up: Arc<AtomicBool>,
}

impl Logs {
    /// Makes a follower for files below `roots`, before the training starts at `started` as `user`. Existing values are
    /// not this attempt's, but those logged after the record's last line were not recorded.
    pub(crate) async fn at_start(
        (roots, user): (Vec<(PathBuf, PathBuf)>, Option<User>),
        named: Option<String>,
        own: OwnFiles,
        started: SystemTime,
    ) -> Result<Self, Failure> {
        let failed = |source: io::Error| Failure::System("look for files of metrics", source);
        let recorded = spawn_blocking(move || own.metrics()?.map(last_time).transpose());
        let recorded = recorded.await.map_err(|broken| failed(broken.into()))?.map_err(failed)?.flatten();
        let started = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let since = recorded.unwrap_or(started);
        let given_up = Arc::new(AtomicBool::new(false));
        let (skipped, unread) = (BTreeSet::new(), Unread::default());
        let mut logs = Self {
            roots,
            user,
            named,
            since,
            skipped,
            unread,
            asked: None,
            starts_left: MOST_STARTS,
            given_up: Arc::clone(&given_up),
        };
        let mut looking = spawn_blocking(move || {
            while logs.asked.is_none() && logs.starts_left > 0 && !logs.given_up.load(Ordering::Relaxed) {
                logs.start();
            }
            logs
        });
        let looked = match timeout(AT_START, &mut looking).await {
            Ok(looked) => looked,
            Err(_elapsed) => {
                given_up.store(true, Ordering::Relaxed);
                looking.await
            }
        };
        let mut logs = looked.map_err(|broken| failed(broken.into()))?;
        if given_up.swap(false, Ordering::Relaxed) {
            logs.unread.add("files of metrics: what lies in the folders takes too long to read".to_owned());
            logs.starts_left = 0;
        }
        Ok(logs)
    }

    /// Hands over values as they are logged, until `stop`. The returned flag ends the reading earlier.
    pub(crate) fn follow(
        mut self,
        found: mpsc::Sender<Logged>,
        stop: Receiver<()>,
    ) -> (JoinHandle<()>, Arc<AtomicBool>) {
        let given_up = Arc::clone(&self.given_up);
        let following = spawn_blocking(move || {
            // The channel closes at the end of the training or of the runner.
            while stop.recv_timeout(EVERY).is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout) {
                self.look(Read::During, &found);
            }
            self.look(Read::Last, &found);
        });
        (following, given_up)
    }

    /// Starts a process, which passes over the existing values.
    fn start(&mut self) {
        self.starts_left -= 1;
        let (roots, named, skipped) = (self.roots.clone(), self.named.clone(), self.skipped.clone());
        self.asked = started(&Task::Logs { roots, since: self.since, named, skipped }, self.user.as_ref());
        self.ask(Read::Before, &mut |_| ());
    }

    fn look(&mut self, when: Read, found: &mpsc::Sender<Logged>) {
        if self.asked.is_none() && self.starts_left > 0 {
            self.start();
        }
        self.ask(when, &mut |logged| {
            // Fails only if the recorder has already ended.
            let _ = found.blocking_send(logged);
        });
    }

    /// If a process ends while it reads a file, that file is left out from then on.
    fn ask(&mut self, when: Read, take: &mut dyn FnMut(Logged)) {
        let Some(mut asked) = self.asked.take() else { return };
        let (mut newest, mut current) = (self.since, String::new());
        let answered = asked.ask(&Request::Look(when), SILENCE, &self.given_up, &mut |answer| match answer {
            Answer::Logged(logged) => {
                newest = logged.time.map_or(newest, |time| newest.max(time));
                take(logged);
            }
            Answer::Reading(path) => current = path,
            Answer::Unread { what, is_other: false } => self.unread.add(what),
            Answer::Unread { what, is_other: true } => self.unread.add_other(what),
            _ => {}
        });
        self.since = newest;
        match answered {
            Ok(()) => self.asked = Some(asked),
            Err(Broken::GivenUp) => self.unread.add("the end of a file of metrics, which is too long".to_owned()),
            Err(broken) => {
                self.unread.add(format!("{current} from now on: {broken}"));
                self.skipped.insert(current);
            }
        }
    }
}
