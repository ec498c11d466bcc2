//! Ends a program and its process group when its user is dropped.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Kills a program and its process group when dropped.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group of a program that was started as its leader.
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails only if the group has no process left.
        let _ = self.0.map(|group| kill_process_group(group, Signal::KILL));
    }
}
