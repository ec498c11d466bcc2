//! The stop of a command, from the request until no process is worth waiting for.
//!
//! A process that handles the stop signal gets it, and has the whole grace, with all processes that it waits for. If
//! no process handles it, an early end would save nothing. The training then completes its next checkpoint before it
//! is killed. See "When the instance is taken" in docs/training.md.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use crate::process::{Id, Process};
use crate::stop_targets::{Target, Tree, targets};

/// The time for helpers to end before the remaining processes are killed.
const HELPER_RESERVE: Duration = Duration::from_secs(2);

/// A stop that is under way.
#[derive(Debug, Clone)]
pub struct Stopping {
    /// The command's process number.
    root: i32,
    signal: Signal,
    /// The time between the signal and SIGKILL.
    grace: Duration,
    signalled: BTreeSet<Id>,
    /// The helpers that get the signal later.
    helpers: Vec<Target>,
    /// Whether only shells got the signal. Their command may not handle it.
    only_shells: bool,
}

/// What the runner sees at one moment.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Every living process.
    pub processes: &'a [Process],
    /// Whether the first reads what the second prints.
    pub reads: &'a dyn Fn(&Process, &Process) -> bool,
    /// Whether the command has ended.
    pub has_ended: bool,
    /// The time since the request to stop.
    pub elapsed: Duration,
    /// The time to write out the kernel's data; zero if none of it matters.
    pub writing: Duration,
    /// Whether the next attempt gets the checkpoints of this one.
    pub has_workspace: bool,
}

/// The runner's next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Processes that get the stop signal.
    pub signals: Vec<Id>,
    /// The step after that.
    pub then: Then,
}

/// The next step for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The command is still worth waiting for.
    Wait,
    /// The command does not handle the signal, so the runner kills it at a complete checkpoint. If it may begin
    /// another one meanwhile, [`Hold`](crate::Hold) decides.
    KillAtCheckpoint,
    /// Kill the command, because nothing that it still writes reaches the next attempt.
    Kill,
    /// Kill the command, because the grace is over.
    KillAfterGrace,
    /// Kill the command, because writing out takes all of the grace that is left.
    KillToWriteOut,
    /// The command and all processes that got the signal have ended.
    Ended,
}

impl Stopping {
    /// Starts to stop the command `root` by `signal`. It is killed after `grace`.
    pub fn new(root: i32, signal: Signal, grace: Duration) -> Self {
        Self { root, signal, grace, signalled: BTreeSet::new(), helpers: Vec::new(), only_shells: true }
    }

    /// Shortens the time from the request to stop until the kill.
    pub fn shorten(&mut self, grace: Duration) {
        self.grace = self.grace.min(grace);
    }

    /// Whether any process got the signal.
    pub fn has_signalled(&self) -> bool {
        !self.signalled.is_empty()
    }

    /// Whether a command that ended with `code` has trained to its end during the stop, without a signal to any
    /// process.
    pub fn has_finished_by_itself(&self, code: i32) -> bool {
        code == 0 && !self.has_signalled()
    }

    /// Decides the next step. The runner repeats the call until the command has ended or is killed.
    pub fn decide(&mut self, look: &Look<'_>) -> Decision {
        // Processes that a training starts at its end get no signal. A training that was still importing may get its
        // handler only now.
        let is_first = self.signalled.is_empty() && !look.has_ended;
        let mut signals = if is_first { self.trainings(look) } else { Vec::new() };
        self.signalled.extend(&signals);
        let is_due = |helper: &Target| self.have_ended(look) || look.elapsed >= self.longest_wait(helper, look);
        let (due, later): (Vec<_>, Vec<_>) = self.helpers.iter().copied().partition(is_due);
        self.helpers = later;
        signals.extend(due.into_iter().map(|helper| helper.id).filter(|helper| look.lives(*helper)));
        self.signalled.extend(&signals);
        Decision { signals, then: self.then(look) }
    }

    fn then(&self, look: &Look<'_>) -> Then {
        match () {
            () if look.has_ended && self.have_ended(look) => Then::Ended,
            () if look.elapsed >= self.grace => Then::KillAfterGrace,
            () if self.is_last_moment(look) => Then::KillToWriteOut,
            () if !self.signalled.is_empty() && !self.only_shells => Then::Wait,
            () if look.has_workspace => Then::KillAtCheckpoint,
            () if self.signalled.is_empty() => Then::Kill,
            () => Then::Wait,
        }
    }

    /// How long a helper waits for the end of the training. An uncertain helper waits for half of the grace, because
    /// it may be the training itself. A certain one waits longer, because a save may need a database until its end.
    fn longest_wait(&self, helper: &Target, look: &Look<'_>) -> Duration {
        let half = self.grace / 2;
        let until_reserve = self.grace.saturating_sub(HELPER_RESERVE + look.writing);
        if helper.is_certain { half.max(until_reserve) } else { half }
    }

