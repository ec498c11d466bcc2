//! The way of a dropped file to exactly one submission.
//!
//! SubmitJob has no client token (fact 1). Instead, the stage `Submitting{part}` is committed conditionally, with a
//! lease, *before* SubmitPart is executed. So only the invocation whose commit succeeded submits. If it is killed, no
//! other one touches the part until the lease has ended. An invocation that takes over commits first too, looks the
//! part up by its name, and submits only what Batch does not have.

use jiff::Timestamp;

use super::target::{self, Checked};
use super::{Context, Decision, data, given, plan, submission};
use crate::command::Command;
use crate::input::Followup;
use crate::outcome::{DataProblem, Dropped};
use crate::store::{Versioned, View};
use spotsweep_protocol::ids::Run;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::continuation;
use spotsweep_records::sweep::notification::{Kind, Notification};
use spotsweep_records::sweep::target::Target;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Plan, Prepared, Stage, Sweep};
use spotsweep_sweep_file::{MAX_FILE_BYTES, Problem, Rejected, SweepFile};

pub(super) fn uploaded(view: &View, upload: &Upload, context: Context<'_>) -> Decision {
    // A manual invocation can name any bucket, but the roles allow only the deployment's.
    if upload.bucket != context.settings.bucket {
        let own = &context.settings.bucket;
        return Decision::ignore(format!("the bucket {:?} is not this deployment's, {own:?} is", upload.bucket));
    }
    if !upload.is_answered() {
        return Decision::ignore(format!("{:?} is no sweep file (sweeps/<name>.yaml)", upload.key));
    }
    if let Some(held) = &view.sweep {
        // A late second event does not touch a sweep that runs. `reconcile` handles it, because its role may describe
        // jobs.
        return if held.is_overdue(context.now) && held.record.stage.is_upload() {
            Decision::advance("delivered again, and overdue").next(Followup::SweepOverdue(held.record.id.clone()))
        } else {
            Decision::ignore(format!("already {}", held.record.stage.name()))
        };
    }
    let sweep = Sweep::new(upload.clone());
    let first = first_command(&sweep);
    Decision::advance("reading").sweep(sweep, context.lease_ends()).then(first)
}

/// Returns the command that reads the file, or that rejects it because of its key or size.
pub(super) fn first_command(sweep: &Sweep) -> Command {
    let upload = &sweep.upload;
    if let Some(message) = upload.key_problem() {
        let help = "rename or move the file, for example to sweeps/my-sweep.yaml, and drop it again";
        return reject(sweep, vec![upload.problem(message, help)]);
    }
    if let Some(size) = upload.size.filter(|size| *size > MAX_FILE_BYTES) {
        return reject(sweep, vec![too_large(upload, size)]);
    }
    Command::ReadUpload { sweep: sweep.id.clone(), upload: upload.clone() }
}

/// Returns the rejection of a file that no try could read, so that its author learns of it and not only the alarm.
pub(super) fn give_up(sweep: &Sweep) -> Command {
    let message = format!("the file could not be read or prepared {}", last_failure(sweep));
    let help = "the fault is not in the file: remove the cause, often a missing permission, and drop the file again";
    reject(sweep, vec![sweep.upload.problem(message, help)])
}

/// Returns how often the stage was tried, and the error of the last try.
pub(super) fn last_failure(sweep: &Sweep) -> String {
    let failure = sweep.failure.as_deref().unwrap_or("see the log of the reconcile function");
    format!("in {}: {failure}", counted(sweep.redriven, "try"))
}

/// Keeps the error of a failed try for the answer to the file.
pub(super) fn failed(view: &View, error: &str) -> Decision {
    let Some(Versioned { record: sweep, due, .. }) = view.sweep.as_ref().filter(|held| held.record.stage.is_upload())
    else {
        return Decision::ignore("not on the way to its answer");
    };
    if sweep.failure.as_deref() == Some(error) {
        return Decision::ignore("failed as before");
    }
    let what = format!("{} failed, to be tried again", sweep.stage.name());
    Decision::advance(what).sweep(Sweep { failure: Some(error.to_owned()), ..sweep.clone() }, *due)
}

