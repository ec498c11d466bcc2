//! What EC2 refuses: for now (capacity, quota), or for good (a missing permission, a key that cannot be used).
//!
//! An attempt whose volume is refused for now waits, then leaves, and the next one asks again. A trial whose volume is
//! refused for good fails, where nothing is lost by it: its record and its workspace end together. A trial that has
//! trained is interrupted instead, as often as `attempts` allows, which leaves time to repair the deployment.

use jiff::{SignedDuration, Timestamp};

use super::actions::DEVICES;
use super::{Refusal, RefusalKind, Stage, Workspace};

/// Refusals after which an attempt is told to leave, so that Batch tries another place.
pub(super) const MAX_REFUSALS: u32 = 3;

/// A refusal counts as lasting only when it has been repeated for so long. A grant takes a while until it is in force
/// everywhere: <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html>, "Changes that I make are not always
/// immediately visible".
const LASTING: SignedDuration = SignedDuration::from_secs(60);

/// EC2's answer to the token of a volume whose making failed, for hours (fact 26).
const BURNED_TOKEN: &str = "IdempotentParameterMismatch";

/// What concerns the caller and no single resource
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>, as all codes here).
const DENIALS: [&str; 5] = ["UnauthorizedOperation", "AuthFailure", "OptInRequired", "Blocked", "AccessDenied"];

/// Requests that EC2 does not take, however often they come.
const MALFORMED: [&str; 14] = [
    "InvalidAction",
    "InvalidCharacter",
    "InvalidParameter",
    "InvalidParameterCombination",
    "InvalidParameterDependency",
    "InvalidParameterValue",
    "InvalidQueryParameter",
    "InvalidSnapshot.NotFound",
    "MalformedQueryString",
    "MissingParameter",
    "UnknownParameter",
    "UnsupportedOperation",
    "ValidationError",
    "InvalidZone.NotFound",
];

/// AttachVolume's codes for an instance that is stopping or gone; what is wrong with the volume is looked at before.
const GONE: [&str; 2] = ["IncorrectState", "InvalidInstanceID.NotFound"];

/// Whether an error code says that the caller may not do this. Where a policy names a resource's tags, EC2 may answer
/// so for a resource that is gone, too: it has no tags any more.
pub fn is_denied(code: &str) -> bool {
    DENIALS.contains(&code)
}

/// Whether EBS's words on a volume that could not be made are about its KMS key. CreateVolume checks the key after it
/// has answered (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html>, `KmsKeyId`); the event
/// names the key's ARN (<https://docs.aws.amazon.com/ebs/latest/userguide/ebs-cloud-watch-events.html>).
pub fn is_of_key(cause: &str) -> bool {
    cause.contains(":kms:")
}

impl RefusalKind {
    /// Whether no wait changes an answer with this error code. Capacity, quotas and every code that is not known here
    /// may pass.
    pub fn lasts(&self, code: &str) -> bool {
        match self {
            Self::Volume { .. } => {
                is_denied(code) || MALFORMED.contains(&code) || code.to_ascii_lowercase().contains("kms")
            }
            // Another instance may take it: only what concerns the caller is the same there.
            Self::Snapshot { .. } | Self::Instance { .. } => is_denied(code),
            Self::DeviceTaken { .. } => false,
        }
    }
}

impl Workspace {
    pub(super) fn refused(&mut self, refusal: &Refusal, now: Timestamp) {
        let why = format!("{}: {}", refusal.code, refusal.message);
        match &refusal.kind {
            RefusalKind::Volume { operation } if *operation == self.volume.operation && self.volume.id.is_none() => {
                self.volume_refused(refusal, &why, now);
            }
            // Stays asked for: looked up and asked again when the lease is over, so a quota is not hammered. For good or
            // for now: only a trial that has trained has snapshots, and it is not to run out of attempts by them.
            RefusalKind::Snapshot { .. } => self.note(format!("a snapshot was refused: {why}")),
            RefusalKind::DeviceTaken { volume } if self.volume.id.as_deref() == Some(volume) => {
                if let Stage::Attaching { device, .. } = &mut self.stage {
                    *device += 1;
                    self.refusals += 1;
                }
                if self.refusals >= DEVICES {
                    self.unavailable = Some("every device name of the instance is taken".into());
                    self.stage = Stage::Detached;
                }
            }
            RefusalKind::Instance { volume } if self.volume.id.as_deref() == Some(volume) => {
                self.attachment_refused(refusal, &why, now);
            }
            RefusalKind::Volume { .. } | RefusalKind::DeviceTaken { .. } | RefusalKind::Instance { .. } => {}
        }
    }

    fn volume_refused(&mut self, refusal: &Refusal, why: &str, now: Timestamp) {
        if self.stage == Stage::Disposing {
            return;
        }
        self.refusals += 1;
        if refusal.code == BURNED_TOKEN {
            self.discard(self.volume.clone(), now);
            self.renew(self.volume.zone.clone(), self.volume.origin.clone());
        }
        let why = format!("no volume in {}: {why}", self.volume.zone);
        if refusal.lasts && !self.has_progress() {
            self.refused_lastingly(why, now);
        } else if self.refusals >= MAX_REFUSALS {
            self.note(why.clone());
            self.unavailable = Some(why);
        }
    }

    fn attachment_refused(&mut self, refusal: &Refusal, why: &str, now: Timestamp) {
        let Stage::Attaching { .. } = &self.stage else { return };
        let why = if GONE.contains(&refusal.code.as_str()) {
            "the instance was reclaimed first".to_owned()
        } else {
            format!("the instance could not take the volume: {why}")
        };
        self.refusals += u32::from(refusal.lasts);
        if refusal.lasts && !self.has_progress() {
            self.refused_lastingly(why, now);
        } else if !refusal.lasts || self.refusals >= MAX_REFUSALS {
            self.note(why.clone());
            self.unavailable = Some(why);
        }
        if self.unavailable.is_some() || self.refused.is_some() {
            self.stage = Stage::Detached;
        }
    }

    /// The volume's own key cannot be used: the next volume fails as this one did. `failed` volumes have, this one
    /// included.
    pub(super) fn failed_by_key(&mut self, cause: &str, failed: u32, now: Timestamp) {
        if is_of_key(cause) && !self.has_progress() {
            let since = *self.refused_since.get_or_insert(now);
            let why = format!("no volume in {}: {cause}", self.volume.zone);
            if failed >= MAX_REFUSALS || now.duration_since(since) >= LASTING {
                self.fail_for_good(why);
            }
        }
    }

    fn refused_lastingly(&mut self, why: String, now: Timestamp) {
        let since = *self.refused_since.get_or_insert(now);
        if now.duration_since(since) >= LASTING {
            self.fail_for_good(why);
        }
    }

    fn fail_for_good(&mut self, why: String) {
        self.note(why.clone());
        self.refused = Some(why);
    }

    /// Whether the workspace holds what exists nowhere else. The end of its trial would delete it.
    fn has_progress(&self) -> bool {
        let is_trained_on = self.volume.used && !self.user_owned;
        is_trained_on || self.source.is_some() || self.seal.is_some() || !self.snapshots.is_empty()
    }

    /// Another attempt asks again.
    pub(super) fn forget_refusals(&mut self) {
        (self.refusals, self.refused_since, self.refused, self.unavailable) = (0, None, None, None);
    }
}
