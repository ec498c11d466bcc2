//! Who has started whom, as /proc tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroI32;
use std::path::Path;

use rustix::process::Pid;

/// A process as `/proc/<pid>/stat` shows it (proc_pid_stat(5)).
struct Stat {
    pid: i32,
    state: char,
    parent: i32,
    group: i32,
}

fn read(path: &Path) -> Option<Stat> {
    let text = fs::read_to_string(path).ok()?;
    // The name stands in parentheses and may hold any characters.
    let (start, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some(Stat {
        pid: start.split_once(' ')?.0.parse().ok()?,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

fn all() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit));
    processes.filter_map(|entry| read(&entry.path().join("stat"))).collect()
}

/// The process groups of these processes and of everything below them.
pub(super) fn groups_under(mains: &[Pid]) -> BTreeSet<NonZeroI32> {
    members(mains).iter().filter_map(|stat| NonZeroI32::new(stat.group)).collect()
}

/// These processes, everything below them, and everything in their own groups.
fn members(mains: &[Pid]) -> Vec<Stat> {
    let mains: BTreeSet<i32> = mains.iter().map(|main| main.as_raw_nonzero().get()).collect();
    let all = all();
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

/// Whether nothing under a process executes: every thread is stopped, or dead.
pub(super) fn is_halted(main: Pid) -> bool {
    members(&[main]).iter().all(|stat| {
        let threads = fs::read_dir(format!("/proc/{}/task", stat.pid)).into_iter().flatten().flatten();
        let halted = |state: char| matches!(state, 'T' | 't' | 'Z' | 'X');
        halted(stat.state) && threads.filter_map(|entry| read(&entry.path().join("stat"))).all(|one| halted(one.state))
    })
}
