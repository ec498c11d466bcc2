//! A command that is about to be killed at a complete checkpoint is held first, and looked at once more: it may have begun
//! its next save since that look, and to kill it in the middle of this would cost all that it has trained.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::process::Id;

/// A process may be in the middle of a system call when it is stopped.
const SETTLES: Duration = Duration::from_millis(50);

/// The processes of a command that are held.
#[derive(Debug, Clone, Default)]
pub struct Hold {
    held: BTreeSet<Id>,
    /// When the last of them was.
    since: Duration,
}

/// What is to be done about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// These are to be stopped (SIGSTOP).
    Stop(Vec<Id>),
    /// They are to be looked at again, a little later.
    Wait,
    /// These are to go on (SIGCONT): the checkpoint is not complete.
    Continue(Vec<Id>),
    /// The command is to be killed.
    Kill,
}

impl Hold {
    /// To be repeated, `elapsed` after some moment: with all processes of the `command`, and whether its checkpoint
    /// `is_complete`, as far as a look shows that came after the last stop.
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

    /// Whether any is held.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Those that were held, and are to go on.
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
        // What a look finds: the processes, whether the checkpoint is complete, when; and what is to be done.
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
