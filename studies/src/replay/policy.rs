//! The compared policies against reclaims.

/// A policy against reclaims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// This product: the real control plane, with volumes that move before the container starts.
    Spotsweep,
    /// The published AWS post: the instance itself finds an EBS volume by its tag and moves it while it boots.
    SeedScript,
    /// Each checkpoint is uploaded to S3, and the newest one is downloaded at the start.
    S3Checkpoint,
    /// Like [`Self::S3Checkpoint`], with one more checkpoint at the interruption notice, after which the attempt ends.
    S3OnNotice,
    /// There are no checkpoints.
    Restart,
    /// On-demand instances, which are never interrupted.
    OnDemand,
}

impl Policy {
    /// All policies, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Spotsweep, Self::SeedScript, Self::S3Checkpoint, Self::S3OnNotice, Self::Restart, Self::OnDemand];

    /// Returns the policy's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spotsweep => "spotsweep",
            Self::SeedScript => "seed-script",
            Self::S3Checkpoint => "s3-checkpoint",
            Self::S3OnNotice => "s3-on-notice",
            Self::Restart => "restart",
            Self::OnDemand => "on-demand",
        }
    }

    /// Whether the training pauses regularly to write a checkpoint.
    pub(super) fn saves(self) -> bool {
        match self {
            Self::Spotsweep | Self::SeedScript | Self::S3Checkpoint | Self::S3OnNotice => true,
            Self::Restart | Self::OnDemand => false,
        }
    }

    /// Whether its instances can be reclaimed.
    pub(super) fn is_spot(self) -> bool {
        match self {
            Self::Spotsweep | Self::SeedScript | Self::S3Checkpoint | Self::S3OnNotice | Self::Restart => true,
            Self::OnDemand => false,
        }
    }
}
