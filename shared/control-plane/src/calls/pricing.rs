//! AWS's price list.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// GetProducts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetProducts {
    /// Service code.
    pub service: &'static str,
    /// Fields and the values that they have.
    pub filters: Vec<(&'static str, String)>,
}

/// The price list, as the control plane uses it.
pub trait Pricing: Debug + Send + Sync {
    /// Products, each a JSON document.
    fn get_products(&self, wanted: GetProducts) -> impl Future<Output = Result<Vec<String>, CallError>> + Send;
}
