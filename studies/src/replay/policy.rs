//! The ways to survive reclaims that are compared.

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// This product: the real control plane, volumes that move ahead of the container.
    Spotsweep,
    /// The published AWS post: an EBS volume found by its tag, and moved by the instance itself while it boots.
    SeedScript,
    /// Each checkpoint to S3, the newest back at the start.
    S3Checkpoint,
    /// The same, and one more when the interruption notice comes; then it leaves.
    S3OnNotice,
    /// No checkpoints.
    Restart,
    /// On-demand instances: never interrupted.
    OnDemand,
}

impl Policy {
    /// All, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Spotsweep, Self::SeedScript, Self::S3Checkpoint, Self::S3OnNotice, Self::Restart, Self::OnDemand];

    /// Its name in reports.
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

    /// Whether training stops now and then to write a checkpoint.
    pub(super) fn saves(self) -> bool {
        match self {
            Self::Spotsweep | Self::SeedScript | Self::S3Checkpoint | Self::S3OnNotice => true,
            Self::Restart | Self::OnDemand => false,
        }
    }

    /// Whether its instances can be taken back.
    pub(super) fn is_spot(self) -> bool {
        match self {
            Self::Spotsweep | Self::SeedScript | Self::S3Checkpoint | Self::S3OnNotice | Self::Restart => true,
            Self::OnDemand => false,
        }
    }
}
