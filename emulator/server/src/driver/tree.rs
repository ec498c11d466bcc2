//! Finds the descendants of processes in /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroI32;

use rustix::process::Pid;

use crate::processes::Process;

/// Returns the process groups of these processes and of all their descendants.
pub(super) fn groups_under(mains: &[Pid]) -> BTreeSet<NonZeroI32> {
    members(mains).iter().filter_map(|stat| NonZeroI32::new(stat.group)).collect()
}

/// Returns these processes, all their descendants, and all processes in their own groups.
fn members(mains: &[Pid]) -> Vec<Process> {
    let mains: BTreeSet<i32> = mains.iter().map(|main| main.as_raw_nonzero().get()).collect();
    let all = Process::all();
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for stat in &all {
        children.entry(stat.parent).or_default().push(stat.pid);
    }
    let mut found = mains.clone();
    let mut open: Vec<i32> = mains.iter().copied().collect();
    while let Some(parent) = open.pop() {
        let new = children.get(&parent).into_iter().flatten().filter(|pid| found.insert(**pid));
        open.extend(new.copied().collect::<Vec<_>>());
    }
    all.into_iter().filter(|stat| found.contains(&stat.pid) || mains.contains(&stat.group)).collect()
}

/// Whether no descendant of a process executes, because every thread is stopped or dead.
pub(super) fn is_halted(main: Pid) -> bool {
    members(&[main]).iter().all(|stat| {
        let threads = fs::read_dir(format!("/proc/{}/task", stat.pid)).into_iter().flatten().flatten();
        let halted = |state: char| matches!(state, 'T' | 't' | 'Z' | 'X');
        halted(stat.state)
            && threads.filter_map(|entry| Process::read(&entry.path().join("stat"))).all(|one| halted(one.state))
    })
}
