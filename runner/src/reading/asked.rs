//! The runner's end of a reading process.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spotsweep_attempt::Id;

use super::serve::READ;
use super::{Answer, Request, Task};
use crate::processes;
use crate::user::User;

/// How often the runner checks whether an answer is still wanted.
const TICK: Duration = Duration::from_millis(100);
/// How long a process may be silent. It answers after each piece of a file and each folder.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// How many answers may wait in the channel.
const IN_FLIGHT: usize = 64;
/// The longest answer, in bytes.
const MOST_BYTES: u64 = 64 << 20;

static RUNNING: Mutex<BTreeSet<Id>> = Mutex::new(BTreeSet::new());

/// Whether a process is a reading process. The runner ends these itself.
pub(crate) fn is_reader(id: Id) -> bool {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// The process was silent for this long, which is too long.
    Silent(Duration),
    /// The process has ended, because of its limits or of a bug in this program.
    Ended,
    /// The runner does not wait for the answer any more.
    GivenUp,
}

impl fmt::Display for Broken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(time) => write!(to, "reading it takes more than {} s", time.as_secs()),
            Self::Ended => to.write_str("reading it takes too much memory, or a fault of the runner ends it"),
            Self::GivenUp => to.write_str("there was no more time to read it"),
        }
    }
}

/// A reading process. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Asked {
    child: Child,
    id: Option<Id>,
    requests: Sender<String>,
    answers: Receiver<Answer>,
}

impl Asked {
    /// Starts a process for `task`, with the rights of `user`. Without a user, it has the runner's rights without any
    /// capability.
    #[expect(
        clippy::disallowed_methods,
        reason = "it takes the training's rights itself, and the kernel lets no process of that user look into one that \
                  has changed its user (PR_SET_DUMPABLE in prctl(2)), so the devices that it sees are not the training's"
    )]
    pub(super) fn start(task: &Task, user: Option<&User>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(READ).arg(user.map(ToString::to_string).unwrap_or_default());
        // The reading process needs no variable of the environment.
        command.env_clear().current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut child, id) = listed(&mut command)?;
        let lost = || io::Error::other("no pipe");
        let (stdin, stdout) = (child.stdin.take().ok_or_else(lost)?, child.stdout.take().ok_or_else(lost)?);
        let (requests, asked) = channel();
        let (answering, answers) = sync_channel(IN_FLIGHT);
        // Writing blocks too if the process is stopped; ending the process ends the write.
        thread::Builder::new().name("reading".to_owned()).spawn(move || converse(stdin, stdout, &asked, &answering))?;
        let mut started = Self { child, id, requests, answers };
        let ready = started.send(&serde_json::to_string(task)?, SILENCE, &AtomicBool::new(false), &mut |_| ());
        ready.map_err(|broken| io::Error::other(broken.to_string()))?;
        Ok(started)
    }

    /// Sends a request, and hands over the answers. After an error, the process cannot be used any more.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        silence: Duration,
        given_up: &AtomicBool,
        take: &mut dyn FnMut(Answer),
    ) -> Result<(), Broken> {
        // Only a path that is not text cannot be written as JSON.
        let request = serde_json::to_string(request).map_err(|_| Broken::Ended)?;
        self.send(&request, silence, given_up, take)
    }

    fn send(
        &mut self,
        request: &str,
        silence: Duration,
        given_up: &AtomicBool,
        take: &mut dyn FnMut(Answer),
    ) -> Result<(), Broken> {
        self.requests.send(format!("{request}\n")).map_err(|_| Broken::Ended)?;
        let mut last_line = Instant::now();
        loop {
            match self.answers.recv_timeout(TICK.min(silence)) {
                Ok(Answer::Done) => return Ok(()),
                Ok(answer) => {
                    take(answer);
                    last_line = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Broken::Ended),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if given_up.load(Ordering::Relaxed) {
                return Err(Broken::GivenUp);
            }
            if last_line.elapsed() >= silence {
                return Err(Broken::Silent(silence));
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Each fails only if the process has ended and the runner has reaped it with its other children.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(id) = self.id {
            RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }
}

/// Starts a process that [`is_reader`] finds from its first moment, because the list is locked until the process is on
/// it. Otherwise the runner could kill the process at the end of a short training, with the processes that the training
/// leaves.
fn listed(command: &mut Command) -> io::Result<(Child, Option<Id>)> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    let id = processes::id(child.id().cast_signed());
    running.extend(id);
    Ok((child, id))
}

/// Passes requests and answers on until either side ends.
fn converse(mut stdin: ChildStdin, stdout: ChildStdout, asked: &Receiver<String>, answering: &SyncSender<Answer>) {
    let mut stdout = BufReader::new(stdout);
    for request in asked {
        if stdin.write_all(request.as_bytes()).is_err() {
            return;
        }
        loop {
            let mut line = String::new();
            let read = stdout.by_ref().take(MOST_BYTES).read_line(&mut line);
            let Some(answer) = read.ok().and_then(|_| serde_json::from_str::<Answer>(&line).ok()) else { return };
            let is_done = matches!(answer, Answer::Done);
            if answering.send(answer).is_err() {
                return;
            }
            if is_done {
                break;
            }
        }
    }
}
