//! Parses the words of a `when` line into an input.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use spotsweep_control_plane::event::{Ask, Ending, Event, Job, TrialJob, TrialRequest};
use spotsweep_control_plane::input::{Followup, Input};
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_protocol::claim::{ByteRange, Found, Machine, NoticeKind, Outputs, Prefix, Rollback, Seal};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::secret::{SECRET_BYTES, Secret};
use spotsweep_records::sweep::continuation::TrialStart;
use spotsweep_records::sweep::notification::{Kind, Notification, SilentAttempt};
use spotsweep_records::trial::{Attempt, HOST_GONE, Host, JobStatus, Observation};
use spotsweep_records::workspace::{Fact, Refusal, RefusalKind, SnapshotState, TrialRef, VolumeState};

use crate::run::FORGER;

/// Batch's id of the trial's job.
pub(super) const JOB: &str = "job";

/// The sweep's claim token.
pub(super) const TOKEN: [u8; SECRET_BYTES] = [7; SECRET_BYTES];

pub(super) fn input(sweep: &SweepId, text: &str) -> Result<Input, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let trial = TrialRef { sweep: sweep.clone(), index: 0 };
    let fact = |fact| Ok(Outcome::Workspace(trial.clone(), fact).into());
    match words.as_slice() {
        ["located", "attempt", attempt, "on", instance, "in", zone] => {
            let (instance, zone) = ((*instance).into(), (*zone).into());
            Ok(Outcome::AttemptLocated { trial: trial.clone(), attempt: number(attempt)?, instance, zone }.into())
        }
        ["batch", status, "after", ended, "attempts"] => {
            batch(trial, status, vec![reclaimed(); number(ended)? as usize])
        }
        ["batch", status, "after", ended, "false", "starts"] => {
            let reason = Some("CannotPullContainerError: manifest unknown".into());
            let not_started = Attempt { reason, ..Attempt::default() };
            batch(trial, status, vec![not_started; number(ended)? as usize])
        }
        ["start", "of", "attempt", attempt, "is", of] => started(sweep, number(attempt)?, of),
        ["line", "of", "attempt", attempt] => line_found(sweep, number(attempt)?),
        ["overdue"] => Ok(Input::Followup(Followup::TrialOverdue(trial))),
        ["notified", "that", "attempt", attempt, what @ ..] => silent(&trial, number(attempt)?, what),
        ["instance", "of", "attempt", attempt, how @ ..] => of_instance(trial, number(attempt)?, how),
        ["notice", instance, "interruption"] => noticed(trial, instance, NoticeKind::Interruption),
        ["notice", instance, "rebalance"] => noticed(trial, instance, NoticeKind::Rebalance),
        ["volume", "of", "operation", operation, "not", "found"] => {
            fact(Fact::VolumeNotFound { operation: number(operation)? })
        }
        ["volume", id, "of", "operation", operation, state @ ..] => {
            let operation = Some(number(operation)?);
            fact(Fact::Volume { operation, id: (*id).into(), state: volume(state)? })
        }
        ["volume", id, state @ ..] => fact(Fact::Volume { operation: None, id: (*id).into(), state: volume(state)? }),
        ["ebs", "volume", id, how @ ..] => fact(Fact::VolumeReported { id: (*id).into(), failure: failure(how)? }),
        ["snapshot", "of", "operation", operation, "not", "found"] => {
            fact(Fact::SnapshotNotFound { operation: number(operation)? })
        }
        ["snapshot", id, "of", "operation", operation, state] => {
            let operation = Some(number(operation)?);
            fact(Fact::Snapshot { operation, id: (*id).into(), state: snapshot(state)? })
        }
        ["snapshot", id, state] => fact(Fact::Snapshot { operation: None, id: (*id).into(), state: snapshot(state)? }),
        ["missing", id] => fact(Fact::Missing((*id).into())),
        ["deleted", id] => fact(Fact::Deleted((*id).into())),
        ["due"] => fact(Fact::Due),
        ["continued", "until", seconds] => {
            let until = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000 + i64::from(number(seconds)?));
            fact(Fact::Continued { by: sweep.clone(), until })
        }
        ["discontinued"] => fact(Fact::Discontinued { by: sweep.clone() }),
        ["refused", "volume", operation, code] => {
            refused(trial, RefusalKind::Volume { operation: number(operation)? }, code)
        }
        ["refused", "snapshot", operation, code] => {
            refused(trial, RefusalKind::Snapshot { operation: number(operation)? }, code)
        }
        ["refused", "device", "of", instance, "for", volume] => {
            let kind = RefusalKind::DeviceTaken { volume: (*volume).into(), instance: (*instance).into() };
            refused(trial, kind, "InvalidParameterValue")
        }
        ["refused", "instance", instance, "for", volume, code] => {
            let kind = RefusalKind::Instance { volume: (*volume).into(), instance: (*instance).into() };
            refused(trial, kind, code)
        }
        ["attempt", attempt, ask @ ..] => requested(sweep, number(attempt)?, (TOKEN, 0), ask),
        ["somebody", "as", "attempt", attempt, ask @ ..] => requested(sweep, number(attempt)?, (TOKEN, 1), ask),
        ["forger", "as", "attempt", attempt, ask @ ..] => requested(sweep, number(attempt)?, (FORGER, 1), ask),
        _ => Err("no such event".into()),
    }
}

