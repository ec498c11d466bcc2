//! Volumes: made, looked at, attached, detached, deleted.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, InstanceStateName, VolumeAttachment, VolumeAttachmentState, VolumeState as State};
use tokio::time::sleep;

use super::failure::Failure;
use super::{OPERATION_FILTER, operation_name};
use spotsweep_control_plane::workspace::{Fact, Refusal, RefusalKind, TrialRef, VolumeState, detach_pauses, is_denied};

/// The volume that carries an operation's tag, unless it is being deleted.
pub(super) async fn find(client: &Client, of: &TrialRef, operation: u32) -> Result<Fact, Failure> {
    let filter = Filter::builder().name(OPERATION_FILTER).values(operation_name(of, operation)).build();
    let mut volumes = client.describe_volumes().filters(filter).into_paginator().items().send();
    while let Some(volume) = volumes.next().await {
        let volume = volume?;
        let state = state(volume.state(), volume.attachments())?;
        if let Some(id) = volume.volume_id.filter(|_| state != VolumeState::Absent) {
            return Ok(Fact::Volume { operation: Some(operation), id, state });
        }
    }
    Ok(Fact::VolumeNotFound { operation })
}

/// What EC2 says of a volume.
pub(super) async fn describe(client: &Client, id: String) -> Result<Fact, Failure> {
    Ok(match look(client, &id).await? {
        Some(state) => Fact::Volume { operation: None, id, state },
        None => Fact::Missing(id),
    })
}

