//! The training command: started, watched, stopped.
//!
//! The runner waits for *any* child rather than for this one: as process 1 of a container it
//! inherits every orphan, and reaping them is the same system call.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::{Failure, say};
use crate::launch::LAUNCH;
use crate::signals::Signals;

/// A running training command, the leader of its own process group.
pub(crate) struct Child {
    pid: Pid,
    changes: unix::Signal,
    code: Option<i32>,
}

/// Why the command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// On its own account.
    Itself,
    /// The container was asked to stop.
    Stopped,
    /// `trial-claim` refused a report: the trial is another attempt's.
    Fenced(String),
}

/// The end of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code; 128 + signal where a signal ended it, as shells say it.
    pub(crate) code: i32,
    pub(crate) cause: Cause,
}

impl Child {
    /// Starts `command`. Must be called on the main thread: the child dies with the thread that
    /// started it (`PR_SET_PDEATHSIG`, see prctl(2)), and only that one lives as long as the runner.
    pub(crate) fn start(
        command: &[String],
        variables: Vec<(String, String)>,
    ) -> Result<(Self, ChildStdout, ChildStderr), Failure> {
        let failed = |source| Failure::System("start the command", source);
        // Before the start, so that no end is missed.
        let changes = signal(SignalKind::child()).map_err(failed)?;
        let mut started = Command::new(std::env::current_exe().map_err(failed)?)
            .arg(LAUNCH)
            .arg(std::process::id().to_string())
            .args(command)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let lost = || failed(io::Error::other("no pipe or process id"));
        let stdout = started.stdout.take().ok_or_else(lost)?;
        let stderr = started.stderr.take().ok_or_else(lost)?;
        let pid = i32::try_from(started.id()).ok().and_then(Pid::from_raw).ok_or_else(lost)?;
        let child = Self { pid, changes, code: None };
        let stdout = ChildStdout::from_std(stdout).map_err(failed)?;
        let stderr = ChildStderr::from_std(stderr).map_err(failed)?;
        Ok((child, stdout, stderr))
    }

    /// Waits for the end; on the way passes a stop signal on, or stops a fenced attempt.
    /// Whatever the command has left running in its group is killed.
    pub(crate) async fn supervise(
        mut self,
        signals: &mut Signals,
        fenced: oneshot::Receiver<String>,
        grace: Duration,
    ) -> Result<Ended, Failure> {
        let (signal, cause) = tokio::select! {
            code = self.wait() => {
                self.kill_group(Signal::KILL);
                return Ok(Ended { code: code?, cause: Cause::Itself });
            }
            signal = signals.next() => (signal, Cause::Stopped),
            Ok(reason) = fenced => (Signal::TERM, Cause::Fenced(reason)),
        };
        say(&format!("stopping the command with signal {}, {grace:?} of grace", signal.as_raw()));
        self.kill_group(signal);
        let code = match tokio::time::timeout(grace, self.wait()).await {
            Ok(code) => code,
            Err(_elapsed) => {
                say("the grace is over: killing the command");
                self.kill_group(Signal::KILL);
                self.wait().await
            }
        };
        self.kill_group(Signal::KILL);
        Ok(Ended { code: code?, cause })
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

    /// Takes every ended child, ours and adopted ones.
    fn reap(&mut self) -> Result<(), Failure> {
        while self.code.is_none() {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => self.code = code(status),
                Ok(Some(_orphan)) => {}
                Ok(None) => break,
                Err(errno) => return Err(Failure::System("wait for the command", errno.into())),
            }
        }
        Ok(())
    }

    fn kill_group(&self, signal: Signal) {
        // The only way to fail is that nobody is left.
        let _ = kill_process_group(self.pid, signal);
    }
}

/// `None` while the process lives (stopped or continued).
fn code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
}
