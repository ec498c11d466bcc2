//! A program in a process group of its own. So Ctrl-C at the terminal does not reach the program before it reaches this
//! process, and all descendants of the program can be ended with it.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A running program and its descendants. Dropping it kills them.
#[derive(Debug)]
pub struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    /// Starts the command.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self { child, leader })
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // The process is reaped: its number may soon belong to another program.
        self.leader = None;
        Ok(status)
    }

    /// The exit status of the program, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.leader = None;
        }
        Ok(status)
    }

    /// Kills the whole group at once.
    pub async fn kill(mut self) {
        self.signal_all();
        // The exit status of a killed program is of no use.
        let _ = self.child.wait().await;
    }

    /// Lets the program run on after this process ends, and returns its pid.
    pub fn detach(mut self) -> Option<i32> {
        self.leader.take().map(Pid::as_raw_nonzero).map(Into::into)
    }

    fn signal_all(&mut self) {
        if let Some(leader) = self.leader.take() {
            // An error means that no process is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal_all();
    }
}
