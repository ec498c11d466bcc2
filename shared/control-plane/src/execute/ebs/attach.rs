//! Attaches volumes, and interprets refusals of that.

use super::{refused, volume};
use crate::calls::{AttachVolume, CallError, Ec2};
use spotsweep_records::workspace::{Fact, Refusal, RefusalKind, VolumeState, is_denied};

pub(super) async fn attach(ec2: &impl Ec2, id: String, instance: String, device: String) -> Result<Fact, CallError> {
    let request = AttachVolume { volume: id.clone(), instance: instance.clone(), device };
    let (code, message) = match ec2.attach_volume(request).await {
        Ok(attachment) => return Ok(Fact::Volume { operation: None, id, state: volume::attached(attachment) }),
        Err(CallError::Refused { code, message }) => (code, message),
        Err(error) => return Err(error),
    };
    let kind = match attach_refusal(&code, &message) {
        AttachRefusal::DeviceTaken => RefusalKind::DeviceTaken { volume: id, instance },
        AttachRefusal::Instance => RefusalKind::Instance { volume: id, instance },
        AttachRefusal::Look => return look(ec2, id, instance, (code, message)).await,
    };
    Ok(refused(kind, code, message))
}

/// Returns the fact that explains a refusal, after looking up the volume's state.
async fn look(
    ec2: &impl Ec2,
    id: String,
    instance: String,
    (code, message): (String, String),
) -> Result<Fact, CallError> {
    let Some(state) = volume::look(ec2, &id).await? else { return Ok(Fact::Missing(id)) };
    // EC2 uses the same code if the instance is in a wrong state or gone.
    if state != VolumeState::Available {
        return Ok(Fact::Volume { operation: None, id, state });
    }
    let may_be_the_instance = code == volume::WRONG_STATE || is_denied(&code);
    let is_leaving = may_be_the_instance && is_leaving(ec2, instance.clone()).await?;
    if !is_leaving && !is_denied(&code) {
        // EC2 refuses the volume as in use but describes it as available, so the description is not up to date yet
        // (<https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>).
        return Ok(Fact::Volume { operation: None, id, state: VolumeState::Unknown });
    }
    let kind = RefusalKind::Instance { volume: id, instance };
    let lasts = !is_leaving && kind.lasts(&code);
    Ok(Fact::Refused(Refusal { kind, code, message, lasts }))
}

#[derive(Debug, PartialEq, Eq)]
enum AttachRefusal {
    /// The volume may be in another state than assumed, or already attached, so its state has to be looked up.
    Look,
    DeviceTaken,
    Instance,
}

fn attach_refusal(code: &str, message: &str) -> AttachRefusal {
    match code {
        volume::NOT_FOUND | volume::WRONG_STATE | "VolumeInUse" => AttachRefusal::Look,
        denied if is_denied(denied) => AttachRefusal::Look,
        // Only the message shows this: "Attachment point /dev/sdf is already in use".
        "InvalidParameterValue" if message.contains("already in use") => AttachRefusal::DeviceTaken,
        _limit_zone_or_unknown => AttachRefusal::Instance,
    }
}

/// Whether an instance is stopping, stopped, terminating or gone.
async fn is_leaving(ec2: &impl Ec2, instance: String) -> Result<bool, CallError> {
    let found = match ec2.describe_instances(instance).await {
        Ok(found) => found,
        Err(error) if error.refusal() == Some("InvalidInstanceID.NotFound") => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(!matches!(found.first().map(|instance| instance.state.as_str()), Some("pending" | "running")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_attachments_are_distinguished() {
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
