//! A process as the kernel shows it, and the properties that follow.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::work::Work;

/// A shell runs a trap only after its foreground command has ended (bash(1), "Signals").
const SHELLS: [&str; 8] = ["ash", "bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"];
/// Programs that start another program and pass signals on to it, even if it does not handle them. timeout(1) and
/// dumb-init signal a whole process group, which also ends a training's data loaders. Open MPI's `mpirun` (`prterun`,
/// `orterun`) ends its processes at once, and micromamba after three seconds.
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

/// Python programs and modules that start trainings. `torchrun` sends SIGTERM to the process group of each one,
/// including its data loaders (`torch/distributed/elastic/multiprocessing/subprocess_handler`). Paddle does the same
/// (`paddle/distributed/launch/utils/process_context.py`). `conda run` waits for the training's output, and not for
/// its end.
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

/// Identifies a process, because a later one may have the same number. The order is that of their starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Clock ticks from the kernel's start to the process's start.
    pub started: u64,
    /// The process number.
    pub pid: i32,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Number and start of the process.
    pub id: Id,
    /// The number of its parent.
    pub parent: i32,
    /// Signals that have a handler, or that a thread takes by sigwait(3): bit 0 is signal 1.
    pub handled: u64,
    /// Signals that have a handler.
    pub caught: u64,
    /// Signals that it ignores.
    pub ignored: u64,
    /// Whether its main thread waits for the end of a child.
    pub waits: bool,
    /// The child that it waits for, if there is only one.
    pub waits_for: Option<i32>,
    /// The program's name. For a Python launcher it is the launcher's name.
    pub program: String,
    /// The program's file and arguments. A forked process has those of its parent.
    pub command: (PathBuf, String),
    /// Its own work, without its children's.
    pub work: Work,
}

impl Process {
    /// Makes a process of `program` without arguments. It handles no signal and has done nothing. A later process has
    /// a larger number.
    pub fn new(pid: i32, parent: i32, program: &str) -> Self {
        Self {
            id: Id { started: u64::try_from(pid).unwrap_or(0), pid },
            parent,
            handled: 0,
            caught: 0,
            ignored: 0,
            waits: false,
            waits_for: None,
            program: program.to_owned(),
            command: (PathBuf::from(program), String::new()),
            work: Work::default(),
        }
    }

    /// Adds handlers for these signals.
    #[must_use]
    pub fn handling(self, signals: &[Signal]) -> Self {
        let caught = signals.iter().fold(0, |mask, signal| mask | bit(*signal));
        Self { handled: caught, caught, ..self }
    }

    /// Puts the process into the background of a shell.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { ignored: bit(Signal::INT) | bit(Signal::QUIT), ..self }
    }

    /// Makes the process wait for the end of any child.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    /// Makes the process wait for the end of one child.
    #[must_use]
    pub fn waiting_for(self, child: i32) -> Self {
        Self { waits: true, waits_for: Some(child), ..self }
    }

    /// Sets the arguments, which are separated by spaces.
    #[must_use]
    pub fn with_arguments(self, arguments: &str) -> Self {
        let arguments = format!("\0{}", arguments.replace(' ', "\0"));
        Self { command: (self.command.0, arguments), ..self }
    }

    /// Sets the work that the process has done.
    #[must_use]
    pub fn that_did(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// Whether it has a handler for `signal`, or takes it by sigwait(3).
    pub fn handles(&self, signal: Signal) -> bool {
        has(self.handled, signal)
    }

    /// Whether it has a handler for `signal`, so that the signal alone does not end it.
    pub fn catches(&self, signal: Signal) -> bool {
        has(self.caught, signal)
    }

    /// Whether a shell may have started it in the background. It then ignores the signals of the keyboard (POSIX, 2.11
    /// "Signals and Error Handling" of the shell). Some programs handle one of the two again.
    pub fn is_background(&self) -> bool {
        has(self.ignored, Signal::INT) || has(self.ignored, Signal::QUIT)
    }

    /// Whether it runs a program of its own. A data loader is a copy of its parent instead.
    pub fn is_other_than(&self, parent: &Self) -> bool {
        self.command != parent.command
    }

    /// Whether both run the same script, and both in the foreground or in the background. They are ranks of one
    /// training, or trainings with different parameters.
    pub fn is_like(&self, other: &Self) -> bool {
        let parts = |process: &Self| (process.command.0.clone(), process.script(), process.ignored);
        parts(self) == parts(other)
    }

    /// The first argument that is not an option, without digits: a file, a module or code.
    fn script(&self) -> String {
        let script = self.command.1.split('\0').skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
        script.replace(|letter: char| letter.is_ascii_digit(), "")
    }

    /// Whether it is a shell.
    pub fn is_shell(&self) -> bool {
        SHELLS.contains(&self.program.as_str())
    }

    /// Whether its program only starts another program and passes signals on.
    pub fn is_forwarder(&self) -> bool {
        FORWARDERS.contains(&self.program.as_str()) || PYTHON_LAUNCHERS.contains(&self.program.as_str())
    }
}

