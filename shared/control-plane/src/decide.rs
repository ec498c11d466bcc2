//! The decisions of the control plane: `decide(nouns, &view, &input, settings, now) -> Decision`. They are pure and
//! total, with one file for each noun.
//!
//! Every (state, input) pair has an answer: advance, ignore with a reason, or illegal. There is no `_` arm over our own
//! types, so that a new state or input does not compile until it has an answer. An input of a [`Noun`] that a function
//! is not built with is illegal.
#![warn(clippy::wildcard_enum_match_arm)]

mod batch_job_state;
mod continuation;
pub mod data;
mod early_stop;
mod ebs_state;
mod fail_fast;
mod given;
mod image;
mod noun;
mod plan;
mod reconcile;
mod resubmission;
#[cfg(test)]
mod scene;
mod secrets;
mod silence;
mod spot_interruption;
mod stall;
mod submission;
mod suggestion;
mod sweep_settled;
pub mod sweep_upload;
pub mod target;
mod trial_claim;
mod unfit_instance;
mod workspace;

use std::fmt;

use jiff::Timestamp;

use crate::command::Command;
use crate::event::{Event, Job};
use crate::input::{Followup, Input};
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{Change, Record, Reservation, View};
pub use noun::{BatchJobState, EbsState, Noun, Reconcile, SpotInterruption, SweepSettled, SweepUpload, TrialClaim};
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::Run;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::sweep::notification::Kind;
use spotsweep_records::trial::Trial;

/// What follows from an input in a state.
#[derive(Debug)]
pub struct Decision {
    /// The answer, for the log and the audit entry.
    pub answer: Answer,
    /// The record that is written before any command is executed.
    pub change: Option<Change>,
    /// The commands that are executed then, in order.
    pub commands: Vec<Command>,
    /// The inputs that further steps of the invocation decide.
    pub next: Vec<Followup>,
    /// The reply to the runner, if it has sent a request.
    pub reply: Option<Reply>,
}

/// The three kinds of answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The input has changed something, or leads to a command.
    Advance(String),
    /// The input is late, repeated or not for this deployment.
    Ignore(String),
    /// The input cannot come in this state. Nothing changes, and it is an alarm.
    Illegal(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance(what) => formatter.write_str(what),
            Self::Ignore(why) => write!(formatter, "ignored, {why}"),
            Self::Illegal(why) => write!(formatter, "illegal, {why}"),
        }
    }
}

/// Decides an input, with the nouns that the function is built with.
pub fn decide(nouns: &[&dyn Noun], view: &View, input: &Input, settings: &Settings, now: Timestamp) -> Decision {
    let context = Context { settings, now };
    let decided = nouns.iter().find_map(|noun| noun.decide(view, input, context));
    decided.unwrap_or_else(|| match input {
        Input::Event(event) => of_event(event),
        Input::Outcome(outcome) => of_outcome(view, outcome, context),
        Input::Followup(followup) => of_followup(view, followup, context),
    })
}

/// Answers an event that no noun of the function has decided.
fn of_event(event: &Event) -> Decision {
    match event {
        Event::SweepUploaded(_)
        | Event::JobChanged(_)
        | Event::TrialRequested(_)
        | Event::InstanceNoticed { .. }
        | Event::ResourceChanged { .. }
        | Event::SweepKeeping(_)
        | Event::SweepSettling(..)
        | Event::SweepRunning(..)
        | Event::ReconcileDue => elsewhere(),
        Event::Unknown { source, detail_type } => {
            Decision::ignore(format!("unknown kind {detail_type:?} from {source:?}"))
        }
    }
}

fn of_outcome(view: &View, outcome: &Outcome, context: Context<'_>) -> Decision {
    match outcome {
        Outcome::PartSubmitted { name, job } => match name.run {
            Run::Part(part) => sweep_upload::submitted(view, part, job, context),
            Run::Again { round, .. } => resubmission::submitted(view, round, job, context),
        },
        Outcome::PartNotFound { name } => match name.run {
            Run::Part(part) => sweep_upload::not_found(view, part, context),
            Run::Again { round, .. } => resubmission::not_found(view, round, context),
        },
        Outcome::PartRefused { name, message } => match name.run {
            Run::Part(part) => sweep_upload::refused(view, part, message, context),
            Run::Again { round, .. } => resubmission::refused(view, round, message, context),
        },
        Outcome::JobsTerminated(_) => sweep_upload::terminated(view),
        Outcome::JobDescribed(Job::Trial(job)) => batch_job_state::trial(view, job, true, context),
        Outcome::JobDescribed(Job::Part(job)) => batch_job_state::part(view, job, context),
        Outcome::JobUnknown(job) => batch_job_state::unknown(view, job, context),
        Outcome::AttemptLocated { attempt, instance, zone, .. } => {
            workspace::located(view, *attempt, instance, zone, context)
        }
        Outcome::Workspace(trial, fact) => workspace::known(view, trial, fact, context),
        Outcome::WaitingCancelled(_) => Decision::ignore("its trials' own events follow"),
        Outcome::Notified(notification) => match &notification.kind {
            Kind::Keeping => Decision::ignore("sweep-upload takes it from here"),
            Kind::Settling | Kind::Running => Decision::ignore("sweep-settled takes it from here"),
            Kind::Settled => sweep_settled::settled(view),
            Kind::OverBudget | Kind::TargetReached | Kind::FailingFast => {
                sweep_settled::stopped(view, notification.stop.as_ref())
            }
            Kind::Rejected => sweep_upload::rejection_announced(view),
            Kind::Stalled(attempt) => stall::announced(view, attempt, context),
            Kind::Silent(attempt) => silence::announced(view, attempt, context),
        },
        Outcome::UploadRead { .. }
        | Outcome::TargetChecked { .. }
        | Outcome::ImageRegistered { .. }
        | Outcome::CodeMissing { .. }
        | Outcome::DataRefused { .. }
        | Outcome::TrialsStored { .. }
        | Outcome::SnapshotsRead(_)
        | Outcome::PlanWritten(_)
        | Outcome::RejectionWritten { .. }
        | Outcome::CredentialsIssued { .. }
        | Outcome::InstanceDrained { .. }
        | Outcome::InstanceChecked { .. }
        | Outcome::InstanceEnded { .. }
        | Outcome::SpaceRead { .. }
        | Outcome::StartFound { .. }
        | Outcome::GpusFound { .. }
        | Outcome::LineFound { .. }
        | Outcome::PageStored { .. }
        | Outcome::PagesRead { .. }
        | Outcome::ReportInputs { .. }
        | Outcome::ResultsPublished { .. } => elsewhere(),
    }
}

