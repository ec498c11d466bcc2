//! Before the runner kills a command at a complete checkpoint, it holds the command and looks once more. The command
//! may have begun its next save since the last look, and a kill during that save would lose all its training.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::process::Id;

/// The time that a stopped process may still need to end a system call.
const SETTLES: Duration = Duration::from_millis(50);

/// The held processes of a command.
#[derive(Debug, Clone, Default)]
pub struct Hold {
    held: BTreeSet<Id>,
    /// The time at which the last of them was held.
    since: Duration,
}

/// What the runner does with the command's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Stop these processes (SIGSTOP).
    Stop(Vec<Id>),
    /// Look at the processes again, a little later.
    Wait,
    /// Continue these processes (SIGCONT), because the checkpoint is not complete.
    Continue(Vec<Id>),
    /// Kill the command.
    Kill,
}

impl Hold {
    /// Decides the next step; the runner repeats the call. `command` has all its processes, and `is_complete` comes
    /// from a look at the checkpoint after the last stop. `elapsed` counts from a fixed moment.
    pub fn decide(&mut self, command: &[Id], is_complete: bool, elapsed: Duration) -> Held {
        if !is_complete {
            return Held::Continue(self.release());
        }
        let new: Vec<Id> = command.iter().copied().filter(|id| !self.held.contains(id)).collect();
        if !new.is_empty() {
            self.held.extend(&new);
            self.since = elapsed;
            return Held::Stop(new);
        }
        if elapsed.saturating_sub(self.since) < SETTLES { Held::Wait } else { Held::Kill }
    }

    /// Whether any process is held.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the held processes, which must continue, and holds none any more.
    pub fn release(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.held).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn a_command_that_has_begun_another_save_goes_on() {
        let [one, two] = [1, 2].map(|pid| Process::new(pid, 0, "python3").id);
        // Each look has the processes, whether the checkpoint is complete, and the time; then comes the decision.
        let looks: [(&[Id], bool, u64, Held); 8] = [
            (&[one], false, 0, Held::Continue(vec![])),
            (&[one], true, 100, Held::Stop(vec![one])),
            (&[one], true, 101, Held::Wait),
            (&[one], false, 200, Held::Continue(vec![one])),
            (&[one], true, 300, Held::Stop(vec![one])),
            (&[one, two], true, 400, Held::Stop(vec![two])),
            (&[one, two], true, 410, Held::Wait),
            (&[one, two], true, 500, Held::Kill),
        ];
        let mut hold = Hold::default();
        for (command, is_complete, at, expected) in looks {
            let is_holding = matches!(expected, Held::Stop(_) | Held::Wait | Held::Kill);
            assert_eq!(hold.decide(command, is_complete, Duration::from_millis(at)), expected, "after {at} ms");
            assert_eq!(hold.is_holding(), is_holding, "after {at} ms");
        }
        assert_eq!((hold.release(), hold.release()), (vec![one, two], vec![]));
    }
}
