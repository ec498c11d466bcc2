//! All processes that the command has started, orphans included.
//!
//! A daemon leaves its group and its session, but not its ancestors. The runner becomes the subreaper of all orphans
//! below it (prctl(2), `PR_SET_CHILD_SUBREAPER`), as process 1 of a container is anyway.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use spotsweep_attempt::below;
use tokio::time::sleep;

use crate::processes;
use crate::reading::is_reader;

/// A killed process that waits for a disk is not gone at once.
const ROUNDS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Makes the runner the parent of all later orphans below it.
pub(crate) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills all processes below the runner except its own readers. Returns whether all of them are gone. Call it only when
/// the runner waits for no other child.
pub(crate) async fn kill() -> bool {
    for _ in 0..ROUNDS {
        // Ended processes stay in the list until their exit code is read.
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        let all = processes::all();
        let mut living = below(getpid().as_raw_nonzero().get(), &all);
        living.retain(|pid| !all.iter().any(|process| process.id.pid == *pid && is_reader(process.id)));
        if living.is_empty() {
            return true;
        }
        for pid in living.into_iter().filter_map(Pid::from_raw) {
            // Fails only if the process has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        sleep(PAUSE).await;
    }
    false
}