fn of_followup(view: &View, followup: &Followup, context: Context<'_>) -> Decision {
    match followup {
        Followup::Workspace(trial, fact) => workspace::known(view, trial, fact, context),
        Followup::Resource(id, fact) => workspace::pass_on(view, id, fact),
        Followup::PartEnded(job) => batch_job_state::part(view, job, context),
        Followup::Interrupted(_) => early_stop::interrupted(view, context),
        Followup::Continues(of) if of.next().is_some() => continuation::referred(view, of),
        Followup::Continues(of) => continuation::noted(view, of, context),
        Followup::Continued { of, .. } => continuation::note(view, of, context),
        Followup::NotKept(of) => continuation::not_kept(view, of),
        Followup::NeededBy { trial, by } => continuation::looked_up(view, (trial, by), context),
        Followup::TryFailed { error, .. } => sweep_upload::failed(view, error),
        Followup::SweepOverdue(_)
        | Followup::TrialOverdue(_)
        | Followup::Requested(_)
        | Followup::Compared(_)
        | Followup::TrialsChecked(..) => elsewhere(),
    }
}

/// Answers an input of a noun that the function is not built with.
fn elsewhere() -> Decision {
    Decision::illegal("this function is not built with the noun that decides it: see its main.rs")
}

/// What a decision may use besides the view.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    settings: &'a Settings,
    now: Timestamp,
}

impl Context<'_> {
    /// Returns when another invocation may take over the work of this one.
    fn lease_ends(self) -> Option<Timestamp> {
        self.now.checked_add(self.settings.lease).ok()
    }

    /// Returns the time before which every requested call has ended, because the lease of its invocation is over.
    fn lease_ended(self) -> Timestamp {
        self.now.checked_sub(self.settings.lease).unwrap_or(Timestamp::MIN)
    }

    /// Returns when a record without events is looked at again.
    fn recheck_at(self) -> Option<Timestamp> {
        self.now.checked_add(self.settings.recheck).ok()
    }
}

impl Decision {
    fn advance(what: impl Into<String>) -> Self {
        Self::answering(Answer::Advance(what.into()))
    }

    fn ignore(why: impl Into<String>) -> Self {
        Self::answering(Answer::Ignore(why.into()))
    }

    fn illegal(why: impl Into<String>) -> Self {
        Self::answering(Answer::Illegal(why.into()))
    }

    fn answering(answer: Answer) -> Self {
        Self { answer, change: None, commands: Vec::new(), next: Vec::new(), reply: None }
    }

    fn sweep(mut self, sweep: Sweep, due: Option<Timestamp>) -> Self {
        self.change =
            Some(Change { record: Record::Sweep(Box::new(sweep)), due, figures_only: false, reserved: Vec::new() });
        self
    }

    fn trial(mut self, trial: Trial, due: Option<Timestamp>) -> Self {
        self.change =
            Some(Change { record: Record::Trial(Box::new(trial)), due, figures_only: false, reserved: Vec::new() });
        self
    }

    /// Writes the change only if these reservations succeed.
    fn reserve(mut self, reserved: Vec<Reservation>) -> Self {
        if let Some(change) = &mut self.change {
            change.reserved = reserved;
        }
        self
    }

    /// Marks that only figures have changed. The due time then moves only after half of the time to it has passed,
    /// because moving it costs two writes of the index.
    fn figures_only(mut self, held_due: Option<Timestamp>, context: Context<'_>) -> Self {
        if let Some(change) = &mut self.change {
            let soon = context.now.checked_add(context.settings.recheck / 2).ok();
            change.due = held_due.filter(|due| Some(*due) > soon).or(change.due);
            change.figures_only = true;
        }
        self
    }

    /// Marks that only the time of the last request has changed, if a held due time is given.
    fn only_noted(mut self, held_due: Option<Option<Timestamp>>) -> Self {
        if let (Some(change), Some(held_due)) = (&mut self.change, held_due) {
            (change.due, change.figures_only) = (held_due, true);
        }
        self
    }

    fn then(mut self, command: Command) -> Self {
        self.commands.push(command);
        self
    }

    fn then_all(mut self, commands: Vec<Command>) -> Self {
        self.commands.extend(commands);
        self
    }

    fn next(mut self, followup: Followup) -> Self {
        self.next.push(followup);
        self
    }

    fn reply(mut self, reply: Reply) -> Self {
        self.reply = Some(reply);
        self
    }
}
