//! The state machine of one attempt at a trial. It decides the next action after each event.
//!
//! At most one [`Action`] is in progress. Its end is an [`Event`]. Others come from outside: a notice, a signal, the
//! answer to a report. An event from outside shortens the action's time, or another action replaces it. The replaced
//! action is dropped.
//!
//! The order is: prepare, train, upload the outputs if the trial ends, seal, unmount, and report the end or the
//! release. The control plane treats a reported workspace as free, so the runner unmounts it first.

mod phase;

use std::time::Duration;

use spotsweep_protocol::stop::StopReason;

use crate::action::{Action, Event, Exit};
use crate::answer::Answer;
use crate::conclusion::{Cause, Conclusion, conclusion};
use crate::exit::{UPLOAD, of_command};
use crate::machine::phase::{Ending, Mounted, Phase};
use crate::stop::{LAST_REQUEST, Stop, Terms, WITHOUT_DEADLINE, closing};

/// How long an instance may still run after its announced end, because EC2 promises no time (EC2 user guide, "Spot
/// Instance interruption notices").
const STILL_THERE: Duration = Duration::from_secs(300);

/// One attempt. Times count from its beginning.
#[derive(Debug, Clone)]
pub struct Machine {
    terms: Terms,
    phase: Phase,
    /// The request to stop the command, if there is one.
    stop: Option<Stop>,
    /// When EC2 takes the instance.
    notice: Option<Duration>,
    /// When the runner must have exited, if the container has been asked to stop.
    exits_by: Option<Duration>,
    /// When the container or the instance ends, why, and whether Batch ends the trial with it.
    outside: Option<(Duration, Cause)>,
    /// When the workspace must be closed.
    deadline: Duration,
    until: Option<Duration>,
}

impl Machine {
    /// Makes an attempt that has not begun.
    pub fn new(terms: Terms) -> Self {
        let (phase, deadline) = (Phase::Preparing, Duration::ZERO);
        Self { terms, phase, stop: None, notice: None, exits_by: None, outside: None, deadline, until: None }
    }

    /// Returns the first action. If the end of the instance is known, it comes after `left`.
    ///
    /// An exit on such an instance would make Batch start the next attempt at once. If the ECS agent does not drain
    /// (fact 9), that attempt starts on the same instance, until no attempt is left. The attempt claims nothing, so
    /// the workspace goes to another instance meanwhile.
    pub fn begin(&mut self, left: Option<Duration>) -> Action {
        self.notice = left;
        if self.notice.is_some() { self.await_end() } else { Action::Prepare }
    }

    /// When the current action must be over.
    pub fn until(&self) -> Option<Duration> {
        self.until
    }

    /// The request to stop the command, if there is one.
    pub fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Handles an event that comes `at` this time after the beginning. If no action is returned, the current one goes
    /// on.
    pub fn on(&mut self, event: Event, at: Duration) -> Option<Action> {
        match event {
            Event::Noticed { left, why } => {
                let stop = Stop::noticed(why, left, &self.terms, at);
                self.notice = Some(stop.deadline);
                self.ends_by(stop, true, at)
            }
            Event::Signalled(signal) => {
                let stop = Stop::after_signal(signal, &self.terms, at);
                self.exits_by = Some(self.exits_by.map_or(stop.deadline, |before| before.min(stop.deadline)));
                self.ends_by(stop, false, at)
            }
            Event::Fenced(reason) => self.fenced(reason, at),
            Event::StoppedEarly(why) => self.stops_by_itself(Cause::StoppedEarly(why), at),
            Event::Stalled { seconds, is_last } => self.stops_by_itself(Cause::Stalled { seconds, is_last }, at),
            ended => self.goes_on(ended, at),
        }
    }