/// Makes the problem of a file that is too large to be read.
fn too_large(upload: &Upload, size: u64) -> Problem {
    let message = format!("the file has {size} bytes; {MAX_FILE_BYTES} are the most");
    upload.problem(message, "describe the trials with `parameters` instead of listing them, or use several files")
}

/// Parses the file, with what its object's metadata has.
fn parse(upload: &Upload, file: &Dropped, context: Context<'_>) -> Result<SweepFile, Rejected> {
    match file {
        Dropped::Gone => {
            let message = "the file was deleted before it could be read";
            Err(vec![upload.problem(message, "drop it again")].into())
        }
        Dropped::TooLarge(size) => Err(vec![too_large(upload, *size)].into()),
        Dropped::Read { bytes, given } => given::parse(upload, bytes, given, context),
    }
}

pub(super) fn read(view: &View, file: &Dropped, context: Context<'_>) -> Decision {
    let prepared = |upload: &Upload| parse(upload, file, context).and_then(|file| plan::plan(file, context));
    reading(view, |sweep| match prepared(&sweep.upload) {
        Ok(prepared) => Decision::advance(format!("{}, checking where to run", counted(prepared.plan.trials, "trial")))
            .then(Command::CheckTarget { sweep: sweep.id.clone(), prepared }),
        Err(rejected) => Decision::advance(counted(rejected.problems.len(), "problem")).then(reject(sweep, rejected)),
    })
}

pub(super) fn checked(view: &View, prepared: &Prepared, target: &Target) -> Decision {
    reading(view, |sweep| match target::check(prepared, target, &sweep.upload.bucket) {
        Ok(Checked { prepared, image: None }) => store(sweep, prepared),
        Ok(Checked { prepared, image: Some(wanted) }) => Decision::advance("registering the image")
            .then(Command::RegisterImage { sweep: sweep.id.clone(), prepared, wanted }),
        Err(problems) => nowhere(sweep, prepared, problems),
    })
}

/// Pins the job definition with the sweep's image.
pub(super) fn image_registered(view: &View, prepared: &Prepared, definition: &Result<String, String>) -> Decision {
    reading(view, |sweep| match definition {
        Ok(arn) => {
            let plan = Plan { definition: arn.clone(), ..prepared.plan.clone() };
            store(sweep, Prepared { plan, ..prepared.clone() })
        }
        Err(refusal) => {
            let image = prepared.plan.image.as_deref().unwrap_or_default();
            let message = format!("AWS Batch refuses the image {image}: {refusal}");
            let help = "name an image that the deployment allows (its parameter AllowedImages), or have it allowed";
            nowhere(sweep, prepared, vec![prepared.file.problem_at("image", message, help)])
        }
    })
}

pub(super) fn code_missing(view: &View, prepared: &Prepared) -> Decision {
    reading(view, |sweep| {
        let sha256 = prepared.plan.packed_code().unwrap_or_default();
        let message = format!("the bucket has no folder of code with the SHA-256 {sha256}");
        let help = "send the folder again: `spotsweep submit` with `code: .`, or `spotsweep code push`";
        nowhere(sweep, prepared, vec![prepared.file.problem_at("code", message, help)])
    })
}

pub(super) fn data_refused(view: &View, prepared: &Prepared, problems: &[(String, DataProblem)]) -> Decision {
    reading(view, |sweep| nowhere(sweep, prepared, data::refused(prepared, problems)))
}

fn store(sweep: &Sweep, prepared: Prepared) -> Decision {
    let bucket = sweep.upload.bucket.clone();
    let store = Command::StoreTrials { sweep: sweep.id.clone(), bucket, prepared };
    Decision::advance("storing the trials").then(store)
}

fn nowhere(sweep: &Sweep, prepared: &Prepared, problems: Vec<Problem>) -> Decision {
    let rejected = Rejected { problems, warnings: prepared.plan.warnings.to_vec() };
    Decision::advance("nowhere to run").then(reject(sweep, rejected))
}

