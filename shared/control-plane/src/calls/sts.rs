//! AWS STS.

use std::fmt::Debug;
use std::future::Future;

use super::{CallError, Tag};
use spotsweep_protocol::claim::Access;

/// The parameters of AssumeRole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumeRole {
    /// ARN of the role.
    pub role: String,
    /// The session's name.
    pub session: String,
    /// The session's tags.
    pub tags: Vec<Tag>,
}

/// The calls to STS that the control plane makes.
pub trait Sts: Debug + Send + Sync {
    /// Returns credentials of a role.
    fn assume_role(&self, wanted: AssumeRole) -> impl Future<Output = Result<Access, CallError>> + Send;
}
