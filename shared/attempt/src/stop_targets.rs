//! Which processes of a command get the stop signal.
//!
//! Docker and ECS signal the first process only, so a script that a shell has started is killed without a chance to
//! save; a signal to the whole group ends the training's own data loaders, and with them the training. The rule lies
//! between the two: of each branch the topmost process gets the signal that handles it, and nothing below it. What only
//! helps the training gets it later: a training that has lost its display or its database may not be able to save.

use rustix::process::Signal;

use crate::process::{Id, Process, below};
use crate::work::Work;

/// A process that is to get the stop signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: Id,
    /// Whether it is a shell, whose trap may have to wait for a command that does not handle the signal.
    pub(crate) is_shell: bool,
    /// Whether it helps the others.
    pub(crate) is_helper: bool,
    /// Whether it is certain that such a helper is no training.
    pub(crate) is_certain: bool,
}

/// A view of the processes of the machine.
pub(crate) struct Tree<'a> {
    pub(crate) processes: &'a [Process],
    /// Whether the first reads what the second prints.
    pub(crate) reads: &'a dyn Fn(&Process, &Process) -> bool,
}

/// The processes that are to get `signal`, in the tree below and including `root`. Where all of them are helpers, the
/// training does not handle it.
pub(crate) fn targets(root: i32, tree: &Tree, signal: Signal) -> Vec<Target> {
    tree.branch(root, signal, &mut Vec::new())
}

/// The children of a wrapper.
#[derive(Default)]
struct Started<'a> {
    /// What it is there for.
    commands: Vec<&'a Process>,
    /// What it has started besides, and whether each is known to be no training.
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
            // Between fork and exec, a command has its shell's handlers.
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

    /// What a wrapper waits for, or has started last, is its command: it starts servers before the training that needs
    /// them. With it belong what reads its output (`tee`), and further processes of the same script.
    fn started_by(&self, process: &Process) -> Started<'a> {
        let mut children: Vec<_> = self.processes.iter().filter(|child| child.parent == process.id.pid).collect();
        if process.is_forwarder() {
            return Started { commands: children, ..Started::default() };
        }
        if !process.is_shell() && !process.waits {
            children.retain(|child| self.launches(process, child));
        }
        children.sort_by_key(|child| child.id);
        // A shell that looks now and then whether its background still runs has a `sleep` in the foreground.
        let is_busy = |child: &&&Process| !self.work(child).is_nothing();
        let last = children.iter().rev().find(is_busy).or(children.last()).copied();
        let waited = children.iter().find(|child| process.waits_for == Some(child.id.pid)).copied();
        let Some(command) = waited.or(last) else {
            return Started::default();
        };
        let is_certain = if process.is_shell() { !command.is_background() } else { waited.is_some() && waited == last };
        let (mut commands, mut helpers) = (vec![command], Vec::new());
        // The members of a pipeline are started in the order of their output.
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

    /// Whether `process`, which does not handle the signal and does not wait in the kernel, is there to launch `child`:
    /// it polls, waits in a thread, or reads what the child prints. A data loader is a copy of its training, and a
    /// training that has started a helper does more than that.
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
