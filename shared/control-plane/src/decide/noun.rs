//! The decisions that only the function of one noun makes: about its event, and about outcomes that no other function
//! asks for. A function is built with the decisions of its noun and with its services. So the parser of sweep files,
//! the search and the report are only in the binaries that use them.
#![expect(clippy::wildcard_enum_match_arm, reason = "the rest is another noun's, or what every function decides")]

use std::fmt::Debug;

use super::{
    Context, Decision, batch_job_state, continuation, ebs_state, reconcile, silence, spot_interruption, suggestion,
    sweep_settled, sweep_upload, trial_claim, unfit_instance,
};
use crate::event::{Event, Job};
use crate::input::{Followup, Input};
use crate::outcome::Outcome;
use crate::store::View;

/// A group of inputs that a function can be built to decide.
pub trait Noun: Debug + Sync {
    /// Decides an input; `None` if another noun or every function decides it.
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision>;
}

/// The noun of dropped files, up to their submission. `reconcile` redrives them, so it is built with this noun too.
#[derive(Debug)]
pub struct SweepUpload;

impl Noun for SweepUpload {
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::SweepUploaded(upload)) => sweep_upload::uploaded(view, upload, context),
            Input::Event(Event::SweepKeeping(_)) => continuation::next_page(view),
            Input::Outcome(Outcome::UploadRead { file, .. }) => sweep_upload::read(view, file, context),
            Input::Outcome(Outcome::TargetChecked { prepared, target, .. }) => {
                sweep_upload::checked(view, prepared, target)
            }
            Input::Outcome(Outcome::ImageRegistered { prepared, definition, .. }) => {
                sweep_upload::image_registered(view, prepared, definition)
            }
            Input::Outcome(Outcome::CodeMissing { prepared, .. }) => sweep_upload::code_missing(view, prepared),
            Input::Outcome(Outcome::DataRefused { prepared, problems, .. }) => {
                sweep_upload::data_refused(view, prepared, problems)
            }
            Input::Outcome(Outcome::TrialsStored { prepared, token, .. }) => {
                sweep_upload::stored(view, prepared, token, context)
            }
            Input::Outcome(Outcome::SnapshotsRead(of)) => continuation::page_read(view, of),
            Input::Outcome(Outcome::PlanWritten(_)) => sweep_upload::announced(view, context),
            Input::Outcome(Outcome::RejectionWritten { problems, .. }) => sweep_upload::rejected(view, problems),
            Input::Followup(Followup::SweepOverdue(_)) => reconcile::overdue(view, context),
            _other => return None,
        })
    }
}

/// The noun of Batch's events about jobs.
#[derive(Debug)]
pub struct BatchJobState;

impl Noun for BatchJobState {
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::JobChanged(Job::Trial(job))) => batch_job_state::trial(view, job, false, context),
            Input::Event(Event::JobChanged(Job::Part(job))) => batch_job_state::part(view, job, context),
            _other => return None,
        })
    }
}

/// The noun of EC2's events about instances.
#[derive(Debug)]
pub struct SpotInterruption;

impl Noun for SpotInterruption {
    fn decide(&self, view: &View, input: &Input, _context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::InstanceNoticed { instance, kind }) => {
                spot_interruption::noticed(view, instance, *kind)
            }
            _other => return None,
        })
    }
}

/// The noun of EBS's events about volumes and snapshots.
#[derive(Debug)]
pub struct EbsState;

impl Noun for EbsState {
    fn decide(&self, view: &View, input: &Input, _context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::ResourceChanged { id, change }) => ebs_state::changed(view, id, change),
            _other => return None,
        })
    }
}

/// The noun of the requests of attempts.
#[derive(Debug)]
pub struct TrialClaim;

impl Noun for TrialClaim {
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::TrialRequested(request)) => trial_claim::requested(view, request, context),
            Input::Followup(Followup::Requested(request) | Followup::Compared(request)) => {
                trial_claim::requested(view, request, context)
            }
            Input::Outcome(Outcome::CredentialsIssued { access, .. }) => trial_claim::issued(access),
            Input::Outcome(Outcome::InstanceDrained { request, drained }) => {
                unfit_instance::drained(view, request, drained, context)
            }
            Input::Outcome(Outcome::SpaceRead { request, search }) => {
                suggestion::space_read(view, request, search, context)
            }
            Input::Outcome(Outcome::StartFound { request, start }) => {
                trial_claim::starts_from(view, request, start, context)
            }
            Input::Outcome(Outcome::GpusFound { request, gpus }) => {
                trial_claim::assigned(view, request, gpus.as_deref())
            }
            Input::Outcome(Outcome::LineFound { request, line, outputs, gpus }) => {
                trial_claim::granted(view, request, (line, outputs, gpus.as_deref()), context)
            }
            _other => return None,
        })
    }
}