pub(super) async fn look(client: &Client, id: &str) -> Result<Option<VolumeState>, Failure> {
    match client.describe_volumes().volume_ids(id).send().await.map_err(Failure::from) {
        Ok(answer) => answer.volumes().first().map(|volume| state(volume.state(), volume.attachments())).transpose(),
        Err(Failure::Refused { code, .. }) if code == NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

pub(super) async fn attach(client: &Client, id: String, instance: &str, device: &str) -> Result<Fact, Failure> {
    let answer = client.attach_volume().volume_id(&id).instance_id(instance).device(device).send().await;
    let (code, message) = match answer.map_err(Failure::from) {
        Ok(answer) => {
            let state = attached(answer.instance_id(), answer.state());
            return Ok(Fact::Volume { operation: None, id, state });
        }
        Err(Failure::Refused { code, message }) => (code, message),
        Err(failure) => return Err(failure),
    };
    let kind = match attach_refusal(&code, &message) {
        AttachRefusal::DeviceTaken => RefusalKind::DeviceTaken { volume: id },
        AttachRefusal::Instance => RefusalKind::Instance { volume: id },
        AttachRefusal::Look => {
            let Some(state) = look(client, &id).await? else { return Ok(Fact::Missing(id)) };
            // The code is the same where it is not the volume but the instance that is in the wrong state, or gone.
            if state != VolumeState::Available {
                return Ok(Fact::Volume { operation: None, id, state });
            }
            let may_be_the_instance = code == WRONG_STATE || is_denied(&code);
            let is_leaving = may_be_the_instance && is_leaving(client, instance).await?;
            if !is_leaving && !is_denied(&code) {
                // Refused as in use and described as available: the answer lags behind
                // (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>).
                return Ok(Fact::Volume { operation: None, id, state: VolumeState::Unknown });
            }
            let kind = RefusalKind::Instance { volume: id };
            let lasts = !is_leaving && kind.lasts(&code);
            return Ok(Fact::Refused(Refusal { kind, code, message, lasts }));
        }
    };
    Ok(refused(kind, code, message))
}

pub(super) fn refused(kind: RefusalKind, code: String, message: String) -> Fact {
    let lasts = kind.lasts(&code);
    Fact::Refused(Refusal { kind, code, message, lasts })
}

#[derive(Debug, PartialEq, Eq)]
enum AttachRefusal {
    /// The volume is not as it was thought to be, or is already attached: what it is has to be looked at.
    Look,
    DeviceTaken,
    Instance,
}

pub(super) const NOT_FOUND: &str = "InvalidVolume.NotFound";
const WRONG_STATE: &str = "IncorrectState";

fn attach_refusal(code: &str, message: &str) -> AttachRefusal {
    match code {
        NOT_FOUND | WRONG_STATE | "VolumeInUse" => AttachRefusal::Look,
        denied if is_denied(denied) => AttachRefusal::Look,
        // Only the words tell: "Attachment point /dev/sdf is already in use".
        "InvalidParameterValue" if message.contains("already in use") => AttachRefusal::DeviceTaken,
        _limit_zone_or_unknown => AttachRefusal::Instance,
    }
}

/// Whether an instance is stopping, gone or going.
async fn is_leaving(client: &Client, instance: &str) -> Result<bool, Failure> {
    let answer = match client.describe_instances().instance_ids(instance).send().await.map_err(Failure::from) {
        Ok(answer) => answer,
        Err(Failure::Refused { code, .. }) if code == "InvalidInstanceID.NotFound" => return Ok(true),
        Err(failure) => return Err(failure),
    };
    let mut instances = answer.reservations().iter().flat_map(|reservation| reservation.instances());
    let state = instances.next().and_then(|instance| instance.state()?.name());
    Ok(!matches!(state, Some(InstanceStateName::Pending | InstanceStateName::Running)))
}

pub(super) async fn detach(client: &Client, id: String, force: bool) -> Result<Fact, Failure> {
    match client.detach_volume().volume_id(&id).force(force).send().await.map_err(Failure::from) {
        Ok(answer) => {
            let state = attached(answer.instance_id(), answer.state());
            Ok(Fact::Volume { operation: None, id, state })
        }
        Err(Failure::Refused { code, .. }) if DETACHED_ALREADY.contains(&code.as_str()) => {
            Ok(leaving(describe(client, id).await?))
        }
        Err(failure) => denied_or_gone(client, id, failure).await,
    }
}

/// EC2 refuses to detach what is not attached any more; where it is described as attached all the same, the answer lags
/// behind (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>).
fn leaving(fact: Fact) -> Fact {
    match fact {
        Fact::Volume { operation, id, state: VolumeState::InUse { instance, .. } } => {
            Fact::Volume { operation, id, state: VolumeState::InUse { instance, steady: false } }
        }
        other => other,
    }
}

const DETACHED_ALREADY: [&str; 3] = [NOT_FOUND, WRONG_STATE, "InvalidAttachment.NotFound"];

/// Waits while a volume is on its way off an instance: EBS sends no event when it is (fact 11).
pub(super) async fn await_detached(client: &Client, id: String) -> Result<Fact, Failure> {
    for pause in detach_pauses() {
        match look(client, &id).await? {
            Some(VolumeState::InUse { .. }) => sleep(pause).await,
            Some(_) | None => break,
        }
    }
    describe(client, id).await
}

pub(super) async fn delete(client: &Client, id: String) -> Result<Fact, Failure> {
    match client.delete_volume().volume_id(&id).send().await.map_err(Failure::from) {
        Ok(_) => Ok(Fact::Deleted(id)),
        // "Not found" may be "not found yet", and a wrong state may be that of being made or deleted.
        Err(Failure::Refused { code, .. }) if NOT_DELETABLE.contains(&code.as_str()) => describe(client, id).await,
        Err(failure) => denied_or_gone(client, id, failure).await,
    }
}

/// A call that is denied on a volume that is gone has nothing left to do. On one that is there it is an error: the
/// volume must not be forgotten.
async fn denied_or_gone(client: &Client, id: String, failure: Failure) -> Result<Fact, Failure> {
    match &failure {
        Failure::Refused { code, .. } if is_denied(code) && look(client, &id).await?.is_none() => Ok(Fact::Missing(id)),
        Failure::Refused { .. } | Failure::Throttled { .. } | Failure::Unclear(_) => Err(failure),
    }
}

const NOT_DELETABLE: [&str; 3] = [NOT_FOUND, WRONG_STATE, "VolumeInUse"];

pub(super) fn state(state: Option<&State>, attachments: &[VolumeAttachment]) -> Result<VolumeState, Failure> {
    match state {
        Some(State::Creating) => Ok(VolumeState::Creating),
        Some(State::Available) => Ok(VolumeState::Available),
        Some(State::Error) => Ok(VolumeState::Error),
        Some(State::Deleting | State::Deleted) => Ok(VolumeState::Absent),
        Some(State::InUse) => {
            let attachment = attachments.first();
            let instance = attachment.and_then(VolumeAttachment::instance_id);
            Ok(attached(instance, attachment.and_then(VolumeAttachment::state)))
        }
        unknown => Err(Failure::unclear(format!("EC2 says of a volume that it is {unknown:?}"))),
    }
}

/// `busy` is a detachment that waits for an unmount (fact 28): not steady.
fn attached(instance: Option<&str>, state: Option<&VolumeAttachmentState>) -> VolumeState {
    let steady = state == Some(&VolumeAttachmentState::Attached);
    VolumeState::InUse { instance: instance.unwrap_or_default().to_owned(), steady }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn states_are_taken_from_volume_and_attachment() {
        let in_use = |steady| VolumeState::InUse { instance: "i-1".into(), steady };
        let attachment = |state: &str| {
            VolumeAttachment::builder().instance_id("i-1").state(VolumeAttachmentState::from(state)).build()
        };
        let nowhere = VolumeState::InUse { instance: String::new(), steady: false };
        let expected = [
            ("creating", None, VolumeState::Creating),
            ("available", None, VolumeState::Available),
            ("available", Some("detached"), VolumeState::Available),
            ("in-use", Some("attaching"), in_use(false)),
            ("in-use", Some("attached"), in_use(true)),
            ("in-use", Some("busy"), in_use(false)),
            ("in-use", Some("detaching"), in_use(false)),
            ("in-use", None, nowhere),
            ("deleting", None, VolumeState::Absent),
            ("deleted", None, VolumeState::Absent),
            ("error", None, VolumeState::Error),
        ];
        for (volume, attached, expected) in expected {
            let attachments: Vec<_> = attached.map(attachment).into_iter().collect();
            let found = state(Some(&State::from(volume)), &attachments).unwrap();
            assert_eq!(found, expected, "{volume} {attached:?}");
        }
        assert!(state(Some(&State::from("levitating")), &[]).is_err());
        assert!(state(None, &[]).is_err());
    }

    #[test]
    fn refused_attachments_are_told_apart() {
        let taken = "Invalid value '/dev/sdf' for unixDevice. Attachment point /dev/sdf is already in use";
        let expected = [
            ("VolumeInUse", "vol-1 is already attached to an instance", AttachRefusal::Look),
            ("IncorrectState", "vol-1 is not 'available'.", AttachRefusal::Look),
            ("IncorrectState", "Instance 'i-1' is not 'running'.", AttachRefusal::Look),
            ("InvalidVolume.NotFound", "", AttachRefusal::Look),
            ("InvalidParameterValue", taken, AttachRefusal::DeviceTaken),
            ("InvalidParameterValue", "Value (/dev/x) for parameter device is invalid", AttachRefusal::Instance),
            ("AttachmentLimitExceeded", "", AttachRefusal::Instance),
            ("InvalidInstanceID.NotFound", "", AttachRefusal::Instance),
            ("InvalidVolume.ZoneMismatch", "", AttachRefusal::Instance),
            ("UnauthorizedOperation", "", AttachRefusal::Look),
        ];
        for (code, message, kind) in expected {
            assert_eq!(attach_refusal(code, message), kind, "{code} {message}");
        }
    }
}
