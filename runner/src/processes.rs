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

/// The function of the kernel in which a process sleeps that waits for the end of a child: wait4(2) and waitid(2). A
/// `futex_do_wait` is another one.
const WAITS: &str = "do_wait";
/// Numbers of wait4(2) and waitid(2), for kernels that do not name the function.
const WAIT_CALLS: [&str; 2] = if cfg!(target_arch = "aarch64") { ["260", "95"] } else { ["61", "247"] };
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
/// (`torch/distributed/elastic/multiprocessing/subprocess_handler`), in which data loaders are as well. `conda run`
/// waits for the training's output, and not for its end.
const PYTHON_LAUNCHERS: [&str; 10] = [
    "accelerate",
    "accelerate-launch",
    "accelerate.commands.launch",
    "conda",
    "deepspeed",
    "deepspeed.launcher.launch",
    "fabric",
    "torch.distributed.launch",
    "torch.distributed.run",
    "torchrun",
];

/// Tells a process from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) pid: i32,
    /// Clock ticks from the kernel's start to the process's.
    started: u64,
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
    /// Whether its main thread waits for the end of a child.
    pub(crate) waits: bool,
    /// The program's name; for a launcher that is a Python program, the launcher's.
    program: String,
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
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = executable.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())).unwrap_or(stat.name);
    let program = python_launcher(&file("cmdline").unwrap_or_default()).unwrap_or(program);
    // A signal that is blocked and ignored has no taker.
    let caught = mask("SigCgt:");
    let handled = caught | (mask("SigBlk:") & !mask("SigIgn:"));
    Some(Process { id: stat.id, parent: stat.parent, handled, caught, waits, program })
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
}

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
        })
    }
}

/// Processes made up for tests.
#[cfg(test)]
pub(crate) fn made_up(pid: i32, parent: i32, program: &str, handled: &[Signal], waits: bool) -> Process {
    let handled = handled.iter().map(|signal| 1 << (signal.as_raw() - 1)).sum();
    Process { id: Id { pid, started: 1 }, parent, handled, caught: handled, waits, program: program.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let rest = "0 0 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        for (stat, expected) in [
            (format!("12 (sh) S 7 {rest}"), Some((12, "sh", 7, false))),
            (format!("13 (a) S 9) (b) Z 12 {rest}"), Some((13, "a) S 9) (b", 12, true))),
            (String::new(), None),
            ("12 (sh) S 7".to_owned(), None),
        ] {
            let stat = Stat::parse(&stat);
            let seen = stat.as_ref().map(|stat| (stat.id.pid, stat.name.as_str(), stat.parent, stat.ended));
            assert_eq!(seen, expected);
            assert!(stat.is_none_or(|stat| stat.id.started == 777));
        }
    }

    #[test]
    fn launchers_in_python_are_known_by_their_command_line() {
        for (line, expected) in [
            ("python3\0-m\0torch.distributed.run\0--nproc_per_node=1\0train.py", Some("torch.distributed.run")),
            ("/opt/venv/bin/python3.11\0-u\0/opt/venv/bin/torchrun\0train.py", Some("torchrun")),
            ("/opt/conda/bin/python\0/opt/conda/bin/conda\0run\0python\0train.py", Some("conda")),
            ("python\0-m\0accelerate.commands.launch\0train.py", Some("accelerate.commands.launch")),
            ("python\0/usr/local/bin/fabric\0run\0train.py", Some("fabric")),
            ("python\0train.py\0--launcher\0torchrun", None),
            ("/usr/bin/tail\0torchrun", None),
            ("", None),
        ] {
            assert_eq!(python_launcher(line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let pairs = [(5, 1), (6, 5), (7, 6), (8, 1), (9, 7)];
        let processes = pairs.map(|(pid, parent)| made_up(pid, parent, "x", &[], false));
        assert_eq!(below(5, &processes), BTreeSet::from([6, 7, 9]));
        assert_eq!(below(9, &processes), BTreeSet::new());
    }

    #[test]
    fn a_process_is_seen_though_its_name_is_no_text() {
        let folder = tempfile::tempdir().unwrap();
        // Half a letter at the end, as where the kernel cuts a name, and no letter at all.
        for (name, argument) in [(b"abcdefghijklmn\xc3\xa9".as_slice(), b"60".as_slice()), (b"\xff\xfeevil", b"60.0")] {
            let program = folder.path().join(OsStr::from_bytes(name));
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
            let mut child = std::process::Command::new(&program).arg(OsStr::from_bytes(argument)).spawn().unwrap();
            let pid = child.id().cast_signed();
            let stat = fs::read(format!("/proc/{pid}/stat")).unwrap();
            let found = read(pid);
            let is_below = below(std::process::id().cast_signed(), &all()).contains(&pid);
            let has_lived = found.as_ref().is_some_and(|found| lives(found.id));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(String::from_utf8(stat).is_err(), "the kernel gives the name as it is");
            assert!(has_lived && is_below, "{found:?}");
        }
    }

    #[test]
    fn this_process_is_seen_with_the_file_that_it_writes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = read(own).unwrap();
        assert!(lives(found.id), "{found:?}");
        assert!(!found.waits && !found.is_shell() && !found.is_forwarder(), "{found:?}");
        assert!(!lives(Id { started: 0, ..found.id }), "another process of the same number");
        assert!(written_files(own).contains(&file.path().to_owned()));
    }
}
