//! Stops the command: looks at its processes, and carries out the decisions of `spotsweep_attempt`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use spotsweep_attempt::{Held, Hold, Id, Look, Process, Stop, Then, below};
use spotsweep_protocol::runner_log::{GRACE_OVER, NO_TIME_TO_SAVE};
use spotsweep_seal::CheckpointWatch;
use spotsweep_seal::disk::MountedDisk;
use tokio::time::Instant;

use crate::log::say;
use crate::processes;
use crate::writeback::{Counters, Writeback};

/// How often the runner looks at the processes and the checkpoints.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// What has to be done with the command now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait, because the command may still finish its work.
    Wait,
    /// The command has ended, and so have all processes that got the signal.
    Ended,
    /// Kill the command.
    Kill,
}

/// A stop that is under way.
pub(crate) struct Stopping<'a> {
    stop: &'a Stop,
    /// The command's process id.
    root: i32,
    started: Instant,
    decisions: spotsweep_attempt::Stopping,
    /// Absent if there is no checkpoint to wait for.
    watch: Option<(MountedDisk, CheckpointWatch)>,
    /// The processes that are stopped for a last look before they are killed.
    hold: Hold,
    /// The processes before any was stopped, because a stopped process does not show what it waits for.
    free: Vec<Process>,
    writeback: Writeback,
    /// The files that were open for writing at the last look at which any process lived.
    open: BTreeSet<PathBuf>,
}

impl<'a> Stopping<'a> {
    /// Starts to stop the command `root`, which writes its checkpoints to a folder of a workspace.
    pub(crate) fn new(stop: &'a Stop, root: i32, checkpoints: Option<&(MountedDisk, PathBuf)>) -> Self {
        let watch = checkpoints.map(|(disk, folder)| {
            let watch = CheckpointWatch::new(disk, folder.clone(), Duration::ZERO);
            (disk.clone(), watch)
        });
        let decisions = spotsweep_attempt::Stopping::new(root, stop.signal, stop.grace);
        let (hold, writeback, open) = (Hold::default(), Writeback::new(), BTreeSet::new());
        Self { stop, root, started: Instant::now(), decisions, watch, hold, free: Vec::new(), writeback, open }
    }

    /// Sets an earlier time at which the command is killed at the latest.
    pub(crate) fn shorten(&mut self, ends: Instant) {
        self.decisions.shorten(ends.saturating_duration_since(self.started));
    }

    /// Whether any process got the signal.
    pub(crate) fn has_signalled(&self) -> bool {
        self.decisions.has_signalled()
    }

    /// Whether a command that has ended with `code` has trained to its end meanwhile.
    pub(crate) fn has_finished_by_itself(&self, code: i32) -> bool {
        self.decisions.has_finished_by_itself(code)
    }

    /// The files that were open for writing shortly before the command ended or was killed: they may be cut off.
    pub(crate) fn into_open_files(self) -> BTreeSet<PathBuf> {
        self.open
    }

    /// Looks at everything once; has to be repeated every [`TICK`]. `has_ended` says whether the command has ended.
    pub(crate) fn step(&mut self, has_ended: bool) -> Step {
        let processes = processes::all();
        if !has_ended {
            self.open = processes::written_below(self.root, &processes);
        }
        let elapsed = self.started.elapsed();
        let (writing, has_workspace) = (self.writing(elapsed), self.watch.is_some());
        if !self.hold.is_holding() {
            self.free.clone_from(&processes);
        }
        let look = Look { processes: &self.free, reads: &processes::reads, has_ended, elapsed, writing, has_workspace };
        let decision = self.decisions.decide(&look);
        decision.signals.into_iter().for_each(|id| self.signal(id));
        if decision.then != Then::KillAtCheckpoint {
            send(self.hold.release(), Signal::CONT);
        }
        match decision.then {
            Then::Wait => Step::Wait,
            Then::Ended => Step::Ended,
            Then::Kill => Step::Kill,
            Then::KillAtCheckpoint => self.after_checkpoint(&processes),
            Then::KillAfterGrace => {
                say(GRACE_OVER);
                Step::Kill
            }
            Then::KillToWriteOut => {
                say(NO_TIME_TO_SAVE);
                Step::Kill
            }
        }
    }

    /// How long it takes to write out what the kernel holds. Without a workspace, that time does not matter.
    fn writing(&mut self, elapsed: Duration) -> Duration {
        let counters = self.watch.as_ref().and_then(|_| Counters::now());
        counters.map(|counters| self.writeback.time(elapsed, counters)).unwrap_or_default()
    }

    fn after_checkpoint(&mut self, processes: &[Process]) -> Step {
        let elapsed = self.started.elapsed();
        let complete =
            self.watch.as_mut().and_then(|(disk, watch)| watch.look(disk, &self.open, elapsed, self.stop.grace));
        let below = below(self.root, processes);
        let command = processes.iter().map(|process| process.id);
        let command: Vec<Id> = command.filter(|id| id.pid == self.root || below.contains(&id.pid)).collect();
        match (self.hold.decide(&command, complete.is_some(), elapsed), complete) {
            (Held::Kill, Some(name)) => {
                say(&format!("checkpoint {name} is complete: killing the command, which does not handle the signal"));
                return Step::Kill;
            }
            (Held::Stop(new), _) => send(new, Signal::STOP),
            (Held::Continue(held), _) => send(held, Signal::CONT),
            (Held::Wait | Held::Kill, _) => {}
        }
        Step::Wait
    }

    fn signal(&self, id: Id) {
        say(&format!("sending signal {} to process {}", self.stop.signal.as_raw(), id.pid));
        // Fails only if the process has just ended.
        let _ = Pid::from_raw(id.pid).map(|pid| kill_process(pid, self.stop.signal));
    }
}

/// Sends `signal` to each process. It fails only if a process has just ended.
fn send(ids: Vec<Id>, signal: Signal) {
    for pid in ids.into_iter().filter_map(|id| Pid::from_raw(id.pid)) {
        let _ = kill_process(pid, signal);
    }
}
