//! `decide(&view, &event, settings, now) -> Decision`: pure, total, one file per noun.
//!
//! Every (state, event) pair is answered: advance, ignore with a reason, or illegal. No `_` arm
//! over our own types, so that a new state or event does not compile until it is answered.
#![warn(clippy::wildcard_enum_match_arm)]

mod batch_job_state;
mod ebs_state;
mod reconcile;
mod resubmission;
mod spot_interruption;
mod submission;
mod sweep_settled;
pub mod sweep_upload;
mod trial_claim;
mod workspace;

use std::fmt;

use jiff::Timestamp;

use crate::command::Command;
use crate::event::Event;
use crate::settings::Settings;
use crate::store::{Change, Record, View};
use crate::sweep::Sweep;
use crate::sweep::announcement::Kind;
use crate::trial::Trial;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::Run;

/// What follows from an event in a state.
#[derive(Debug)]
pub struct Decision {
    /// The answer, for log and audit.
    pub answer: Answer,
    /// The record to write before anything is done.
    pub change: Option<Change>,
    /// What to do then, in order.
    pub commands: Vec<Command>,
    /// Events that follow without any effect in between.
    pub next: Vec<Event>,
    /// What the runner is told, where one asked.
    pub reply: Option<Reply>,
}

/// The three answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The event moved something.
    Advance(String),
    /// The event is late, double or not for us.
    Ignore(String),
    /// The event cannot be in this state: an alarm, nothing changes.
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

/// Decides an event.
pub fn decide(view: &View, event: &Event, settings: &Settings, now: Timestamp) -> Decision {
    let context = Context { settings, now };
    match event {
        Event::SweepUploaded(upload) => sweep_upload::uploaded(view, upload, context),
        Event::UploadRead { bytes, .. } => sweep_upload::read(view, bytes, context),
        Event::UploadUnreadable { problem, .. } => sweep_upload::unreadable(view, problem),
        Event::TargetChecked { prepared, problems, .. } => sweep_upload::checked(view, prepared, problems),
        Event::TrialsStored { prepared, .. } => sweep_upload::stored(view, prepared, context),
        Event::PartSubmitted { name, job } => match name.run {
            Run::Part(part) => sweep_upload::submitted(view, part, job, context),
            Run::Again { round, .. } => resubmission::submitted(view, round, job, context),
        },
        Event::PartNotFound { name } => match name.run {
            Run::Part(part) => sweep_upload::not_found(view, part, context),
            Run::Again { round, .. } => resubmission::not_found(view, round, context),
        },
        Event::PartRefused { name, message } => match name.run {
            Run::Part(part) => sweep_upload::refused(view, part, message, context),
            Run::Again { round, .. } => resubmission::refused(view, round, message, context),
        },
        Event::TryFailed { error, .. } => sweep_upload::failed(view, error),
        Event::JobsTerminated(_) => sweep_upload::terminated(view),
        Event::PlanWritten(_) => sweep_upload::announced(view, context),
        Event::RejectionWritten { problems, .. } => sweep_upload::rejected(view, problems),
        Event::TrialJobChanged(job) => batch_job_state::trial(view, job, context),
        Event::PartJobChanged(job) => batch_job_state::part(view, job, context),
        Event::JobUnknown(job) => batch_job_state::unknown(view, job, context),
        Event::TrialRequested(request) => trial_claim::requested(view, request, context),
        Event::AccessLent { access, .. } => trial_claim::lent(access),
        Event::LineFound { request, line, outputs } => trial_claim::granted(view, request, line, outputs, context),
        Event::InstanceNoticed { instance, kind } => spot_interruption::noticed(view, instance, *kind),
        Event::ResourceTold { id, change } => ebs_state::told(view, id, change),
        Event::AttemptLocated { attempt, instance, zone, .. } => {
            workspace::located(view, *attempt, instance, zone, context)
        }
        Event::Workspace(trial, fact) => workspace::known(view, trial, fact, context),
        Event::SweepSettling { sweep, checked } => sweep_settled::settling(view, sweep, *checked),
        Event::SweepRunning(_) => sweep_settled::running(view),
        Event::Gathered { gathered, .. } => sweep_settled::gathered(view, gathered, context),
        Event::ResultsPublished { summary, .. } => sweep_settled::published(view, summary.as_deref()),
        Event::WaitingCancelled(_) => Decision::ignore("its trials' own events follow"),
        Event::Announced(announcement) => match announcement.kind {
            Kind::Settling | Kind::Running => Decision::ignore("sweep-settled takes it from here"),
            Kind::Settled => sweep_settled::settled(view),
            Kind::OverBudget => sweep_settled::stopped(view, context),
            Kind::Rejected => sweep_upload::rejection_announced(view),
        },
        Event::ReconcileDue => reconcile::due(view),
        Event::SweepOverdue(_) => reconcile::overdue(view, context),
        Event::Unknown { source, detail_type } => {
            Decision::ignore(format!("unknown kind {detail_type:?} from {source:?}"))
        }
    }
}

/// What a decision may know beside the view.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
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
        self.change = Some(Change { record: Record::Sweep(Box::new(sweep)), due, figures_only: false });
        self
    }

    fn trial(mut self, trial: Trial, due: Option<Timestamp>) -> Self {
        self.change = Some(Change { record: Record::Trial(Box::new(trial)), due, figures_only: false });
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

    fn then(mut self, command: Command) -> Self {
        self.commands.push(command);
        self
    }

    fn then_all(mut self, commands: Vec<Command>) -> Self {
        self.commands.extend(commands);
        self
    }

    fn next(mut self, event: Event) -> Self {
        self.next.push(event);
        self
    }

    fn reply(mut self, reply: Reply) -> Self {
        self.reply = Some(reply);
        self
    }
}
