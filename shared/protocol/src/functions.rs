//! The Lambda functions of a deployment.

/// Every function, by its name in `infra/control-plane.yaml` and its folder in `functions/`. All except [`CLAIM`] have
/// an EventBridge rule of the same name.
pub const FUNCTIONS: [&str; 7] =
    ["sweep-upload", "batch-job-state", "spot-interruption", "ebs-state", CLAIM, "sweep-settled", "reconcile"];

/// The function that runners invoke.
pub const CLAIM: &str = "trial-claim";
