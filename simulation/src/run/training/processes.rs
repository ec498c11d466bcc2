//! The processes of a training: its starter, its helper and its data loaders.

use jiff::Timestamp;
use rustix::process::Signal;
use spotsweep_attempt::{Id, Process, Work};
use spotsweep_world::ebs::FileSystem;

use super::habits::{OnSignal, StartedBy};
use super::{Phase, SIGTERM_CODE, Training};

/// The process numbers, in the order of the starts. A training without a starter has the first one.
pub(in crate::run) const ROOT: i32 = 1;
const HELPER: i32 = 2;
const TRAINING: i32 = 3;
const LOADERS: [i32; 2] = [4, 5];

/// The exit code of a training after a data loader or a helper has ended.
const CRASHED: i32 = 1;

impl Training {
    /// All living processes, as `/proc` shows them.
    pub(in crate::run) fn processes(&self) -> Vec<Process> {
        let helper = self.helper().filter(|_| !self.helper_has_ended);
        if self.ended().is_some() {
            return helper.into_iter().collect();
        }
        let training = self.own_number();
        let loaders = LOADERS.into_iter().filter(|_| self.habits.has_loaders).map(|pid| self.script(pid, training));
        let parent = if training == ROOT { 0 } else { ROOT };
        self.starter().into_iter().chain(helper).chain([self.script(training, parent)]).chain(loaders).collect()
    }

    fn own_number(&self) -> i32 {
        if self.habits.started_by == StartedBy::Itself { ROOT } else { TRAINING }
    }

    /// The training or a copy of it.
    fn script(&self, pid: i32, parent: i32) -> Process {
        // Python itself handles SIGINT.
        let handled: &[Signal] =
            if self.habits.on_signal == OnSignal::NotHandled { &[Signal::INT] } else { &[Signal::INT, Signal::TERM] };
        let work = Work { ticks: 30, writes: 40, bytes: 600 };
        Process::new(pid, parent, "python3").with_arguments("train.py").handling(handled).that_did(work)
    }

    fn starter(&self) -> Option<Process> {
        let launcher = || Process::new(ROOT, 0, "python3").with_arguments("launch.py").handling(&[Signal::INT]);
        match self.habits.started_by {
            StartedBy::Itself => None,
            StartedBy::Shell | StartedBy::ShellWithHelper => Some(Process::new(ROOT, 0, "sh").waiting()),
            StartedBy::ShellWithTrap => Some(Process::new(ROOT, 0, "bash").handling(&[Signal::TERM]).waiting()),
            StartedBy::Forwarder => Some(Process::new(ROOT, 0, "timeout").handling(&[Signal::TERM]).waiting()),
            StartedBy::Launcher => Some(launcher().waiting()),
            StartedBy::PollingLauncher => Some(launcher()),
            StartedBy::LauncherWithHelper => Some(launcher().waiting_for(TRAINING)),
        }
    }

    /// Whether the training has a helper that started before it, and ends when the helper ends.
    pub(in crate::run) fn has_helper(&self) -> bool {
        self.helper().is_some()
    }

    /// A server or a display that the training needs.
    fn helper(&self) -> Option<Process> {
        let server = |program| Process::new(HELPER, ROOT, program).handling(&[Signal::TERM]);
        match self.habits.started_by {
            StartedBy::ShellWithHelper => Some(server("redis-server").in_background()),
            StartedBy::LauncherWithHelper => Some(server("python3").with_arguments("server.py")),
            StartedBy::Itself
            | StartedBy::Shell
            | StartedBy::ShellWithTrap
            | StartedBy::Forwarder
            | StartedBy::Launcher
            | StartedBy::PollingLauncher => None,
        }
    }

    /// The stop signal arrives at one process.
    pub(in crate::run) fn signal_process(&mut self, id: Id, files: &FileSystem, now: Timestamp) {
        match id.pid {
            pid if pid == self.own_number() => self.signal(files, now),
            ROOT => self.signal_starter(files, now),
            HELPER => {
                self.helper_has_ended = true;
                self.crash(CRASHED);
            }
            // PyTorch: "DataLoader worker (pid …) exited unexpectedly".
            _loader => self.crash(CRASHED),
        }
    }

    fn signal_starter(&mut self, files: &FileSystem, now: Timestamp) {
        match self.habits.started_by {
            // The trap runs after the training has ended (bash(1), "Signals").
            StartedBy::ShellWithTrap => {}
            // `timeout` sends the signal to its whole process group (timeout(1)).
            StartedBy::Forwarder if self.habits.has_loaders => self.crash(CRASHED),
            StartedBy::Forwarder => self.signal(files, now),
            // All processes of a container end with its first process.
            _without_handler => self.crash(SIGTERM_CODE),
        }
    }

    fn crash(&mut self, code: i32) {
        if self.ended().is_none() {
            self.writes.clear();
            self.phase = Phase::Ended { code };
        }
    }
}
