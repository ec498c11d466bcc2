//! `decide(nouns, &view, &input, settings, now) -> Decision`: pure, total, one file per noun.
//!
//! Every (state, input) pair is answered: advance, ignore with a reason, or illegal. No `_` arm
//! over our own types, so that a new state or input does not compile until it is answered. An input
//! of a [`Noun`] that a function is not built with is illegal.
#![warn(clippy::wildcard_enum_match_arm)]

mod batch_job_state;
mod continuation;
mod early_stop;
mod ebs_state;
mod fail_fast;
mod noun;
mod plan;
mod reconcile;
mod resubmission;
#[cfg(test)]
mod scene;
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
    /// The answer, for log and audit.
    pub answer: Answer,
    /// The record to write before anything is done.
    pub change: Option<Change>,
    /// What to do then, in order.
    pub commands: Vec<Command>,
    /// What other steps of the invocation are to decide.
    pub next: Vec<Followup>,
    /// What the runner is told, where one asked.
    pub reply: Option<Reply>,
}

/// The three answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The input moved something.
    Advance(String),
    /// The input is late, double or not for us.
    Ignore(String),
    /// The input cannot be in this state: an alarm, nothing changes.
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

/// An event, which is its noun's, or of no function.
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
        Followup::Resource(id, fact) => workspace::told(view, id, fact),
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

/// What a noun decides that the function is not built with.
fn elsewhere() -> Decision {
    Decision::illegal("this function is not built with the noun that decides it: see its main.rs")
}

/// What a decision may know beside the view.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    settings: &'a Settings,
    now: Timestamp,
}

impl Context<'_> {
    /// When another invocation may take over what this one is about to do.
    fn lease_ends(self) -> Option<Timestamp> {
        self.now.checked_add(self.settings.lease).ok()
    }

    /// What was asked for before this has been carried out, or never will be: the lease of whoever asked has ended.
    fn lease_ended(self) -> Timestamp {
        self.now.checked_sub(self.settings.lease).unwrap_or(Timestamp::MIN)
    }

    /// When silent work is looked after.
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

    /// The change is written only with these.
    fn reserve(mut self, reserved: Vec<Reservation>) -> Self {
        if let Some(change) = &mut self.change {
            change.reserved = reserved;
        }
        self
    }

    /// Nothing has changed but figures. Looked after when it was to be: moving that time would cost two writes of the
    /// index, so it waits until half of it is over.
    fn figures_only(mut self, held_due: Option<Timestamp>, context: Context<'_>) -> Self {
        if let Some(change) = &mut self.change {
            let soon = context.now.checked_add(context.settings.recheck / 2).ok();
            change.due = held_due.filter(|due| Some(*due) > soon).or(change.due);
            change.figures_only = true;
        }
        self
    }

    /// With a due time that is held: nothing has changed but the time of the last request.
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