/// The noun of a sweep's results.
#[derive(Debug)]
pub struct SweepSettled;

impl Noun for SweepSettled {
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::SweepSettling(_, page)) => sweep_settled::settling(view, *page, false),
            Input::Event(Event::SweepRunning(_, page)) => sweep_settled::running(view, *page),
            Input::Outcome(Outcome::PageStored { page, has_ended, .. }) => {
                sweep_settled::page_stored(view, *page, *has_ended, context)
            }
            Input::Outcome(Outcome::PagesRead { trials, .. }) => sweep_settled::pages_read(view, trials),
            Input::Outcome(Outcome::ReportInputs { trials, inputs, .. }) => {
                sweep_settled::gathered(view, trials, inputs, context)
            }
            Input::Outcome(Outcome::ResultsPublished { summary, .. }) => {
                sweep_settled::published(view, summary.as_deref())
            }
            Input::Followup(Followup::TrialsChecked(_, page)) => sweep_settled::settling(view, *page, true),
            _other => return None,
        })
    }
}

/// The noun of overdue records.
#[derive(Debug)]
pub struct Reconcile;

impl Noun for Reconcile {
    fn decide(&self, view: &View, input: &Input, context: Context<'_>) -> Option<Decision> {
        Some(match input {
            Input::Event(Event::ReconcileDue) => reconcile::due(view),
            Input::Outcome(Outcome::InstanceChecked { attempt, host, .. }) => {
                silence::checked(view, *attempt, host.as_ref(), context)
            }
            Input::Outcome(Outcome::InstanceEnded { attempt, refusal, .. }) => {
                silence::ended(view, *attempt, refusal.as_deref(), context)
            }
            Input::Followup(Followup::TrialOverdue(_)) => silence::overdue(view, context),
            _other => return None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use spotsweep_records::sweep::Sweep;
    use spotsweep_records::sweep::upload::Given;
    use spotsweep_sweep_file::MAX_FILE_BYTES;

    use super::*;
    use crate::command::Command;
    use crate::decide::{Answer, decide};
    use crate::outcome::Dropped;
    use crate::settings::Settings;
    use crate::store::{History, Versioned};

    #[test]
    fn a_dropped_file_is_decided_by_its_noun_alone() {
        let now = Timestamp::UNIX_EPOCH;
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": now });
        let record = Sweep::new(serde_json::from_value(upload).unwrap());
        let sweep = record.id.clone();
        let held = Versioned { record, version: 1, due: None, recent: History::new() };
        let view = View { sweep: Some(held), ..View::default() };
        let values = [("SPOTSWEEP_QUEUE", "q"), ("SPOTSWEEP_JOB_DEFINITION", "d")];
        let names = ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE", "SPOTSWEEP_PARAMETERS"];
        let settings = Settings::from_variables(|name| {
            let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            value.or_else(|| names.contains(&name).then(|| "x".into()))
        })
        .unwrap();

        let text = b"command: [python, t.py]\nmethod: random\nparameters: {lr: {min: 0.0, max: 1.0}}\n";
        let read = |run_cap: Option<&str>| {
            let given = Given { run_cap: run_cap.map(str::to_owned), ..Given::default() };
            Dropped::Read { bytes: text.to_vec(), given }
        };
        let cases = [
            (Dropped::Gone, Err("deleted before it could be read")),
            (Dropped::TooLarge(MAX_FILE_BYTES + 1), Err("bytes")),
            (read(Some("two")), Err("is no number of trials: \"two\"")),
            (read(Some("2")), Ok(2)),
        ];
        for (file, expected) in cases {
            let input = Outcome::UploadRead { sweep: sweep.clone(), file }.into();
            let decided = |nouns: &[&dyn Noun]| decide(nouns, &view, &input, &settings, now);
            match (&decided(&[&TrialClaim, &SweepUpload]).commands[..], expected) {
                ([Command::CheckTarget { prepared, .. }], Ok(trials)) => assert_eq!(prepared.plan.trials, trials),
                ([Command::WriteRejection { rejected, .. }], Err(why)) => {
                    let [problem] = &rejected.problems[..] else { unreachable!("{rejected:?}") };
                    assert!(problem.message.contains(why), "{problem:?}");
                }
                other => unreachable!("{other:?}"),
            }
            for others in [&[] as &[&dyn Noun], &[&TrialClaim, &SweepSettled]] {
                assert!(matches!(decided(others).answer, Answer::Illegal(_)));
            }
        }
    }
}
