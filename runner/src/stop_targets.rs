//! Which processes of a command get the stop signal.
//!
//! Docker and ECS signal the first process only, so a script that a shell has started is killed without a chance to
//! save; a signal to the whole group ends the training's own data loaders, and with them the training. The rule lies
//! between the two: of each branch the topmost process gets the signal that handles it, and nothing below it.

use rustix::process::Signal;

use crate::processes::{Id, Process};

/// A process that is to get the stop signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: Id,
    /// Whether it is a shell, whose trap may have to wait for a command that does not handle the signal.
    pub(crate) is_shell: bool,
}

/// The processes that are to get `signal`, in the tree below and including `root`; none where nothing handles it.
pub(crate) fn targets(root: i32, processes: &[Process], signal: Signal) -> Vec<Target> {
    branch(root, processes, signal, &mut Vec::new())
}

fn branch(pid: i32, processes: &[Process], signal: Signal, path: &mut Vec<i32>) -> Vec<Target> {
    let Some(process) = processes.iter().find(|process| process.id.pid == pid) else {
        return Vec::new();
    };
    let (is_shell, is_forwarder) = (process.is_shell(), process.is_forwarder());
    let handles = process.handles(signal) && !is_forwarder;
    let itself = || vec![Target { id: process.id, is_shell }];
    if handles && !is_shell {
        return itself();
    }
    // A training without a handler is no wrapper of its data loaders, which may have one: it does not wait for them.
    let is_wrapper = is_shell || is_forwarder || process.waits;
    let mut found = Vec::new();
    if is_wrapper && !path.contains(&pid) {
        path.push(pid);
        let children = processes.iter().filter(|child| child.parent == pid);
        found = children.flat_map(|child| branch(child.id.pid, processes, signal, path)).collect();
        path.pop();
    }
    if found.is_empty() && handles { itself() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::made_up;

    const TERM: &[Signal] = &[Signal::TERM];
    const NONE: &[Signal] = &[];
    const INT: &[Signal] = &[Signal::INT];

    /// `(pid, parent, program, handled signals, whether it waits for a child)` of each process; 1 is the command.
    type Row = (i32, i32, &'static str, &'static [Signal], bool);

    #[test]
    fn the_topmost_process_with_a_handler_gets_the_signal() {
        let trees: [(&str, &[Row], &[i32]); 20] = [
            ("a training", &[(1, 0, "python3", TERM, false)], &[1]),
            ("a training without a handler", &[(1, 0, "python3", INT, false)], &[]),
            ("data loaders", &[(1, 0, "python3", TERM, false), (2, 1, "python3", TERM, false)], &[1]),
            (
                "data loaders of one without a handler",
                &[(1, 0, "python3", INT, false), (2, 1, "python3", TERM, false)],
                &[],
            ),
            ("a script", &[(1, 0, "dash", NONE, true), (2, 1, "python3", TERM, false)], &[2]),
            (
                "a pipeline with data loaders",
                &[
                    (1, 0, "bash", NONE, true),
                    (2, 1, "python3", TERM, false),
                    (3, 1, "tee", NONE, false),
                    (4, 2, "python3", TERM, false),
                ],
                &[2],
            ),
            ("a launcher", &[(1, 0, "python3", INT, true), (2, 1, "python3", TERM, false)], &[2]),
            ("a launcher with a handler", &[(1, 0, "python3", TERM, true), (2, 1, "python3", TERM, false)], &[1]),
            ("a script with a trap", &[(1, 0, "bash", TERM, true), (2, 1, "python3", TERM, false)], &[2]),
            ("a script with a trap alone", &[(1, 0, "bash", TERM, true), (2, 1, "sleep", NONE, false)], &[1]),
            ("timeout", &[(1, 0, "timeout", TERM, true), (2, 1, "python3", TERM, false)], &[2]),
            (
                "timeout of one without a handler",
                &[(1, 0, "timeout", TERM, true), (2, 1, "python3", INT, false), (3, 2, "python3", TERM, false)],
                &[],
            ),
            ("uv", &[(1, 0, "uv", TERM, false), (2, 1, "python3", TERM, false)], &[2]),
            ("uv of one without a handler", &[(1, 0, "uv", TERM, false), (2, 1, "python3", INT, false)], &[]),
            ("micromamba", &[(1, 0, "micromamba", TERM, false), (2, 1, "python3", TERM, false)], &[2]),
            (
                "Open MPI",
                &[(1, 0, "prterun", TERM, false), (2, 1, "python3", TERM, false), (3, 1, "python3", TERM, false)],
                &[2, 3],
            ),
            (
                "MPICH",
                &[
                    (1, 0, "mpiexec.hydra", TERM, false),
                    (2, 1, "hydra_pmi_proxy", TERM, false),
                    (3, 2, "python3", TERM, false),
                ],
                &[3],
            ),
            (
                "conda, which reads what the training says",
                &[(1, 0, "conda", INT, false), (2, 1, "bash", NONE, true), (3, 2, "python3", TERM, false)],
                &[3],
            ),
            (
                "two branches",
                &[(1, 0, "sh", NONE, true), (2, 1, "python3", TERM, false), (3, 1, "python3", TERM, false)],
                &[2, 3],
            ),
            ("a circle, of processes that end meanwhile", &[(1, 2, "sh", NONE, true), (2, 1, "sh", NONE, true)], &[]),
        ];
        for (what, rows, expected) in trees {
            let processes: Vec<_> = rows
                .iter()
                .map(|(pid, parent, program, handled, waits)| made_up(*pid, *parent, program, handled, *waits))
                .collect();
            let found: Vec<_> = targets(1, &processes, Signal::TERM).into_iter().map(|target| target.id.pid).collect();
            assert_eq!(found, expected, "{what}");
        }
    }
}
