//! AWS Systems Manager's Parameter Store.

use std::fmt::Debug;
use std::future::Future;

use super::{CallError, Page};

/// The parameters of DescribeParameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeParameters {
    /// Names of parameters.
    pub names: Vec<String>,
    /// The token of the page before.
    pub next_token: Option<String>,
}

/// The calls to Parameter Store that the control plane makes.
pub trait Ssm: Debug + Send + Sync {
    /// Returns the names of those parameters that exist. It reads no value.
    fn describe_parameters(
        &self,
        wanted: DescribeParameters,
    ) -> impl Future<Output = Result<Page<String>, CallError>> + Send;
}
