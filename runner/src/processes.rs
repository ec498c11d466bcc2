//! What `/proc` says about the processes below the runner (proc(5)).
//!
//! A process chooses its own name and command line, so neither has to be UTF-8. The kernel cuts names at 15 bytes besides,
//! which may be within a letter.
#![expect(clippy::disallowed_methods, reason = "/proc is the kernel's")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::kernel;
use crate::work::Work;

/// The function of the kernel in which a process sleeps that waits for the end of a child: wait4(2) and waitid(2). A
/// `futex_do_wait` is another one.
const WAITS: &str = "do_wait";
/// Numbers of wait4(2) and waitid(2), for kernels that do not name the function.
const WAIT_CALLS: [&str; 2] = if cfg!(target_arch = "aarch64") { ["260", "95"] } else { ["61", "247"] };
/// The first argument of waitid(2) that waits for one child.
const P_PID: i64 = 1;
/// A shell runs a trap only when its foreground command has ended (bash(1), "Signals").
const SHELLS: [&str; 8] = ["ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"];
/// Programs that start another one and pass signals on to it, also to one that does not handle them. timeout(1) and
/// dumb-init send them to a whole process group, in which they end a training's data loaders as well. Open MPI's
/// `mpirun` (`prterun`, `orterun`) ends its processes at once, and micromamba after three seconds.
const FORWARDERS: [&str; 24] = [
    "catatonit",
    "dumb-init",
    "env",
    "hydra_pmi_proxy",
    "make",
    "mamba",
    "micromamba",
    "mpiexec",
    "mpiexec.gforker",
    "mpiexec.hydra",
    "mpirun",
    "nice",
    "nohup",
    "orterun",
    "prted",
    "prterun",
    "script",
    "setsid",
    "stdbuf",
    "sudo",
    "timeout",
    "tini",
    "uv",
    "xargs",
];

/// Python programs and modules that start trainings. `torchrun` sends SIGTERM to the process group of each one
/// (`torch/distributed/elastic/multiprocessing/subprocess_handler`), in which data loaders are as well, and so does
/// Paddle (`paddle/distributed/launch/utils/process_context.py`). `conda run` waits for the training's output, and not
/// for its end.
const PYTHON_LAUNCHERS: [&str; 12] = [
    "accelerate",
    "accelerate-launch",
    "accelerate.commands.launch",
    "conda",
    "deepspeed",
    "deepspeed.launcher.launch",
    "fabric",
    "fleetrun",
    "paddle.distributed.launch",
    "torch.distributed.launch",
    "torch.distributed.run",
    "torchrun",
];

/// Tells a process from a later one with the same number. The order is that of their starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    /// Clock ticks from the kernel's start to the process's.
    started: u64,
    pub(crate) pid: i32,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: Id,
    pub(crate) parent: i32,
    /// Signals with a handler, and those that a thread takes by sigwait(3): bit 0 is signal 1.
    handled: u64,
    /// Signals with a handler alone.
    caught: u64,
    /// Signals that it ignores.
    ignored: u64,
    /// Whether its main thread waits for the end of a child.
    pub(crate) waits: bool,
    /// The child that it waits for, if of only one.
    pub(crate) waits_for: Option<i32>,
    /// The program's name; for a launcher that is a Python program, the launcher's.
    program: String,
    /// The program's file, and its arguments: a process that was only forked has those of its parent.
    command: (PathBuf, String),
    /// Without its children.
    pub(crate) work: Work,
}

impl Process {
    /// Whether it reacts to `signal` in a way of its own.
    pub(crate) fn handles(&self, signal: Signal) -> bool {
        has(self.handled, signal)
    }

    /// Whether it has a handler for `signal`, so that the signal cannot end it without its doing.
    pub(crate) fn catches(&self, signal: Signal) -> bool {
        has(self.caught, signal)
    }

    /// Whether a shell may have started it in the background: it ignores the signals of the keyboard then (POSIX, 2.11
    /// "Signals and Error Handling" of the shell). Some programs handle one of the two again.
    pub(crate) fn is_background(&self) -> bool {
        has(self.ignored, Signal::INT) || has(self.ignored, Signal::QUIT)
    }

    /// Whether it was started as a program of its own, where a data loader is a copy of its parent.
    pub(crate) fn is_other_than(&self, parent: &Self) -> bool {
        self.command != parent.command
    }

    /// Whether both run the same script, both in the foreground or both in the background: ranks of one training, or
    /// trainings with different parameters.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let parts = |process: &Self| (process.command.0.clone(), process.script(), process.ignored);
        parts(self) == parts(other)
    }

    /// The first argument that is no option, without numbers: a file, a module or code.
    fn script(&self) -> String {
        let script = self.command.1.split('\0').skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
        script.replace(|letter: char| letter.is_ascii_digit(), "")
    }

    /// Whether it is a shell.
    pub(crate) fn is_shell(&self) -> bool {
        SHELLS.contains(&self.program.as_str())
    }

    /// Whether its program does nothing but start another one and pass signals on.
    pub(crate) fn is_forwarder(&self) -> bool {
        FORWARDERS.contains(&self.program.as_str()) || PYTHON_LAUNCHERS.contains(&self.program.as_str())
    }
}

