//! From the request to stop until nothing of the command runs that is worth waiting for.
//!
//! A process that handles the stop signal gets it, and has the whole grace, with all that it waits for. Where nothing
//! handles it, an early end would save nothing: the training runs on, its next checkpoint is completed, and then it is
//! killed. See "When the instance is taken" in docs/training.md.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use spotsweep_protocol::runner_log::GRACE_OVER;
use spotsweep_seal::CheckpointWatch;
use spotsweep_seal::disk::MountedDisk;
use tokio::time::Instant;

use crate::log::say;
use crate::processes::{self, Id, Process};
use crate::stop::Stop;
use crate::stop_targets::{Target, Tree, targets};
use crate::writeback::{Counters, Writeback};

/// How often the processes and the checkpoints are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// What is to be done about the command now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is still worth waiting for.
    Wait,
    /// It has ended, and all that got the signal.
    Ended,
    /// It is to be killed.
    Kill,
}

/// A stop that is under way.
pub(crate) struct Stopping<'a> {
    stop: &'a Stop,
    /// The command.
    root: i32,
    started: Instant,
    signalled: BTreeSet<Id>,
    /// Helpers of those, which get the signal later.
    helpers: Vec<Target>,
    /// Whether only shells got the signal: their command may not handle the signal.
    only_shells: bool,
    /// Absent where there is no checkpoint to wait for.
    watch: Option<(MountedDisk, CheckpointWatch)>,
    writeback: Writeback,
    /// What was open for writing at the last look at which anything lived.
    open: BTreeSet<PathBuf>,
}

impl<'a> Stopping<'a> {
    /// Starts to stop the command `root`, which writes its checkpoints to a folder of a workspace.
    pub(crate) fn new(stop: &'a Stop, root: i32, checkpoints: Option<&(MountedDisk, PathBuf)>) -> Self {
        let watch = checkpoints.map(|(disk, folder)| {
            let watch = CheckpointWatch::new(disk, folder.clone(), Duration::ZERO);
            (disk.clone(), watch)
        });
        Self {
            stop,
            root,
            started: Instant::now(),
            signalled: BTreeSet::new(),
            helpers: Vec::new(),
            only_shells: true,
            watch,
            writeback: Writeback::new(),
            open: BTreeSet::new(),
        }
    }

    /// Whether any process got the signal. A command that ends without that has ended by itself.
    pub(crate) fn has_signalled(&self) -> bool {
        !self.signalled.is_empty()
    }

    /// The files that were open for writing shortly before the command ended or is killed: they may be cut off.
    pub(crate) fn into_open_files(self) -> BTreeSet<PathBuf> {
        self.open
    }

    /// Looks at everything once; to be repeated every [`TICK`]. `has_ended` says whether the command has.
    pub(crate) fn step(&mut self, has_ended: bool) -> Step {
        let processes = processes::all();
        // A training may start other processes as it ends: those get no signal. One that was still being imported
        // may get its handler only now.
        if self.signalled.is_empty() && !has_ended {
            self.signal_targets(&processes);
        }
        if !has_ended {
            self.open = processes::written_below(self.root, &processes);
        }
        let elapsed = self.started.elapsed();
        // A server may wait for the end of the training that it was taken for: each has half of the grace at least.
        if self.have_ended() || elapsed >= self.stop.grace / 2 {
            let helpers = std::mem::take(&mut self.helpers);
            helpers.into_iter().filter(|helper| processes::lives(helper.id)).for_each(|helper| self.signal(helper.id));
        }
        if has_ended && self.have_ended() {
            return Step::Ended;
        }
        if elapsed >= self.stop.grace {
            say(GRACE_OVER);
            return Step::Kill;
        }
        if self.stop.is_last_moment(elapsed, self.writing(elapsed)) {
            say("what is not yet written to the volume takes all the time that is left: killing the command");
            return Step::Kill;
        }
        if self.signalled.is_empty() || self.only_shells {
            return self.after_checkpoint();
        }
        Step::Wait
    }

    /// How long it takes to write out what the kernel holds. Without a workspace, nothing of it matters.
    fn writing(&mut self, elapsed: Duration) -> Duration {
        let counters = self.watch.as_ref().and_then(|_| Counters::now());
        counters.map(|counters| self.writeback.time(elapsed, counters)).unwrap_or_default()
    }

    /// Nothing handles the signal.
    fn after_checkpoint(&mut self) -> Step {
        let Some((disk, watch)) = &mut self.watch else {
            // Without a workspace nothing that it may still write reaches the next attempt.
            return if self.signalled.is_empty() { Step::Kill } else { Step::Wait };
        };
        match watch.look(disk, &self.open, self.started.elapsed(), self.stop.grace) {
            Some(name) => {
                say(&format!("checkpoint {name} is complete: killing the command, which does not handle the signal"));
                Step::Kill
            }
            None => Step::Wait,
        }
    }

    fn signal_targets(&mut self, processes: &[Process]) {
        let tree = Tree { processes, reads: &processes::reads };
        let (helpers, trainings): (Vec<_>, Vec<_>) =
            targets(self.root, &tree, self.stop.signal).into_iter().partition(|target| target.is_helper);
        // A training that does not handle the signal goes on, and needs its helpers.
        self.helpers = if trainings.iter().all(|target| target.is_shell) { Vec::new() } else { helpers };
        for training in trainings {
            self.only_shells &= training.is_shell;
            self.signal(training.id);
        }
    }

    fn signal(&mut self, id: Id) {
        say(&format!("sending signal {} to process {}", self.stop.signal.as_raw(), id.pid));
        // Fails only where it has just ended.
        let _ = Pid::from_raw(id.pid).map(|pid| kill_process(pid, self.stop.signal));
        self.signalled.insert(id);
    }

    /// Whether all that got the signal have ended.
    fn have_ended(&self) -> bool {
        self.signalled.iter().all(|id| !processes::lives(*id))
    }
}
