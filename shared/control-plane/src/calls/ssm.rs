//! AWS Systems Manager's Parameter Store.

use std::fmt::Debug;
use std::future::Future;

use super::{CallError, Page};

/// The parameters of DescribeParameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeParameters {
    /// Names of parameters: paths, which begin with a slash.
    pub names: Vec<String>,
    /// The token of the page before.
    pub next_token: Option<String>,
}

/// A parameter, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Whether its value is encrypted: it is a SecureString.
    pub is_encrypted: bool,
}

/// The calls to Parameter Store that the control plane makes.
pub trait Ssm: Debug + Send + Sync {
    /// Returns those of the parameters that exist. It reads no value.
    fn describe_parameters(
        &self,
        wanted: DescribeParameters,
    ) -> impl Future<Output = Result<Page<Parameter>, CallError>> + Send;
}