pub(super) fn stored(view: &View, prepared: &Prepared, token: &Secret, context: Context<'_>) -> Decision {
    reading(view, |sweep| {
        let too_small = match data::fit(prepared) {
            Ok(too_small) => too_small,
            Err(problem) => return nowhere(sweep, prepared, vec![problem]),
        };
        let mut sweep = sweep.clone();
        let warnings = prepared.plan.warnings.iter().cloned().chain(too_small).collect();
        sweep.plan = Some(Plan { warnings, ..prepared.plan.clone() });
        sweep.claim_token = Some(token.clone());
        keep(sweep, 0, context)
    })
}

/// Lets the trials that the sweep continues from note it, from snapshot `next` on (`continuation.rs`). Submits once all
/// have.
pub(super) fn keep(mut sweep: Sweep, next: u32, context: Context<'_>) -> Decision {
    if next >= sweep.plan.as_ref().map_or(0, continuation::named) {
        return submit(sweep, 0, None, context);
    }
    sweep.enter(Stage::Keeping { next });
    let what = format!("keeping what it goes on from, {} so far", counted(next, "snapshot"));
    let announce = Command::Notify(Notification::internal(&sweep, Kind::Keeping));
    Decision::advance(what).sweep(sweep, context.lease_ends()).then(announce)
}

/// Runs a decision only if the sweep is in `Reading`.
fn reading(view: &View, then: impl FnOnce(&Sweep) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep, .. }) if sweep.stage == Stage::Reading => then(sweep),
        Some(Versioned { record: sweep, .. }) => Decision::ignore(format!("already {}", sweep.stage.name())),
        None => Decision::illegal("an outcome for a sweep that is not stored"),
    }
}

/// Takes the lease on a part, and then submits it.
pub(super) fn submit(mut sweep: Sweep, part: u32, due: Option<Timestamp>, context: Context<'_>) -> Decision {
    let Some(submission) = submission::of(&sweep, Run::Part(part), 0, context) else {
        return Decision::illegal(format!("part {part} is not in the plan"));
    };
    // Submitting the same part again is another try and not a new stage.
    if sweep.stage != (Stage::Submitting { part }) {
        sweep.enter(Stage::Submitting { part });
    }
    Decision::advance(format!("submitting part {part}"))
        .sweep(sweep, due.max(context.lease_ends()))
        .then(Command::SubmitPart(submission))
}

/// Runs a decision only if the sweep is submitting this very part.
fn submitting(view: &View, part: u32, then: impl FnOnce(&Sweep, &Plan) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: Sweep { stage: Stage::Submitting { part: at }, plan: Some(plan), .. }, .. })
            if *at == part =>
        {
            view.sweep.as_ref().map_or_else(|| Decision::ignore("gone"), |held| then(&held.record, plan))
        }
        Some(held) => Decision::ignore(format!("part {part} is done, already {}", held.record.stage.name())),
        None => Decision::illegal("an outcome for a sweep that is not stored"),
    }
}

pub(super) fn submitted(view: &View, part: u32, job: &str, context: Context<'_>) -> Decision {
    if let Some(known) = view.sweep.as_ref().and_then(|held| held.record.plan.as_ref()?.part(part)?.job.as_ref())
        && known != job
    {
        return Decision::illegal(format!("part {part} was submitted twice: {known} and {job}"));
    }
    submitting(view, part, |sweep, plan| {
        let mut sweep = sweep.clone();
        let mut plan = plan.clone();
        if let Some(held) = plan.parts.get_mut(part as usize) {
            held.job = Some(job.to_owned());
        }
        let is_last = part as usize + 1 >= plan.parts.len();
        sweep.plan = Some(plan.clone());
        if !is_last {
            return submit(sweep, part + 1, None, context);
        }
        sweep.enter(Stage::Announcing);
        let write = write_plan(&sweep, plan);
        Decision::advance("submitted").sweep(sweep, context.lease_ends()).then(write)
    })
}

pub(super) fn not_found(view: &View, part: u32, context: Context<'_>) -> Decision {
    // If this is a repeated try, the due time of the next one is set already.
    let due = view.sweep.as_ref().and_then(|held| held.due);
    submitting(view, part, |sweep, _| submit(sweep.clone(), part, due, context))
}

