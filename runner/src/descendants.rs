//! Everything that the command has started, and what came of it.
//!
//! A daemon leaves its group and its session, yet not its ancestors: the runner asks the kernel
//! to be given every orphan below it (prctl(2), `PR_SET_CHILD_SUBREAPER`), as process 1 of a
//! container is anyway.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use tokio::time::sleep;

/// A killed process that waits for a disk is not gone at once.
const ROUNDS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// From now on orphans become the runner's own.
pub(crate) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills all that is left below the runner; whether all of it is gone. To be called when the
/// runner waits for nothing else.
pub(crate) async fn kill() -> bool {
    for _ in 0..ROUNDS {
        // Ended ones stay in the list until somebody asks for their exit code.
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        let living = below(getpid().as_raw_nonzero().get(), &processes());
        if living.is_empty() {
            return true;
        }
        for pid in living.into_iter().filter_map(Pid::from_raw) {
            // Fails only where it has just ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        sleep(PAUSE).await;
    }
    false
}

/// Process ids with their parents'.
fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let stats = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| relation(&stat)).collect()
}

/// `pid (name) state parent …`; the name may hold anything, parentheses too (proc(5)).
fn relation(stat: &str) -> Option<(i32, i32)> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let parent = rest.split(' ').nth(1)?.parse().ok()?;
    Some((pid, parent))
}

fn below(ancestor: i32, processes: &[(i32, i32)]) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut generation = vec![ancestor];
    while let Some(parent) = generation.pop() {
        let children = processes.iter().filter(|(_, its_parent)| *its_parent == parent);
        generation.extend(children.map(|(pid, _)| *pid).filter(|pid| found.insert(*pid)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_read_whatever_the_name() {
        assert_eq!(relation("12 (sh) S 7 12 12 0"), Some((12, 7)));
        assert_eq!(relation("13 (a) S 9) (b) Z 12 1"), Some((13, 12)));
        assert_eq!(relation(""), None);
        let processes = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 7)];
        assert_eq!(below(5, &processes), BTreeSet::from([6, 7, 9]));
        assert_eq!(below(9, &processes), BTreeSet::new());
    }
}
