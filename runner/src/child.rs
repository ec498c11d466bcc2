//! Starts, supervises and stops the training command.
//!
//! The runner waits for *any* child and not only for this one. As process 1 of a container it inherits every orphan,
//! and the same system call reaps them.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use spotsweep_attempt::Stop;
use spotsweep_protocol::runner_log;
use spotsweep_seal::AtEnd;
use spotsweep_seal::disk::MountedDisk;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::config::signal_name;
use crate::descendants;
use crate::exit::Failure;
use crate::launch::Launcher;
use crate::log::say;
use crate::stack_dump;
use crate::stop::{Order, wants_stacks};
use crate::stopping::{Step, Stopping, TICK};

/// A running training command, the leader of its own process group.
pub(crate) struct Child {
    pid: Pid,
    changes: unix::Signal,
    code: Option<i32>,
}

/// The end of the command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; 128 + signal if a signal ended it, as in shells.
    pub(crate) code: i32,
    /// Whether it ended without being stopped.
    pub(crate) is_by_itself: bool,
    /// The files that it had open for writing shortly before it ended. Empty unless it was stopped.
    pub(crate) open: BTreeSet<PathBuf>,
}

impl Ended {
    /// Whether it may have ended in the middle of a write: by a signal, or with an error after the stop signal.
    pub(crate) fn may_be_cut_off(&self) -> bool {
        self.code > 128 || (!self.is_by_itself && self.code != 0)
    }

    /// The state in which it has left its files at `now_ns`, in nanoseconds since 1970.
    pub(crate) fn at_end(&self, now_ns: i64) -> AtEnd {
        AtEnd::new(self.open.clone(), now_ns, self.may_be_cut_off())
    }
}

impl Child {
    /// Starts `command` in `folder`. Must be called on the main thread: the child dies with the thread that started it
    /// (`PR_SET_PDEATHSIG`, see prctl(2)), and only the main thread lives as long as the runner.
    pub(crate) fn start(
        command: &[String],
        variables: Vec<(String, String)>,
        launcher: &Launcher,
        folder: Option<&Path>,
    ) -> Result<(Self, ChildStdout, ChildStderr), Failure> {
        let failed = |source| Failure::System("start the command", source);
        // Registered before the start, so that no end is missed.
        let changes = signal(SignalKind::child()).map_err(failed)?;
        let mut own = launcher.command(command).map_err(failed)?;
        own.current_dir(folder.unwrap_or(Path::new(".")));
        own.envs(variables).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut started = own.spawn().map_err(failed)?;
        let lost = || failed(io::Error::other("no pipe or process id"));
        let stdout = started.stdout.take().ok_or_else(lost)?;
        let stderr = started.stderr.take().ok_or_else(lost)?;
        let pid = i32::try_from(started.id()).ok().and_then(Pid::from_raw).ok_or_else(lost)?;
        let child = Self { pid, changes, code: None };
        let stdout = ChildStdout::from_std(stdout).map_err(failed)?;
        let stderr = ChildStderr::from_std(stderr).map_err(failed)?;
        Ok((child, stdout, stderr))
    }

    /// Waits for the end, and stops the command when `stop` is ready. It kills every process that the command has left
    /// running. `orders` may shorten the grace meanwhile. `checkpoints` is the folder of checkpoints on a workspace.
    pub(crate) async fn supervise(
        mut self,
        stop: impl Future<Output = Stop>,
        orders: watch::Receiver<Option<Order>>,
        checkpoints: Option<&(MountedDisk, PathBuf)>,
    ) -> Result<Ended, Failure> {
        let ended = tokio::select! {
            code = self.wait() => Ended { code: code?, is_by_itself: true, open: BTreeSet::new() },
            stop = stop => self.stop(stop, &orders, checkpoints).await?,
        };
        self.kill_group();
        if !descendants::kill().await {
            say("something that the command started cannot be killed");
        }
        Ok(ended)
    }

    /// Asks it to save and stop, and kills it when that takes too long.
    async fn stop(
        &mut self,
        stop: Stop,
        orders: &watch::Receiver<Option<Order>>,
        checkpoints: Option<&(MountedDisk, PathBuf)>,
    ) -> Result<Ended, Failure> {
        let root = self.pid.as_raw_nonzero().get();
        let dumps = wants_stacks(&stop) && stack_dump::take(root);
        if dumps {
            self.wait_for(stack_dump::LIMIT).await?;
        }
        let mut stopping = Stopping::new(&stop, root, checkpoints);
        let mut is_said = false;
        loop {
            self.reap()?;
            let ends = orders.borrow().as_ref().and_then(|order| order.ends);
            ends.into_iter().for_each(|ends| stopping.shorten(ends));
            let step = stopping.step(self.code.is_some());
            if !is_said {
                let (signal, seconds) = (signal_name(stop.signal), stop.grace.as_secs_f64());
                say(&runner_log::stopping(&signal, seconds, stopping.has_signalled()));
                is_said = true;
            }
            match step {
                Step::Ended => break,
                Step::Kill => {
                    self.kill_group();
                    break;
                }
                Step::Wait => {
                    tokio::select! {
                        _ = self.changes.recv() => {}
                        () = sleep(TICK) => {}
                    }
                }
            }
        }
        let is_by_itself = !dumps && self.code.is_some_and(|code| stopping.has_finished_by_itself(code));
        let open = stopping.into_open_files();
        let code = self.wait().await?;
        Ok(Ended { code, is_by_itself, open })
    }

    async fn wait(&mut self) -> Result<i32, Failure> {
        loop {
            self.reap()?;
            if let Some(code) = self.code {
                return Ok(code);
            }
            self.changes.recv().await;
        }
    }

    /// Waits for its end, at most for `limit`.
    async fn wait_for(&mut self, limit: Duration) -> Result<(), Failure> {
        match timeout(limit, self.wait()).await {
            Ok(ended) => ended.map(|_code| ()),
            Err(_elapsed) => Ok(()),
        }
    }

    /// Reaps every ended child, the runner's own and adopted ones.
    fn reap(&mut self) -> Result<(), Failure> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.code = code(status),
                Ok(Some(_orphan)) => {}
                Ok(None) | Err(Errno::CHILD) => break,
                Err(errno) => return Err(Failure::System("wait for the command", errno.into())),
            }
        }
        Ok(())
    }

    fn kill_group(&self) {
        // Fails only if the group has no process left.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Returns `None` while the process lives (stopped or continued).
fn code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
}