/// A request with this claim token, by a runner with this secret.
fn requested(sweep: &SweepId, attempt: u32, known: ([u8; SECRET_BYTES], u8), ask: &[&str]) -> Result<Input, String> {
    Ok(Event::TrialRequested(request(sweep, attempt, known, asked(ask)?)).into())
}

fn request(sweep: &SweepId, attempt: u32, (token, secret): ([u8; SECRET_BYTES], u8), ask: Ask) -> TrialRequest {
    let (sweep, job) = (sweep.clone(), JobId::from(JOB.to_owned()));
    let (token, secret) = (Some(Secret::of(token)), Some(Secret::of([secret; SECRET_BYTES])));
    TrialRequest { sweep, index: 0, job, attempt, token, secret, ask }
}

/// While an attempt claims, the trial is found whose collected checkpoint it starts from.
fn started(sweep: &SweepId, attempt: u32, of: &str) -> Result<Input, String> {
    let ask = asked(&["claims", "on", "i-a", "in", "us-east-1a"])?;
    let start = TrialStart { snapshot: None, restores: Some(of.to_owned().try_into()?) };
    Ok(Outcome::StartFound { request: request(sweep, attempt, (TOKEN, 0), ask), start }.into())
}

/// An attempt's line of parameters is found.
fn line_found(sweep: &SweepId, attempt: u32) -> Result<Input, String> {
    let request = request(sweep, attempt, (TOKEN, 0), asked(&["claims"])?);
    let line = ByteRange { bucket: "b".into(), key: "k".into(), first_byte: 0, last_byte: 1 };
    let outputs = Prefix { bucket: "b".into(), prefix: sweep.trial_prefix(0) };
    Ok(Outcome::LineFound { request, line, outputs, gpus: None }.into())
}

/// An outcome about the instance of an attempt.
fn of_instance(trial: TrialRef, attempt: u32, how: &[&str]) -> Result<Input, String> {
    let ended = |trial, refusal| Ok(Outcome::InstanceEnded { trial, attempt, refusal }.into());
    match how {
        ["checked", host @ ..] => Ok(Outcome::InstanceChecked { trial, attempt, host: checked(host)? }.into()),
        ["ended"] => ended(trial, None),
        ["not", "ended"] => ended(trial, Some("UnauthorizedOperation: no".to_owned())),
        how => drained(&trial.sweep, attempt, how),
    }
}

/// The outcome of draining an instance that an attempt has found unfit.
fn drained(sweep: &SweepId, attempt: u32, how: &[&str]) -> Result<Input, String> {
    let drained = match how {
        ["drained"] => Drained::Yes("arn".into()),
        ["not", "placed"] => Drained::NotPlaced,
        ["not", "drained"] => Drained::Refused("AccessDeniedException".into()),
        _ => return Err("drained, not placed, or not drained?".into()),
    };
    let request = request(sweep, attempt, (TOKEN, 0), Ask::Claim(Machine::default()));
    Ok(Outcome::InstanceDrained { request, drained }.into())
}

/// The notification about an attempt that has been silent since this time.
fn silent(trial: &TrialRef, attempt: u32, what: &[&str]) -> Result<Input, String> {
    let ["is", "silent", "since", since, host @ ..] = what else { return Err("notified of what?".into()) };
    let Host { agent, status, .. } = checked(host)?.ok_or("of which instance?")?;
    let since = number(since.trim_end_matches('s'))?;
    let since = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000 + i64::from(since));
    let kind = Kind::Silent(SilentAttempt { index: trial.index, attempt, since, agent, status });
    let (sweep, file, message) = (trial.sweep.clone(), "sweeps/s.yaml".to_owned(), String::new());
    Ok(Outcome::Notified(Notification { sweep, file, kind, message, topic: None, page: None, stop: None }).into())
}

/// What ECS and EC2 report about the instance of an attempt.
fn checked(words: &[&str]) -> Result<Option<Host>, String> {
    let (agent, status) = match words {
        ["not", "placed"] => return Ok(None),
        ["agent", agent, "instance", status] => (*agent, *status),
        _ => return Err("agent connected, disconnected or unknown, and instance not-impaired, impaired …?".into()),
    };
    let agent = serde_json::from_value(agent.into()).map_err(|error| error.to_string())?;
    let status = serde_json::from_value(status.into()).map_err(|error| error.to_string())?;
    Ok(Some(Host { instance: Some("i-a".into()), agent, status }))
}