    /// Selects the trainings that get the signal at once.
    fn trainings(&mut self, look: &Look<'_>) -> Vec<Id> {
        let tree = Tree { processes: look.processes, reads: look.reads };
        let all = targets(self.root, &tree, self.signal);
        let (helpers, trainings): (Vec<_>, Vec<_>) = all.into_iter().partition(|target| target.is_helper);
        self.only_shells = trainings.iter().all(|target| target.is_shell);
        // A training that does not handle the signal continues, and needs its helpers.
        self.helpers = if self.only_shells { Vec::new() } else { helpers };
        trainings.into_iter().map(|target| target.id).collect()
    }

    /// Whether writing out the kernel's data takes all of the grace that is left. It is never so in the first half,
    /// because the data may be another program's, and writing may become faster.
    fn is_last_moment(&self, look: &Look<'_>) -> bool {
        look.elapsed >= self.grace / 2 && look.writing >= self.grace.saturating_sub(look.elapsed)
    }

    /// Whether all processes that got the signal have ended.
    fn have_ended(&self, look: &Look<'_>) -> bool {
        self.signalled.iter().all(|id| !look.lives(*id))
    }
}

impl Look<'_> {
    fn lives(&self, id: Id) -> bool {
        self.processes.iter().any(|process| process.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Work;

    #[test]
    fn what_is_not_written_ends_the_grace_early_but_not_before_its_half() {
        let training = [Process::new(1, 0, "python3").handling(&[Signal::TERM])];
        for (elapsed, writing, expected) in [
            (99, 0, Then::Wait),
            (60, 39, Then::Wait),
            (60, 40, Then::KillToWriteOut),
            (49, 500, Then::Wait),
            (50, 50, Then::KillToWriteOut),
            (100, 0, Then::KillAfterGrace),
        ] {
            let mut stopping = Stopping::new(1, Signal::TERM, Duration::from_secs(100));
            let (elapsed, writing) = (Duration::from_secs(elapsed), Duration::from_secs(writing));
            let decision = stopping.decide(&Look { elapsed, writing, ..look(&training) });
            assert_eq!(decision, Decision { signals: vec![training[0].id], then: expected }, "{elapsed:?} {writing:?}");
        }
    }

    #[test]
    fn without_a_handler_the_command_is_killed_at_a_checkpoint_or_at_once() {
        let training = [Process::new(1, 0, "python3")];
        for (has_workspace, expected) in [(true, Then::KillAtCheckpoint), (false, Then::Kill)] {
            let mut stopping = Stopping::new(1, Signal::TERM, Duration::from_secs(100));
            let decision = stopping.decide(&Look { has_workspace, ..look(&training) });
            assert_eq!(decision, Decision { signals: vec![], then: expected });
        }
    }

    #[test]
    fn a_helper_gets_the_signal_before_the_grace_ends() {
        let shell = || Process::new(1, 0, "sh").waiting();
        let server = Process::new(2, 1, "redis-server").handling(&[Signal::TERM]).in_background();
        let work = Work { ticks: 30, writes: 40, bytes: 600 };
        let training = || Process::new(3, 1, "python3").handling(&[Signal::TERM]).that_did(work);
        let certain = [shell(), server.clone(), training()];
        let uncertain = [shell(), server.clone(), training().in_background()];
        // A process that has done so much may be the training.
        let busy = [shell(), server.clone().that_did(Work { ticks: 9000, writes: 400, bytes: 9000 }), training()];
        for (processes, elapsed, writing, expected) in [
            (&certain, 97, 0, false),
            (&certain, 98, 0, true),
            (&certain, 67, 30, false),
            (&certain, 68, 30, true),
            (&certain, 49, 90, false),
            (&certain, 50, 90, true),
            (&uncertain, 49, 0, false),
            (&uncertain, 50, 0, true),
            (&busy, 49, 0, false),
            (&busy, 50, 0, true),
        ] {
            let mut stopping = Stopping::new(1, Signal::TERM, Duration::from_secs(100));
            let (elapsed, writing) = (Duration::from_secs(elapsed), Duration::from_secs(writing));
            let signals = stopping.decide(&Look { elapsed, writing, ..look(processes) }).signals;
            assert!(signals.contains(&training().id), "{elapsed:?} {writing:?}");
            assert_eq!(signals.contains(&server.id), expected, "{elapsed:?} {writing:?}");
        }
        // Repeated looks, as in the runner.
        let mut stopping = Stopping::new(1, Signal::TERM, Duration::from_secs(100));
        let mut signals = |processes: &[Process], elapsed| {
            let elapsed = Duration::from_secs(elapsed);
            stopping.decide(&Look { elapsed, ..look(processes) }).signals
        };
        assert_eq!(signals(&certain, 0), [training().id]);
        assert_eq!(signals(&certain, 60), []);
        assert_eq!(signals(&certain[..2], 61), [server.id], "the training has ended");
        assert_eq!(signals(&certain[..2], 62), []);
    }

    fn look(processes: &[Process]) -> Look<'_> {
        let (elapsed, writing) = (Duration::ZERO, Duration::ZERO);
        Look { processes, reads: &|_, _| false, has_ended: false, elapsed, writing, has_workspace: true }
    }
}
