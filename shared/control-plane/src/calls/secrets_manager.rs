//! AWS Secrets Manager.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// A secret, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribedSecret {
    /// Whether it is scheduled for deletion. Then its value cannot be read.
    pub is_being_deleted: bool,
}

/// The calls to Secrets Manager that the control plane makes.
pub trait SecretsManager: Debug + Send + Sync {
    /// Describes the secret of this name. It reads no value.
    fn describe_secret(&self, name: String) -> impl Future<Output = Result<DescribedSecret, CallError>> + Send;
}