pub(super) fn refused(view: &View, part: u32, message: &str, context: Context<'_>) -> Decision {
    submitting(view, part, |sweep, _| {
        let mut sweep = sweep.clone();
        sweep.enter(Stage::Withdrawing { refusal: message.to_owned() });
        let decision = Decision::advance(format!("Batch refused part {part}: {message}"));
        let command = withdraw(&sweep, message);
        decision.sweep(sweep, context.lease_ends()).then(command)
    })
}

/// Terminates the jobs that were submitted, or rejects the file if there are none.
pub(super) fn withdraw(sweep: &Sweep, refusal: &str) -> Command {
    let jobs = sweep.plan.as_ref().map(Plan::jobs).unwrap_or_default();
    if jobs.is_empty() {
        return reject(sweep, vec![refusal_problem(&sweep.upload, refusal)]);
    }
    Command::TerminateJobs { sweep: sweep.id.clone(), jobs, reason: StopReason::Withdrawn }
}

fn refusal_problem(upload: &Upload, refusal: &str) -> Problem {
    upload.problem(
        format!("AWS Batch refused the job: {refusal}"),
        "fix what it names, in the file, in AWS Batch or in a role's permissions, and drop the file again",
    )
}

pub(super) fn terminated(view: &View) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep @ Sweep { stage: Stage::Withdrawing { refusal }, .. }, .. }) => {
            Decision::advance("withdrawn").then(reject(sweep, vec![refusal_problem(&sweep.upload, refusal)]))
        }
        Some(held) => Decision::ignore(format!("already {}", held.record.stage.name())),
        None => Decision::illegal("an outcome for a sweep that is not stored"),
    }
}

pub(super) fn announced(view: &View, context: Context<'_>) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep, .. }) if sweep.stage == Stage::Announcing => {
            let mut sweep = sweep.clone();
            if sweep.plan.as_ref().is_some_and(Plan::ended) {
                return settle(sweep, context);
            }
            sweep.enter(Stage::Running);
            Decision::advance("running").sweep(sweep, context.recheck_at())
        }
        Some(held) => Decision::ignore(format!("already {}", held.record.stage.name())),
        None => Decision::illegal("an outcome for a sweep that is not stored"),
    }
}

/// Starts `sweep-settled`, because every part has ended.
pub(super) fn settle(mut sweep: Sweep, context: Context<'_>) -> Decision {
    let announce = Command::Notify(Notification::internal(&sweep, Kind::Settling));
    sweep.enter(Stage::Settling);
    sweep.begin_pages();
    Decision::advance("settling").sweep(sweep, context.lease_ends()).then(announce)
}

pub(super) fn rejected(view: &View, problems: &[Problem]) -> Decision {
    rejecting(view, |sweep| {
        let notification = Notification::rejected(sweep, problems);
        Decision::advance("telling why it is rejected").then(Command::Notify(notification))
    })
}

pub(super) fn rejection_announced(view: &View) -> Decision {
    rejecting(view, |sweep| {
        let mut sweep = sweep.clone();
        sweep.enter(Stage::Rejected);
        Decision::advance("rejected").sweep(sweep, None)
    })
}

/// Runs a decision only if the sweep can be rejected.
fn rejecting(view: &View, then: impl FnOnce(&Sweep) -> Decision) -> Decision {
    match &view.sweep {
        Some(Versioned { record: sweep, .. })
            if matches!(sweep.stage, Stage::Reading | Stage::Keeping { .. } | Stage::Withdrawing { .. }) =>
        {
            then(sweep)
        }
        Some(held) => Decision::ignore(format!("already {}", held.record.stage.name())),
        None => Decision::illegal("an outcome for a sweep that is not stored"),
    }
}

pub(super) fn write_plan(sweep: &Sweep, plan: Plan) -> Command {
    Command::WritePlan { sweep: sweep.id.clone(), upload: sweep.upload.clone(), plan }
}

pub(super) fn reject(sweep: &Sweep, rejected: impl Into<Rejected>) -> Command {
    Command::WriteRejection { sweep: sweep.id.clone(), upload: sweep.upload.clone(), rejected: rejected.into() }
}
