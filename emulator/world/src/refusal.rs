//! Refusals on demand: permanent ones, as for an action that a role does not allow, and temporary ones.

use super::{ApiError, Service, World};

/// Returns a service's error for a caller without the permission.
fn denied(service: Service) -> ApiError {
    let message = "You are not authorized to perform this operation.".to_owned();
    let code = match service {
        Service::Ec2 => "UnauthorizedOperation",
        Service::Batch | Service::Ecs | Service::Fis | Service::Quotas => "AccessDeniedException",
    };
    // The models of Service Quotas and ECS give the error no status, which makes it 400.
    let status = if matches!(service, Service::Quotas | Service::Ecs) { 400 } else { 403 };
    ApiError { code, status, message }
}

/// Returns a temporary refusal of an action, if it has one
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>).
fn for_now(action: &str) -> Option<ApiError> {
    let (code, message) = match action {
        "CreateVolume" => ("VolumeLimitExceeded", "Maximum number of volumes exceeded."),
        "AttachVolume" => ("AttachmentLimitExceeded", "The instance has as many attachments as it may have."),
        "DetachVolume" => ("IncorrectState", "The volume is not in the right state."),
        "DeleteVolume" => ("VolumeInUse", "The volume is in use."),
        "CreateSnapshot" => ("ConcurrentSnapshotLimitExceeded", "Maximum allowed in-progress snapshots exceeded."),
        "DeleteSnapshot" => ("InvalidSnapshot.InUse", "The snapshot is in use."),
        describe if describe.starts_with("Describe") => return Some(ApiError::server(Service::Ec2)),
        _another => return None,
    };
    Some(ApiError::ec2(code, message))
}

impl World {
    /// Returns the refusal of a call before its effect, if one is wanted.
    pub(super) fn refusal(&mut self, service: Service, action: &str) -> Option<ApiError> {
        if let Some(most_ms) = self.trouble.denied.get(action).copied() {
            let ms = self.ms_since_first(action);
            if most_ms.is_none_or(|most| ms < most) {
                return Some(denied(service));
            }
        }
        if service != Service::Ec2 {
            return None;
        }
        if action == "CreateVolume" && self.trouble.quota_full_ms > 0 {
            let ms = self.ms_since_first(action);
            if ms < self.trouble.quota_full_ms {
                return for_now(action);
            }
        }
        let share = self.trouble.refused_share;
        if share > 0.0 && self.throttle.unit() < share { for_now(action) } else { None }
    }

    /// Returns the milliseconds since the first call of an action that had to be refused.
    fn ms_since_first(&mut self, action: &str) -> u64 {
        let since = *self.calls.refused_since.entry(action.to_owned()).or_insert(self.now);
        u64::try_from(self.now.duration_since(since).as_millis()).unwrap_or(0)
    }

    /// Replaces the error for a resource that is gone by a denial, if that is wanted, because a policy with a condition
    /// on a resource's tags cannot match it. No document says whether EC2 first looks for the resource or first asks
    /// IAM.
    pub(super) fn found_or_denied(&self, service: Service, action: &str, error: ApiError) -> ApiError {
        let is_gone = service == Service::Ec2 && error.code.ends_with(".NotFound") && !action.starts_with("Describe");
        if is_gone && self.trouble.gone_is_denied { denied(service) } else { error }
    }
}
