//! The stacks of a training that hangs, if its script has registered a handler that dumps them:
//! `faulthandler.register(signal.SIGUSR1)`.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use spotsweep_attempt::{Process, below};

use crate::log::say;
use crate::processes;

/// The signal that such handlers are registered for.
pub(crate) const SIGNAL: Signal = Signal::USR1;

/// The longest time that a dump may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// Makes the command `root` and all processes below it dump their stacks to their output. Returns whether any process
/// does. A process without a handler gets no signal, because the signal would end it.
pub(crate) fn take(root: i32) -> bool {
    let found = dumping(root, &processes::all());
    for pid in &found {
        say(&format!("sending signal {} to process {pid}, which handles it, for its stacks", SIGNAL.as_raw()));
        // Fails only if the process has just ended.
        let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, SIGNAL));
    }
    !found.is_empty()
}

fn dumping(root: i32, processes: &[Process]) -> Vec<i32> {
    let own = below(root, processes);
    let is_own = |process: &&Process| process.id.pid == root || own.contains(&process.id.pid);
    processes.iter().filter(is_own).filter(|process| process.catches(SIGNAL)).map(|process| process.id.pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_the_command_that_handle_the_signal_get_it() {
        let rows: [(i32, i32, &[Signal]); 5] = [
            (5, 1, &[]),
            (6, 5, &[Signal::USR1, Signal::TERM]),
            (7, 6, &[Signal::USR1]),
            (8, 6, &[Signal::USR2]),
            (9, 1, &[Signal::USR1]),
        ];
        let processes: Vec<_> = rows
            .iter()
            .map(|(pid, parent, handled)| Process::new(*pid, *parent, "python3").handling(handled))
            .collect();
        assert_eq!(dumping(5, &processes), [6, 7]);
        assert_eq!(dumping(6, &processes), [6, 7]);
        assert_eq!(dumping(8, &processes), [0; 0]);
    }
}