fn asked(words: &[&str]) -> Result<Ask, String> {
    let report = |seal, ended| {
        let (metrics, stalled_seconds, rungs) = (BTreeMap::new(), None, Vec::new());
        Ask::Report { sequence: 1000, metrics, seal, ended, stalled_seconds, rungs }
    };
    Ok(match words {
        ["claims", "on", instance, "in", zone] => {
            let (instance, zone) = (Some((*instance).into()), Some((*zone).into()));
            Ask::Claim(Machine { instance, zone, ..Machine::default() })
        }
        ["claims", "on", instance, "in", zone, "which", "cannot", "train"] => {
            let mut ask = asked(&["claims", "on", instance, "in", zone])?;
            if let Ask::Claim(machine) = &mut ask {
                machine.defect = Some("its GPU does not answer".into());
            }
            ask
        }
        ["claims"] => Ask::Claim(Machine::default()),
        ["requests", "credentials"] => Ask::Access,
        ["mounts", volume] => Ask::Mounted { volume: (*volume).into(), found: Found::default() },
        ["mounts", volume, "torn", torn, "newest", newest] => {
            let found = Found { torn: vec![(*torn).into()], newest: Some((*newest).into()), ..Found::default() };
            Ask::Mounted { volume: (*volume).into(), found }
        }
        ["mounts", volume, "torn", torn, "nothing", "left"] => {
            let found = Found { torn: vec![(*torn).into()], ..Found::default() };
            Ask::Mounted { volume: (*volume).into(), found }
        }
        ["warns"] => Ask::Notice(NoticeKind::Interruption),
        ["reports"] => report(None, None),
        ["releases"] => report(
            Some(Seal { files: 1, bytes: 1, newest: Some("epoch-1".into()) }),
            Some(Ending::Released { rollback: None }),
        ),
        ["rolls", "back", "from", checkpoint, "to", before] => {
            let rollback = Rollback { checkpoint: (*checkpoint).into(), exit_code: 1, to: Some((*before).into()) };
            let seal = Seal { files: 1, bytes: 1, newest: Some((*before).into()) };
            report(Some(seal), Some(Ending::Released { rollback: Some(rollback) }))
        }
        ["finishes", "with", code, "in", "report", sequence] => {
            let mut ask = asked(&["finishes", "with", code])?;
            if let Ask::Report { sequence: number, .. } = &mut ask {
                *number = sequence.parse().map_err(|_| "which report?")?;
            }
            ask
        }
        ["finishes", "with", code] => {
            let exit_code = code.parse().map_err(|_| "which exit code?")?;
            report(None, Some(Ending::Finished { exit_code, outputs: Outputs::default(), seconds: 1.0, error: None }))
        }
        _ => return Err("an attempt does not do that".into()),
    })
}

fn reclaimed() -> Attempt {
    Attempt { reason: Some(format!("{HOST_GONE} (instance i-1) terminated.").into()), ..Attempt::default() }
}

fn batch(trial: TrialRef, status: &str, ended: Vec<Attempt>) -> Result<Input, String> {
    let status = serde_json::from_value::<JobStatus>(status.into()).map_err(|error| error.to_string())?;
    let is_starting = status == JobStatus::Starting;
    let container_instance = is_starting.then(|| "arn".into());
    let job = JobId::from(JOB.to_owned());
    let seen = Observation {
        job,
        status,
        reason: None,
        ended,
        current: Attempt::default(),
        container_instance,
        was_stopped: false,
    };
    let job = TrialJob { sweep: trial.sweep, index: trial.index, round: 0, seen };
    Ok(Event::JobChanged(Job::Trial(job)).into())
}

fn noticed(trial: TrialRef, instance: &str, kind: NoticeKind) -> Result<Input, String> {
    Ok(Outcome::Workspace(trial, Fact::Noticed { instance: instance.into(), kind }).into())
}

fn refused(trial: TrialRef, kind: RefusalKind, code: &str) -> Result<Input, String> {
    let (lasts, message) = (kind.lasts(code), "no".to_owned());
    Ok(Outcome::Workspace(trial, Fact::Refused(Refusal { kind, code: code.to_owned(), message, lasts })).into())
}

fn volume(words: &[&str]) -> Result<VolumeState, String> {
    let in_use = |instance: &&str, steady| VolumeState::InUse { instance: (*instance).into(), steady };
    Ok(match words {
        ["creating"] => VolumeState::Creating,
        ["available"] => VolumeState::Available,
        ["error"] => VolumeState::Error,
        ["absent"] => VolumeState::Absent,
        ["attaching", "to", instance] | ["detaching", "from", instance] => in_use(instance, false),
        ["attached", "to", instance] => in_use(instance, true),
        _ => return Err("no such state of a volume".into()),
    })
}

/// The cause of a volume's failure as EBS reports it; `None` if the volume is available.
fn failure(words: &[&str]) -> Result<Option<String>, String> {
    Ok(match words {
        ["available"] => None,
        ["failed"] => Some(String::new()),
        ["failed", "by", "its", "key"] => Some("arn:aws:kms:us-east-1:000000000000:key/k is disabled.".into()),
        _ => return Err("available, failed, or failed by its key?".into()),
    })
}

fn snapshot(word: &str) -> Result<SnapshotState, String> {
    Ok(match word {
        "pending" => SnapshotState::Pending,
        "completed" => SnapshotState::Completed,
        "failed" => SnapshotState::Failed,
        _ => return Err("no such state of a snapshot".into()),
    })
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}
