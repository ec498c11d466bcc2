//! The parameters of a trial in a sweep that suggests them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_search::suggest::Basis;

/// The parameters that a trial got at its first claim. They never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggested {
    /// All parameters as JSON text, because DynamoDB's numbers do not have every range and form of JSON's.
    parameters: String,
    /// What the suggestion is based on. Its figures are values of the metric, not costs. It is absent where the
    /// parameters are those of another trial of the same set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

impl Suggested {
    /// Stores parameters as text.
    pub fn new(parameters: &Map<String, Value>, basis: Option<Basis>) -> Self {
        Self { parameters: Value::Object(parameters.clone()).to_string(), basis }
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> Map<String, Value> {
        serde_json::from_str(&self.parameters).unwrap_or_default()
    }

    /// Returns the parameters as JSON text.
    pub fn text(&self) -> &str {
        &self.parameters
    }
}
