//! AWS's price list.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// The parameters of GetProducts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetProducts {
    /// The code of the service whose prices are wanted.
    pub service: &'static str,
    /// Names of fields, and the values that they must have.
    pub filters: Vec<(&'static str, String)>,
}

/// The calls to the price list that the control plane makes.
pub trait Pricing: Debug + Send + Sync {
    /// Returns products, each as a JSON document.
    fn get_products(&self, wanted: GetProducts) -> impl Future<Output = Result<Vec<String>, CallError>> + Send;
}
