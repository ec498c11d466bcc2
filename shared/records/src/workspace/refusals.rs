//! Refusals by EC2. Some are temporary (capacity, quota), others permanent (a missing permission, a KMS key that cannot
//! be used).
//!
//! After a temporary refusal the attempt waits, then leaves, and the next one asks again. After a permanent refusal the
//! trial fails, if nothing is lost by that, because its record and its workspace end together. A trial that has trained
//! is interrupted instead, as often as `attempts` allows, which leaves time to repair the deployment.

use jiff::{SignedDuration, Timestamp};

use super::actions::DEVICES;
use super::{Place, Refusal, RefusalKind, Stage, Workspace};

/// Number of refusals after which the attempt has to leave, so that Batch tries another place.
pub(super) const MAX_REFUSALS: u32 = 3;

/// How long a permanent refusal has to be repeated before it counts. A grant takes a while until it is in force
/// everywhere: <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html>, "Changes that I make are not
/// always immediately visible".
const LASTING: SignedDuration = SignedDuration::from_secs(60);

/// EC2's error code for the token of a volume whose creation failed, for hours (fact 26).
const BURNED_TOKEN: &str = "IdempotentParameterMismatch";

/// Error codes that concern the caller and no single resource
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>, as all codes here).
const DENIALS: [&str; 5] = ["UnauthorizedOperation", "AuthFailure", "OptInRequired", "Blocked", "AccessDenied"];

/// Error codes for requests that EC2 refuses however often they are repeated.
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

/// AttachVolume's error codes for an instance that is stopping or gone. Faults of the volume are handled before these.
const GONE: [&str; 2] = ["IncorrectState", "InvalidInstanceID.NotFound"];

/// Whether an error code says that the caller has no permission. Where a policy has a condition on a resource's tags,
/// EC2 may also answer this for a resource that is gone, because it has no tags any more.
pub fn is_denied(code: &str) -> bool {
    DENIALS.contains(&code)
}

/// Whether EBS's text about a failed creation is about the KMS key. CreateVolume checks the key after it has answered
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateVolume.html>, `KmsKeyId`), and the event has the
/// key's ARN (<https://docs.aws.amazon.com/ebs/latest/userguide/ebs-cloud-watch-events.html>).
pub fn is_of_key(cause: &str) -> bool {
    cause.contains(":kms:")
}

impl RefusalKind {
    /// Whether an answer with this error code is a permanent refusal. Refusals for capacity, for quotas and with
    /// unknown codes are temporary.
    pub fn lasts(&self, code: &str) -> bool {
        match self {
            Self::Volume { .. } => {
                is_denied(code) || MALFORMED.contains(&code) || code.to_ascii_lowercase().contains("kms")
            }
            // Another instance may be able to take the volume, so only a refusal of the caller is permanent.
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
            // The snapshot stays requested. It is looked up and requested again when the lease is over, so a quota is
            // not exhausted by retries. Permanent refusals are treated in the same way, because only a trial that has
            // trained has snapshots, and these refusals must not use up its attempts.
            RefusalKind::Snapshot { .. } => self.note(format!("a snapshot was refused: {why}")),
            RefusalKind::DeviceTaken { volume, instance } if self.is_attaching(volume, instance) => {
                if let Stage::Attaching { device, .. } = &mut self.stage {
                    *device += 1;
                    self.refusals += 1;
                }
                if self.refusals >= DEVICES {
                    self.unavailable = Some("every device name of the instance is taken".into());
                    self.stage = Stage::Detached;
                }
            }
            RefusalKind::Instance { volume, instance } if self.is_attaching(volume, instance) => {
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

    /// Whether the volume is being attached to this instance. A refusal for the instance of an earlier attempt may be
    /// applied after the attachment to the next attempt's instance has begun.
    fn is_attaching(&self, volume: &str, instance: &str) -> bool {
        let is_there = |to: &Place| to.instance == instance && self.volume.id.as_deref() == Some(volume);
        matches!(&self.stage, Stage::Attaching { to, .. } if is_there(to))
    }

    fn attachment_refused(&mut self, refusal: &Refusal, why: &str, now: Timestamp) {
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

    /// Fails the trial for good if its volumes fail because of their KMS key, since the next volume would fail in the
    /// same way. `failed` is the number of failed volumes, this one included.
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

    /// Whether the workspace holds bytes that exist nowhere else. The end of its trial would delete them.
    fn has_progress(&self) -> bool {
        let is_trained_on = self.volume.used && !self.user_owned;
        is_trained_on || self.source.is_some() || self.seal.is_some() || !self.snapshots.is_empty()
    }

    /// Forgets the refusals, because another attempt asks again.
    pub(super) fn forget_refusals(&mut self) {
        (self.refusals, self.refused_since, self.refused, self.unavailable) = (0, None, None, None);
    }
}