    /// The container or the instance is about to end.
    fn ends_by(&mut self, stop: Stop, is_notice: bool, at: Duration) -> Option<Action> {
        if self.outside.as_ref().is_none_or(|(end, _)| stop.deadline < *end) {
            self.outside = Some((stop.deadline, stop.cause.clone()));
        }
        match &mut self.phase {
            Phase::Preparing => {
                self.deadline = stop.deadline;
                Some(self.unmount(Ending::GiveUp { cause: Some(stop.cause), is_left: true }))
            }
            // Without a workspace the training cannot save anything, so it uses the time that is left.
            Phase::Training(None) if is_notice => None,
            Phase::Training(_) => match &mut self.stop {
                None => Some(Action::Stop(self.stop.insert(stop).clone())),
                Some(under_way) => {
                    under_way.join(&stop);
                    Some(Action::Shorten(stop.grace))
                }
            },
            Phase::Judging(..) => {
                self.deadline = self.deadline.min(stop.deadline);
                None
            }
            Phase::Collecting(..) => {
                self.deadline = self.deadline.min(stop.deadline);
                let end = stop.deadline - closing(stop.deadline.saturating_sub(at));
                self.until = Some(self.until.map_or(end, |until| until.min(end)));
                None
            }
            Phase::AwaitingEnd if is_notice => None,
            Phase::AwaitingEnd => Some(self.exit(Exit::Left(Some(stop.cause)))),
            Phase::Sealing(..) | Phase::Unmounting(_) | Phase::Reporting(_) => {
                self.deadline = self.deadline.min(stop.deadline);
                let end = self.last_request_until(stop.deadline, at);
                self.until = Some(self.until.map_or(end, |until| until.min(end)));
                None
            }
            Phase::Over => None,
        }
    }

    fn stops_by_itself(&mut self, cause: Cause, at: Duration) -> Option<Action> {
        let is_first = matches!(self.phase, Phase::Training(_)) && self.stop.is_none();
        is_first.then(|| Action::Stop(self.stop.insert(Stop::by_itself(cause, &self.terms, at)).clone()))
    }

