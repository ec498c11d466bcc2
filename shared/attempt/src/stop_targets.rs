//! Selects the processes of a command that get the stop signal.
//!
//! Docker and ECS signal only the first process, so a script that a shell has started is killed before it can save. A
//! signal to the whole group ends the training's own data loaders, and with them the training. Therefore in each
//! branch the topmost process that handles the signal gets it, and no process below it. A helper gets it later,
//! because a training without its display or its database may not be able to save.

use rustix::process::Signal;

use crate::process::{Id, Process, below};
use crate::work::Work;

/// A process that gets the stop signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: Id,
    /// Whether it is a shell. Its trap may have to wait for a command that does not handle the signal.
    pub(crate) is_shell: bool,
    /// Whether it is a helper of the training.
    pub(crate) is_helper: bool,
    /// Whether such a helper is certainly not a training.
    pub(crate) is_certain: bool,
}

/// A view of the processes of the machine.
pub(crate) struct Tree<'a> {
    pub(crate) processes: &'a [Process],
    /// Whether the first reads what the second prints.
    pub(crate) reads: &'a dyn Fn(&Process, &Process) -> bool,
}

/// The processes that get `signal`, in the tree of `root` and below it. If all of them are helpers, the training does
/// not handle it.
pub(crate) fn targets(root: i32, tree: &Tree, signal: Signal) -> Vec<Target> {
    tree.branch(root, signal, &mut Vec::new())
}

/// The children of a wrapper.
#[derive(Default)]
struct Started<'a> {
    /// The command that the wrapper runs.
    commands: Vec<&'a Process>,
    /// The other children, and whether each is certainly not a training.
    helpers: Vec<(&'a Process, bool)>,
}

impl<'a> Tree<'a> {
    fn branch(&self, pid: i32, signal: Signal, path: &mut Vec<i32>) -> Vec<Target> {
        let process = self.processes.iter().find(|process| process.id.pid == pid);
        let Some(process) = process.filter(|_| !path.contains(&pid)) else {
            return Vec::new();
        };
        let (is_shell, is_forwarder) = (process.is_shell(), process.is_forwarder());
        let handles = process.handles(signal) && !is_forwarder;
        let itself = Target { id: process.id, is_shell, is_helper: false, is_certain: false };
        if handles && !is_shell {
            return vec![itself];
        }
        let Started { commands, helpers } = self.started_by(process);
        path.push(pid);
        let mut below = |child: &Process| self.branch(child.id.pid, signal, path);
        let mut found: Vec<_> = commands.into_iter().flat_map(&mut below).collect();
        let of_helpers: Vec<_> = helpers.into_iter().map(|(child, is_certain)| (below(child), is_certain)).collect();
        path.pop();
        if handles {
            // Between fork and exec, a command still has its shell's handlers.
            found.retain(|target| !self.is_copy(target.id, process));
        }
        let has_command = has_training(&found);
        for (targets, is_certain) in of_helpers {
            found.extend(targets.into_iter().map(|target| Target {
                is_helper: is_certain || has_command || target.is_helper,
                is_certain: is_certain || target.is_certain,
                ..target
            }));
        }
        if handles && !has_training(&found) {
            found.push(itself);
        }
        found
    }

    /// A wrapper's command is the child that it waits for, or has started last, because servers start before the
    /// training that needs them. Processes that read the command's output (`tee`), and others of the same script,
    /// belong to the command.
    fn started_by(&self, process: &Process) -> Started<'a> {
        let mut children: Vec<_> = self.processes.iter().filter(|child| child.parent == process.id.pid).collect();
        if process.is_forwarder() {
            return Started { commands: children, ..Started::default() };
        }
        if !process.is_shell() && !process.waits {
            children.retain(|child| self.launches(process, child));
        }
        children.sort_by_key(|child| child.id);
        // A shell that regularly checks its background process has a `sleep` in the foreground.
        let is_busy = |child: &&&Process| !self.work(child).is_nothing();
        let last = children.iter().rev().find(is_busy).or(children.last()).copied();
        let waited = children.iter().find(|child| process.waits_for == Some(child.id.pid)).copied();
        let Some(command) = waited.or(last) else {
            return Started::default();
        };
        let is_certain = if process.is_shell() { !command.is_background() } else { waited.is_some() && waited == last };
        let (mut commands, mut helpers) = (vec![command], Vec::new());
        // A shell starts the members of a pipeline in the order of their output.
        for child in children.into_iter().rev().filter(|child| child.id != command.id) {
            let belongs = |to: &&Process| child.is_like(to) || (self.reads)(to, child) || (self.reads)(child, to);
            if commands.iter().any(belongs) {
                commands.push(child);
            } else {
                let is_certain = is_certain && (!process.is_shell() || !self.outdoes(child, command));
                helpers.push((child, is_certain));
            }
        }
        Started { commands, helpers }
    }

    /// Whether `process`, which neither handles the signal nor waits in the kernel, launches `child`. It polls, waits
    /// in a thread, or reads the child's output. A data loader is a copy of its training, and a training does more
    /// than its helper.
    fn launches(&self, process: &Process, child: &Process) -> bool {
        child.is_other_than(process) && !process.work.is_much_more_than(self.work(child))
    }

    /// Whether `child`, which runs in the background of a shell, may be the training, and `command` its monitor.
    fn outdoes(&self, child: &Process, command: &Process) -> bool {
        let (child, command) = (self.work(child), self.work(command));
        child.is_much_more_than(command) && !command.is_much_more_than(child)
    }

    /// Whether a child of `parent` is a copy of it.
    fn is_copy(&self, id: Id, parent: &Process) -> bool {
        let child = self.processes.iter().find(|process| process.id == id && process.parent == parent.id.pid);
        child.is_some_and(|child| !child.is_other_than(parent))
    }

    /// What `process` and all below it have done.
    fn work(&self, process: &Process) -> Work {
        let below = below(process.id.pid, self.processes);
        let is_counted = |other: &&Process| other.id == process.id || below.contains(&other.id.pid);
        self.processes.iter().filter(is_counted).map(|other| other.work).sum()
    }
}

fn has_training(targets: &[Target]) -> bool {
    targets.iter().any(|target| !target.is_helper)
}

#[cfg(test)]
mod tests;
