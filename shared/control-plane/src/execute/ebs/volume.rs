//! Finds, describes, detaches and deletes volumes.

use super::super::another;
use super::made_by;
use crate::calls::{Attachment, CallError, DescribeVolumes, Ec2, Volume, Wait};
use spotsweep_records::workspace::{Fact, TrialRef, VolumeState, detach_pauses, is_denied};

/// Finds the volume with an operation's tag, unless it is being deleted.
pub(super) async fn find(ec2: &impl Ec2, of: &TrialRef, operation: u32) -> Result<Fact, CallError> {
    let mut wanted = DescribeVolumes { filters: made_by(of, operation), ..DescribeVolumes::default() };
    loop {
        let page = ec2.describe_volumes(wanted.clone()).await?;
        for volume in page.items {
            let state = state(&volume)?;
            if state != VolumeState::Absent {
                return Ok(Fact::Volume { operation: Some(operation), id: volume.id, state });
            }
        }
        wanted.next_token = another(wanted.next_token.as_deref(), page.next_token);
        if wanted.next_token.is_none() {
            return Ok(Fact::VolumeNotFound { operation });
        }
    }
}

/// Describes a volume, as a fact.
pub(super) async fn describe(ec2: &impl Ec2, id: String) -> Result<Fact, CallError> {
    Ok(match look(ec2, &id).await? {
        Some(state) => Fact::Volume { operation: None, id, state },
        None => Fact::Missing(id),
    })
}

pub(super) async fn look(ec2: &impl Ec2, id: &str) -> Result<Option<VolumeState>, CallError> {
    let wanted = DescribeVolumes { ids: vec![id.to_owned()], ..DescribeVolumes::default() };
    match ec2.describe_volumes(wanted).await {
        Ok(page) => page.items.first().map(state).transpose(),
        Err(error) if error.refusal() == Some(NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) const NOT_FOUND: &str = "InvalidVolume.NotFound";
pub(super) const WRONG_STATE: &str = "IncorrectState";

pub(super) async fn detach(ec2: &impl Ec2, id: String, force: bool) -> Result<Fact, CallError> {
    match ec2.detach_volume(id.clone(), force).await {
        Ok(attachment) => Ok(Fact::Volume { operation: None, id, state: attached(attachment) }),
        Err(error) if error.refusal().is_some_and(|code| DETACHED_ALREADY.contains(&code)) => {
            Ok(leaving(describe(ec2, id).await?))
        }
        Err(error) => denied_or_gone(ec2, id, error).await,
    }
}

/// Treats an attached volume as leaving. EC2 refuses to detach a volume that is not attached any more, so a description
/// as attached is not up to date yet (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>).
fn leaving(fact: Fact) -> Fact {
    match fact {
        Fact::Volume { operation, id, state: VolumeState::InUse { instance, .. } } => {
            Fact::Volume { operation, id, state: VolumeState::InUse { instance, steady: false } }
        }
        other => other,
    }
}

const DETACHED_ALREADY: [&str; 3] = [NOT_FOUND, WRONG_STATE, "InvalidAttachment.NotFound"];

/// Waits while a volume is being detached, because EBS sends no event when it is (fact 11).
pub(super) async fn await_detached(ec2: &impl Ec2, time: &impl Wait, id: String) -> Result<Fact, CallError> {
    for pause in detach_pauses() {
        let is_in_use = matches!(look(ec2, &id).await?, Some(VolumeState::InUse { .. }));
        if !is_in_use || !time.wait(pause).await {
            break;
        }
    }
    describe(ec2, id).await
}

pub(super) async fn delete(ec2: &impl Ec2, id: String) -> Result<Fact, CallError> {
    match ec2.delete_volume(id.clone()).await {
        Ok(()) => Ok(Fact::Deleted(id)),
        // "Not found" can mean "not visible yet", and a wrong state can be that of a volume that is being created or
        // deleted.
        Err(error) if error.refusal().is_some_and(|code| NOT_DELETABLE.contains(&code)) => describe(ec2, id).await,
        Err(error) => denied_or_gone(ec2, id, error).await,
    }
}

/// Returns the fact that a volume is missing after a denied call, if it is gone. If the volume exists, the denial is an
/// error, because the volume must not be forgotten.
async fn denied_or_gone(ec2: &impl Ec2, id: String, error: CallError) -> Result<Fact, CallError> {
    let is_gone = error.refusal().is_some_and(is_denied) && look(ec2, &id).await?.is_none();
    if is_gone { Ok(Fact::Missing(id)) } else { Err(error) }
}

const NOT_DELETABLE: [&str; 3] = [NOT_FOUND, WRONG_STATE, "VolumeInUse"];

pub(super) fn state(volume: &Volume) -> Result<VolumeState, CallError> {
    match volume.state.as_str() {
        "creating" => Ok(VolumeState::Creating),
        "available" => Ok(VolumeState::Available),
        "error" => Ok(VolumeState::Error),
        "deleting" | "deleted" => Ok(VolumeState::Absent),
        "in-use" => Ok(attached(volume.attachments.first().cloned().unwrap_or_default())),
        unknown => Err(CallError::unclear(format!("EC2 says of a volume that it is {unknown:?}"))),
    }
}

/// Reads an attachment's state. `busy` is a detachment that waits for an unmount (fact 28), so it is not steady.
pub(super) fn attached(attachment: Attachment) -> VolumeState {
    let steady = attachment.state == "attached";
    VolumeState::InUse { instance: attachment.instance.unwrap_or_default(), steady }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn states_are_taken_from_volume_and_attachment() {
        let in_use = |steady| VolumeState::InUse { instance: "i-1".into(), steady };
        let attachment = |state: &str| Attachment { instance: Some("i-1".into()), state: state.into() };
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
            let found = state(&Volume { state: volume.into(), attachments, ..Volume::default() }).unwrap();
            assert_eq!(found, expected, "{volume} {attached:?}");
        }
        assert!(state(&Volume { state: "levitating".into(), ..Volume::default() }).is_err());
        assert!(state(&Volume::default()).is_err());
    }
}