fn has(mask: u64, signal: Signal) -> bool {
    mask & bit(signal) != 0
}

/// The bit of a signal in the kernel's masks: bit 0 is signal 1.
fn bit(signal: Signal) -> u64 {
    let place = u32::try_from(signal.as_raw() - 1).unwrap_or(u32::MAX);
    1_u64.checked_shl(place).unwrap_or(0)
}

/// The process numbers of all descendants of `ancestor`.
pub fn below(ancestor: i32, processes: &[Process]) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut generation = vec![ancestor];
    while let Some(parent) = generation.pop() {
        let children = processes.iter().filter(|process| process.parent == parent);
        generation.extend(children.map(|process| process.id.pid).filter(|pid| found.insert(*pid)));
    }
    found
}

/// The launcher that a command line starts: `python -m torch.distributed.run …`, `python /usr/bin/torchrun …`.
/// Python's own options may come before it. The words after it belong to the training.
pub fn python_launcher(command_line: &str) -> Option<String> {
    let mut words = command_line.split('\0');
    if !words.next()?.rsplit('/').next()?.starts_with("python") {
        return None;
    }
    let program = words.find(|word| !word.starts_with('-'))?;
    let name = program.rsplit('/').next()?;
    PYTHON_LAUNCHERS.contains(&name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_in_python_are_known_by_their_command_line() {
        for (line, expected) in [
            ("python3\0-m\0torch.distributed.run\0--nproc_per_node=1\0train.py", Some("torch.distributed.run")),
            ("/opt/venv/bin/python3.11\0-u\0/opt/venv/bin/torchrun\0train.py", Some("torchrun")),
            ("/opt/conda/bin/python\0/opt/conda/bin/conda\0run\0python\0train.py", Some("conda")),
            ("python\0-m\0accelerate.commands.launch\0train.py", Some("accelerate.commands.launch")),
            ("python\0-m\0paddle.distributed.launch\0--devices=0\0train.py", Some("paddle.distributed.launch")),
            ("python\0/usr/local/bin/fabric\0run\0train.py", Some("fabric")),
            ("python\0train.py\0--launcher\0torchrun", None),
            ("/usr/bin/tail\0torchrun", None),
            ("", None),
        ] {
            assert_eq!(python_launcher(line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn ranks_of_one_script_are_alike() {
        let python = |arguments: &str| Process::new(1, 0, "python3").with_arguments(arguments);
        let spawned = |handle: u32| python(&format!("-c from_multiprocessing.spawn_import_main;main({handle})"));
        assert!(python("-u train.py --rank=0").is_like(&python("-u train.py --rank=1")));
        assert!(python("worker1.py").is_like(&python("worker2.py")));
        assert!(spawned(7).is_like(&spawned(9)));
        assert!(!python("-m pkg.serve").is_like(&python("-m pkg.train")));
        assert!(!python("main.py --serve").in_background().is_like(&python("main.py --train")));
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let pairs = [(5, 1), (6, 5), (7, 6), (8, 1), (9, 7)];
        let processes = pairs.map(|(pid, parent)| Process::new(pid, parent, "x"));
        assert_eq!(below(5, &processes), BTreeSet::from([6, 7, 9]));
        assert_eq!(below(9, &processes), BTreeSet::new());
    }
}