    /// The newer attempt now owns the folder in S3, and waits for the workspace.
    fn fenced(&mut self, reason: StopReason, at: Duration) -> Option<Action> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Preparing => {
                self.deadline = self.closing_by(at);
                Some(self.unmount(Ending::Refuse(reason)))
            }
            Phase::Collecting(_, mounted) => {
                self.deadline = self.closing_by(at);
                Some(self.close(Ending::Refuse(reason), mounted, at))
            }
            phase @ Phase::Training(_) => {
                self.phase = phase;
                let stop = Stop::by_itself(Cause::Fenced(reason), &self.terms, at);
                match &mut self.stop {
                    None => Some(Action::Stop(self.stop.insert(stop).clone())),
                    Some(under_way) => {
                        under_way.join(&stop);
                        Some(Action::Shorten(stop.grace))
                    }
                }
            }
            phase => {
                self.phase = phase;
                None
            }
        }
    }

    /// The current action has ended.
    fn goes_on(&mut self, event: Event, at: Duration) -> Option<Action> {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        Some(match (phase, event) {
            (Phase::Preparing, Event::Prepared { has_workspace }) => {
                self.phase = Phase::Training(has_workspace.then_some(Mounted));
                Action::Train
            }
            (Phase::Preparing | Phase::Training(_), Event::Failed { is_left }) => {
                self.deadline = self.closing_by(at);
                self.unmount(Ending::GiveUp { cause: None, is_left })
            }
            (Phase::Preparing, Event::SetupFailed { code }) => {
                self.deadline = self.closing_by(at);
                self.unmount(Ending::End { code, has_succeeded: false })
            }
            (_, Event::Failed { .. }) => self.exit(Exit::Failed),
            (Phase::Training(mounted), Event::CommandEnded { code, is_finished, is_by_itself }) => {
                self.command_ended((code, is_finished, is_by_itself), mounted, at)
            }
            (Phase::Judging(_, mounted), Event::Judged { goes_back: true }) => {
                self.close_or_collect(Ending::Leave(None), mounted, at)
            }
            (Phase::Judging(code, mounted), Event::Judged { goes_back: false }) => {
                self.collect(Ending::End { code, has_succeeded: false }, mounted, at)
            }
            (Phase::Collecting(way, mounted), Event::Collected { is_whole }) => {
                self.collected(way, is_whole, mounted, at)
            }
            (Phase::Collecting(way, mounted), Event::TimeOver) => self.not_collected(way, mounted, at),
            (Phase::Sealing(way, Mounted), Event::Sealed) => self.unmount(way),
            // Data that the kernel has not written out by then is lost.
            (Phase::Sealing(way, Mounted), Event::TimeOver)
            | (Phase::Unmounting(way), Event::Unmounted | Event::TimeOver) => self.report(way, at),
            (
                Phase::Reporting(Ending::End { code, has_succeeded }),
                Event::Answered(Some(Answer::Waiting { pause, .. })),
            ) => {
                self.phase = Phase::Reporting(Ending::End { code, has_succeeded });
                Action::End { code, after: pause }
            }
            (Phase::Reporting(way), Event::Answered(answer)) => self.answered(way, answer),
            (Phase::Reporting(way), Event::TimeOver) => self.answered(way, None),
            (Phase::AwaitingEnd, Event::TimeOver) => {
                let why = "EC2 has not taken the instance at the announced time".to_owned();
                self.exit(Exit::Left(Some(Cause::Interrupted(why))))
            }
            (phase, _late) => {
                self.phase = phase;
                return None;
            }
        })
    }

    fn command_ended(&mut self, end: (i32, bool, bool), mounted: Option<Mounted>, at: Duration) -> Action {
        let (code, is_finished, is_by_itself) = end;
        if is_by_itself {
            self.stop = None;
        }
        self.deadline = self.closing_by(at);
        let cause = self.stop.as_ref().map(|stop| stop.cause.clone());
        let by_itself = of_command(code);
        match (conclusion(code, is_finished, cause.as_ref()), cause) {
            (Conclusion::Refuse, Some(Cause::Fenced(reason))) => self.close(Ending::Refuse(reason), mounted, at),
            (Conclusion::Leave, Some(cause)) => self.close_or_collect(Ending::Leave(Some(cause)), mounted, at),
            (Conclusion::End(code), _) => self.collect(Ending::End { code, has_succeeded: false }, mounted, at),
            (Conclusion::Succeed, _) => {
                self.stop = None;
                self.collect(Ending::End { code: 0, has_succeeded: true }, mounted, at)
            }
            _by_itself if by_itself == 0 => self.collect(Ending::End { code: 0, has_succeeded: true }, mounted, at),
            _by_itself => {
                self.phase = Phase::Judging(by_itself, mounted);
                Action::Judge
            }
        }
    }

    /// The deadline for closing a workspace if closing begins now.
    fn closing_by(&self, at: Duration) -> Duration {
        let own = self.stop.as_ref().map_or(at + WITHOUT_DEADLINE, |stop| stop.deadline);
        self.outside.as_ref().map_or(own, |(end, _)| own.min(*end))
    }

    /// Without a workspace the next attempt starts from nothing, so the runner uploads the outputs for a person to
    /// look at.
    fn close_or_collect(&mut self, way: Ending, mounted: Option<Mounted>, at: Duration) -> Action {
        if mounted.is_some() {
            return self.close(way, mounted, at);
        }
        self.phase = Phase::Collecting(way, None);
        self.until = Some(self.deadline);
        Action::Collect { has_succeeded: false }
    }

    fn collect(&mut self, way: Ending, mounted: Option<Mounted>, at: Duration) -> Action {
        let has_succeeded = matches!(way, Ending::End { has_succeeded: true, .. });
        self.phase = Phase::Collecting(way, mounted);
        let end = |end: Duration| end.saturating_sub(closing(end.saturating_sub(at)));
        self.until = self.outside.as_ref().map(|(outside, _)| end(*outside));
        Action::Collect { has_succeeded }
    }

    fn collected(&mut self, way: Ending, is_whole: bool, mounted: Option<Mounted>, at: Duration) -> Action {
        self.deadline = match &way {
            Ending::Leave(_) => self.deadline,
            // Only a stop from outside limits the time for the upload.
            Ending::End { .. } | Ending::Refuse(_) | Ending::GiveUp { .. } => {
                self.outside.as_ref().map_or(at + WITHOUT_DEADLINE, |(end, _)| *end)
            }
        };
        match way {
            // The command's own failure says more than missing outputs.
            Ending::End { code: 0, .. } if !is_whole => {
                self.close(Ending::End { code: UPLOAD, has_succeeded: false }, mounted, at)
            }
            way => self.close(way, mounted, at),
        }
    }

    /// The time for the upload is over. A success needs a complete upload, so the next attempt resumes at the end of
    /// the training and uploads the model.
    fn not_collected(&mut self, way: Ending, mounted: Option<Mounted>, at: Duration) -> Action {
        match (way, self.interruption()) {
            (Ending::End { has_succeeded: true, .. }, Some(cause)) => {
                self.deadline = self.closing_by(at);
                self.close(Ending::Leave(Some(cause)), mounted, at)
            }
            (way, _) => self.collected(way, false, mounted, at),
        }
    }

    /// Seals the checkpoints unless the trial has succeeded, and unmounts.
    fn close(&mut self, way: Ending, mounted: Option<Mounted>, at: Duration) -> Action {
        let Some(mounted) = mounted else { return self.report(way, at) };
        if matches!(way, Ending::End { code: 0, .. }) {
            return self.unmount(way);
        }
        // Half of the time left is for reading. The rest is for unmounting and for delays.
        let reading_until = at + self.deadline.saturating_sub(at) / 2;
        let is_left = matches!(way, Ending::Leave(_));
        self.phase = Phase::Sealing(way, mounted);
        self.until = Some(self.deadline);
        Action::Seal { reading_until, is_left }
    }

    fn unmount(&mut self, way: Ending) -> Action {
        self.phase = Phase::Unmounting(way);
        self.until = Some(self.deadline);
        Action::Unmount
    }

    fn report(&mut self, way: Ending, at: Duration) -> Action {
        let (action, until) = match &way {
            Ending::Refuse(reason) => return self.exit(Exit::Refused(reason.clone())),
            Ending::GiveUp { is_left: false, .. } if self.waits_for_the_end() => return self.await_end(),
            Ending::GiveUp { is_left: false, .. } => return self.exit(Exit::Failed),
            Ending::GiveUp { .. } | Ending::Leave(_) => {
                (Action::Release, Some(self.last_request_until(self.deadline, at)))
            }
            Ending::End { code, .. } => (
                Action::End { code: *code, after: Duration::ZERO },
                self.outside.as_ref().map(|(end, _)| self.last_request_until(*end, at)),
            ),
        };
        self.phase = Phase::Reporting(way);
        self.until = until;
        action
    }

    fn answered(&mut self, way: Ending, answer: Option<Answer>) -> Action {
        let exit = match (way, answer) {
            // Batch must start no further attempt.
            (Ending::Leave(_) | Ending::GiveUp { .. }, Some(Answer::Stop(_))) => Exit::Code(0),
            (Ending::GiveUp { .. }, _) if self.waits_for_the_end() => return self.await_end(),
            (Ending::GiveUp { cause: None, .. }, _) => Exit::Failed,
            (Ending::GiveUp { cause, .. } | Ending::Leave(cause), _) => Exit::Left(cause),
            // Another runner has the trial, and the record gets its reports.
            (Ending::End { .. } | Ending::Refuse(_), Some(Answer::Refused(reason))) => Exit::Refused(reason),
            (Ending::End { .. }, Some(Answer::Unavailable(reason))) => Exit::Unfit(reason),
            // The cause of the command's failure is in doubt, so the next attempt continues.
            (Ending::End { code: 1.., .. }, None) if self.doubt().is_some() => Exit::Left(self.doubt()),
            // Batch's own event still has the exit code.
            (Ending::End { code, .. }, _) => Exit::Code(code),
            (Ending::Refuse(reason), _) => Exit::Refused(reason),
        };
        self.exit(exit)
    }

    /// The latest time to wait for the answer to the last request. A container that is killed meanwhile would count as
    /// the trial's own failure.
    fn last_request_until(&self, end: Duration, at: Duration) -> Duration {
        let until = end.max(at + LAST_REQUEST);
        self.exits_by.map_or(until, |exits_by| until.min(exits_by))
    }

    /// Why an unanswered report of a failed command does not end the trial.
    fn doubt(&self) -> Option<Cause> {
        let reason = || "no answer says whether the instance caused the failure of the command".to_owned();
        self.interruption().or_else(|| self.stop.is_none().then(|| Cause::Interrupted(reason())))
    }

    /// Why the container or the instance ends, if the trial does not end with it.
    fn interruption(&self) -> Option<Cause> {
        let cause = self.outside.as_ref().map(|(_, cause)| cause.clone());
        cause.filter(|cause| matches!(cause, Cause::Interrupted(_)))
    }

    /// Whether the runner waits until EC2 takes the instance. If the container was asked to stop, it ends.
    fn waits_for_the_end(&self) -> bool {
        self.notice.is_some() && self.exits_by.is_none()
    }

    fn await_end(&mut self) -> Action {
        self.phase = Phase::AwaitingEnd;
        self.until = Some(self.notice.unwrap_or_default() + STILL_THERE);
        Action::AwaitEnd
    }

    fn exit(&mut self, exit: Exit) -> Action {
        (self.phase, self.until) = (Phase::Over, None);
        Action::Exit(exit)
    }
}

#[cfg(test)]
mod tests;
