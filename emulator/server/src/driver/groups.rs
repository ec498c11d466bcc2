//! The processes of all running attempts.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

use super::tree;
use spotsweep_world::AttemptKey;

/// Times that the tree is looked at again because it has grown meanwhile.
const MOST_ROUNDS: usize = 10;

/// A container that runs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// Its main process, which leads a process group of its own.
    pub(super) main: Pid,
    /// The instance that it runs on.
    pub(super) instance: String,
    /// Its root folder.
    pub(super) root: PathBuf,
}

/// The containers that are running.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups {
    running: Arc<Mutex<HashMap<AttemptKey, Running>>>,
    /// How many want an instance's containers halted.
    halted: Arc<Mutex<HashMap<String, usize>>>,
}

impl Groups {
    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptKey, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Halts everything on an instance, until [`Groups::resume`] is called as often.
    pub(super) fn halt(&self, instance: &str) {
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        *halted.entry(instance.to_owned()).or_default() += 1;
        self.each_group_on(instance, Signal::STOP);
    }

    /// Lets everything on an instance go on, if nobody else wants it halted.
    pub(super) fn resume(&self, instance: &str) {
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        let left = halted.get(instance).map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            halted.insert(instance.to_owned(), left);
        } else {
            halted.remove(instance);
            self.each_group_on(instance, Signal::CONT);
        }
    }

    pub(super) fn add(&self, attempt: AttemptKey, main: Pid, instance: &str, root: &Path) {
        let running = Running { main, instance: instance.to_owned(), root: root.to_owned() };
        self.lock().insert(attempt, running);
    }

    /// Whether a running container has this root folder.
    pub(super) fn has_root(&self, root: &Path) -> bool {
        self.lock().values().any(|running| running.root == root)
    }

    /// Sends a signal to an attempt's container: SIGKILL to all that it has started, as the end of a
    /// container does, others to its main process and what shares its group.
    pub(super) fn signal(&self, attempt: &AttemptKey, signal: Signal) {
        if let Some(running) = self.lock().get(attempt) {
            running.signal(signal);
        }
    }

    /// The container's main process has ended: so does everything it left behind.
    pub(super) fn end(&self, attempt: &AttemptKey) {
        if let Some(running) = self.lock().remove(attempt) {
            send(running.main, Signal::KILL);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn kill_all(&self) {
        let mains: Vec<Pid> = self.lock().values().map(|running| running.main).collect();
        each_group(&mains, Signal::KILL);
    }

    fn each_group_on(&self, instance: &str, signal: Signal) {
        let mains: Vec<Pid> = self.on(instance).iter().map(|running| running.main).collect();
        each_group(&mains, signal);
    }

    /// What runs on an instance.
    pub(super) fn on(&self, instance: &str) -> Vec<Running> {
        self.lock().values().filter(|running| running.instance == instance).cloned().collect()
    }
}

impl Running {
    pub(super) fn signal(&self, signal: Signal) {
        if signal == Signal::KILL {
            each_group(&[self.main], Signal::KILL);
        } else {
            send(self.main, signal);
        }
    }
}

/// Sends a signal to all that these main processes have started. They come first: what they have started dies or halts
/// before it can start more. One look at all processes serves all of them, because it takes milliseconds.
fn each_group(mains: &[Pid], signal: Signal) {
    let mut reached = BTreeSet::new();
    let mut next: BTreeSet<_> = mains.iter().map(|main| main.as_raw_nonzero()).collect();
    for _round in 0..MOST_ROUNDS {
        // Before the signal: a killed process can no longer be asked for its children.
        next.extend(tree::groups_under(mains));
        let new: Vec<_> = next.difference(&reached).copied().collect();
        if new.is_empty() {
            return;
        }
        for group in new {
            if let Some(pid) = Pid::from_raw(group.get()) {
                send(pid, signal);
            }
            reached.insert(group);
        }
    }
}

fn send(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // No such process: it has ended by itself.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(?group, ?signal, %error, "a job cannot be signalled"),
    }
}