/// Whether a mask has the signal: bit 0 is signal 1.
fn has(mask: u64, signal: Signal) -> bool {
    let bit = u32::try_from(signal.as_raw() - 1).unwrap_or(u32::MAX);
    mask.checked_shr(bit).unwrap_or(0) & 1 == 1
}

/// Every living process of the machine or the container.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Which process has this number now.
pub(crate) fn id(pid: i32) -> Option<Id> {
    Stat::parse(&kernel::text(format!("/proc/{pid}/stat")).ok()?).map(|stat| stat.id)
}

/// Whether the process lives. One that has ended and was not waited for does not.
pub(crate) fn lives(id: Id) -> bool {
    let stat = kernel::text(format!("/proc/{}/stat", id.pid));
    stat.ok().and_then(|stat| Stat::parse(&stat)).is_some_and(|stat| stat.id == id && !stat.ended)
}

/// The ids of all below `ancestor`.
pub(crate) fn below(ancestor: i32, processes: &[Process]) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut generation = vec![ancestor];
    while let Some(parent) = generation.pop() {
        let children = processes.iter().filter(|process| process.parent == parent);
        generation.extend(children.map(|process| process.id.pid).filter(|pid| found.insert(*pid)));
    }
    found
}

/// The files that the process `root` and all below it have open for writing.
pub(crate) fn written_below(root: i32, processes: &[Process]) -> BTreeSet<PathBuf> {
    below(root, processes).into_iter().chain([root]).flat_map(written_files).collect()
}

/// Whether `reader` has open what `writer` prints to, as `tee` and `tail -f` have. Their common output does not count.
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
    // A signal that is blocked and ignored has no taker.
    let (caught, ignored) = (mask("SigCgt:"), mask("SigIgn:"));
    let handled = caught | (mask("SigBlk:") & !ignored);
    // Of the main thread: what is counted for the whole process includes children that have ended (wait_task_zombie).
    let work = Work::parse(stat.ticks, &file(&format!("task/{pid}/io")).unwrap_or_default());
    let (id, parent) = (stat.id, stat.parent);
    Some(Process { id, parent, handled, caught, ignored, waits, waits_for, program, command, work })
}

/// The one child that a sleeping process waits for, by its system call and the arguments (`/proc/PID/syscall`).
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

/// The launcher that a command line starts: `python -m torch.distributed.run …`, `python /usr/bin/torchrun …`. Options
/// of Python itself may come before it; what follows it are the training's own words.
fn python_launcher(command_line: &str) -> Option<String> {
    let mut words = command_line.split('\0');
    if !words.next()?.rsplit('/').next()?.starts_with("python") {
        return None;
    }
    let program = words.find(|word| !word.starts_with('-'))?;
    let name = program.rsplit('/').next()?;
    PYTHON_LAUNCHERS.contains(&name).then(|| name.to_owned())
}

/// `pid (name) state parent …`; the name may hold anything, parentheses too.
struct Stat {
    id: Id,
    name: String,
    parent: i32,
    ended: bool,
    ticks: u64,
}

/// The places of the CPU time among the fields that follow the name: in programs, and in the kernel for them.
const TICKS: std::ops::Range<usize> = 11..13;
/// The start time's place among the fields that follow the name.
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

/// Processes made up for tests: of one program all have the same arguments, none.
#[cfg(test)]
pub(crate) fn made_up(pid: i32, parent: i32, program: &str, handled: &[Signal], waits: bool) -> Process {
    let handled = handled.iter().map(|signal| 1 << (signal.as_raw() - 1)).sum();
    let (program, command) = (program.to_owned(), (PathBuf::from(program), String::new()));
    let (ignored, waits_for, work) = (0, None, Work::default());
    let id = Id { pid, started: 1 };
    Process { id, parent, handled, caught: handled, ignored, waits, waits_for, program, command, work }
}

#[cfg(test)]
impl Process {
    /// The same in the background of a shell.
    pub(crate) fn in_background(self) -> Self {
        Self { ignored: 0b110, ..self }
    }

    /// The same, which waits for one child.
    pub(crate) fn that_waits_for(self, child: i32) -> Self {
        Self { waits: true, waits_for: Some(child), ..self }
    }

    /// The same with these arguments.
    pub(crate) fn with(self, arguments: &str) -> Self {
        let arguments = format!("\0{}", arguments.replace(' ', "\0"));
        Self { command: (self.command.0, arguments), ..self }
    }
}

#[cfg(test)]
mod tests;
