//! Reads the processes below the runner from `/proc` (proc(5)).
//!
//! A process chooses its own name and command line, so neither has to be UTF-8. The kernel also cuts names at 15 bytes,
//! possibly within a letter.
#![expect(clippy::disallowed_methods, reason = "/proc is the kernel's")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use spotsweep_attempt::{Id, Process, Work, below, python_launcher};

use crate::kernel;

/// The kernel function in which a process sleeps that waits for the end of a child: wait4(2) and waitid(2).
/// `futex_do_wait` is a different function.
const WAITS: &str = "do_wait";
/// Numbers of wait4(2) and waitid(2), for kernels that do not name the function.
const WAIT_CALLS: [&str; 2] = if cfg!(target_arch = "aarch64") { ["260", "95"] } else { ["61", "247"] };
/// The first argument of waitid(2) that waits for one child.
const P_PID: i64 = 1;

/// Every living process of the machine or the container.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The process that has this number now.
pub(crate) fn id(pid: i32) -> Option<Id> {
    Stat::parse(&kernel::text(format!("/proc/{pid}/stat")).ok()?).map(|stat| stat.id)
}

/// The files that the process `root` and all below it have open for writing.
pub(crate) fn written_below(root: i32, processes: &[Process]) -> BTreeSet<PathBuf> {
    below(root, processes).into_iter().chain([root]).flat_map(written_files).collect()
}

/// Whether `reader` has the file open that `writer` prints to, as `tee` and `tail -f` do. An output that both share
/// does not count.
pub(crate) fn reads(reader: &Process, writer: &Process) -> bool {
    let output = |process: &Process| [1, 2].map(|number| opened(process.id.pid, &number.to_string()));
    let own = output(reader);
    let is_read = |file: &PathBuf| !own.iter().flatten().chain([&PathBuf::from("/dev/null")]).any(|own| own == file);
    let printed: Vec<_> = output(writer).into_iter().flatten().filter(is_read).collect();
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", reader.id.pid)) else {
        return false;
    };
    let mut open = entries.flatten().filter_map(|entry| opened(reader.id.pid, entry.file_name().to_str()?));
    !printed.is_empty() && open.any(|file| printed.contains(&file))
}

/// The file that a process has open under this number.
fn opened(pid: i32, number: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()
}

/// The files that a process has open for writing.
fn written_files(pid: i32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let is_written = |name: &str| {
        let info = kernel::text(format!("/proc/{pid}/fdinfo/{name}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        // Octal; the last two bits are the access mode: 0 reads, 1 writes, 2 does both.
        flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
    };
    let open = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_written));
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

fn read(pid: i32) -> Option<Process> {
    let file = |name: &str| kernel::text(format!("/proc/{pid}/{name}"));
    let stat = Stat::parse(&file("stat").ok()?).filter(|stat| !stat.ended)?;
    let status = file("status").ok()?;
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
    };
    let sleeps_in = file("wchan").unwrap_or_default();
    let call = file("syscall").unwrap_or_default();
    let waits = sleeps_in == WAITS || call.split(' ').next().is_some_and(|call| WAIT_CALLS.contains(&call));
    let waits_for = waited_for(&call);
    let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let own = executable.file_name().and_then(|name| name.to_str()).map_or(stat.name, str::to_owned);
    let command = (executable, file("cmdline").unwrap_or_default());
    let program = python_launcher(&command.1).unwrap_or(own);
    // A signal that is both blocked and ignored is not handled.
    let (caught, ignored) = (mask("SigCgt:"), mask("SigIgn:"));
    let handled = caught | (mask("SigBlk:") & !ignored);
    // The work of the main thread. The counts of the whole process include children that have ended (wait_task_zombie).
    let work = Work::parse(stat.ticks, &file(&format!("task/{pid}/io")).unwrap_or_default());
    let (id, parent) = (stat.id, stat.parent);
    Some(Process { id, parent, handled, caught, ignored, waits, waits_for, program, command, work })
}

/// The one child that a sleeping process waits for, from its system call and the arguments (`/proc/PID/syscall`).
fn waited_for(call: &str) -> Option<i32> {
    let mut words = call.split(' ');
    let call = words.next()?;
    let mut argument = || i64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let first = argument()?;
    let pid = match WAIT_CALLS.iter().position(|wait| *wait == call)? {
        0 => first,
        _ => argument().filter(|_| first == P_PID)?,
    };
    i32::try_from(pid).ok().filter(|pid| *pid > 0)
}

/// A line `pid (name) state parent …`. The name may contain anything, parentheses too.
struct Stat {
    id: Id,
    name: String,
    parent: i32,
    ended: bool,
    ticks: u64,
}

/// The indexes of the CPU times among the fields that follow the name: in user mode, and in the kernel.
const TICKS: std::ops::Range<usize> = 11..13;
/// The index of the start time among the fields that follow the name.
const STARTED: usize = 19;

impl Stat {
    fn parse(stat: &str) -> Option<Self> {
        let (before, rest) = stat.rsplit_once(") ")?;
        let (pid, name) = before.split_once(" (")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        Some(Self {
            id: Id { pid: pid.parse().ok()?, started: fields.get(STARTED)?.parse().ok()? },
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            ended: matches!(*fields.first()?, "Z" | "X" | "x"),
            ticks: fields.get(TICKS)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum(),
        })
    }
}

#[cfg(test)]
mod tests;
