//! The processes of all running attempts.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

use super::tree;
use spotsweep_world::AttemptKey;

/// The most looks at the tree of processes, which are repeated while it grows.
const MOST_ROUNDS: usize = 10;

#[derive(Debug, Clone)]
pub(super) struct Running {
    /// The main process, which leads a process group of its own.
    pub(super) main: Pid,
    pub(super) instance: String,
    pub(super) root: PathBuf,
}

/// All running containers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups {
    running: Arc<Mutex<HashMap<AttemptKey, Running>>>,
    /// The number of callers that have halted each instance's containers.
    halted: Arc<Mutex<HashMap<String, usize>>>,
}

impl Groups {
    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptKey, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Halts all processes on an instance, until [`Groups::resume`] has been called as often.
    pub(super) fn halt(&self, instance: &str) {
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        *halted.entry(instance.to_owned()).or_default() += 1;
        self.each_group_on(instance, Signal::STOP);
    }

    /// Resumes the processes on an instance, if no other caller has halted it.
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

    pub(super) fn has_root(&self, root: &Path) -> bool {
        self.lock().values().any(|running| running.root == root)
    }

    /// Sends a signal to an attempt's container. SIGKILL goes to all processes that it has started, as at a container's
    /// end. Other signals go to its main process and that one's group.
    pub(super) fn signal(&self, attempt: &AttemptKey, signal: Signal) {
        if let Some(running) = self.lock().get(attempt) {
            running.signal(signal);
        }
    }

    /// Kills the remaining processes of a container whose main process has ended.
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

/// Sends a signal to all processes below these main processes. A killed process no longer shows its children, so
/// everything is halted before anything is killed. A process that leaves its group meanwhile is found by its parent.
fn each_group(mains: &[Pid], signal: Signal) {
    if signal != Signal::KILL {
        send_below(mains, signal);
        return;
    }
    for group in send_below(mains, Signal::STOP) {
        send(group, Signal::KILL);
    }
}

/// Sends a signal to all groups below these main processes, and to these first, so that they cannot start more. One
/// look at all processes serves all of them, because it takes milliseconds.
fn send_below(mains: &[Pid], signal: Signal) -> Vec<Pid> {
    let mut reached = BTreeSet::new();
    let mut next: BTreeSet<_> = mains.iter().map(|main| main.as_raw_nonzero()).collect();
    for _round in 0..MOST_ROUNDS {
        let new: Vec<_> = next.difference(&reached).copied().collect();
        if new.is_empty() {
            break;
        }
        for group in new {
            if let Some(pid) = Pid::from_raw(group.get()) {
                send(pid, signal);
            }
            reached.insert(group);
        }
        next.extend(tree::groups_under(mains));
    }
    reached.into_iter().filter_map(|group| Pid::from_raw(group.get())).collect()
}

fn send(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // There is no such process, because it has ended by itself.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(?group, ?signal, %error, "a job cannot be signalled"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::processes::Process;

    /// A script that starts one process after the other, each of which leaves its process group at once.
    const SPAWNS: &str = "while :; do setsid sleep 7203 & done";

    fn sleepers() -> Vec<i32> {
        let command = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let all = Process::all().into_iter().filter(|process| !process.is_dead());
        all.map(|process| process.pid).filter(|pid| command(*pid).ends_with(b"7203\0")).collect()
    }

    #[tokio::test]
    async fn a_process_that_is_leaving_its_group_is_killed_with_the_rest() {
        for _ in 0..6 {
            let mut shell =
                Command::new("sh").args(["-c", SPAWNS]).process_group(0).stdin(Stdio::null()).spawn().unwrap();
            while sleepers().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let main = Pid::from_raw(shell.id().cast_signed()).unwrap();
            each_group(&[main], Signal::KILL);
            shell.wait().unwrap();
            // On a busy machine a killed process takes some time to end.
            let mut left = sleepers();
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                left = sleepers();
                if left.is_empty() {
                    break;
                }
            }
            for pid in left.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                send(pid, Signal::KILL);
            }
            assert!(left.is_empty(), "{left:?} are left");
        }
    }
}
