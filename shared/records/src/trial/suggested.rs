//! The parameters of a trial whose sweep has them suggested one by one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spotsweep_search::suggest::Basis;

/// What a trial was given when its first attempt claimed it. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggested {
    /// All parameters as JSON: DynamoDB's numbers have neither every range nor every form of JSON's.
    parameters: String,
    /// What the suggestion rests on; its figures are values of the metric, not costs. Absent where another trial of its
    /// set was given the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

impl Suggested {
    /// Of parameters.
    pub fn new(parameters: &Map<String, Value>, basis: Option<Basis>) -> Self {
        Self { parameters: Value::Object(parameters.clone()).to_string(), basis }
    }

    /// The parameters.
    pub fn parameters(&self) -> Map<String, Value> {
        serde_json::from_str(&self.parameters).unwrap_or_default()
    }

    /// The same as JSON.
    pub fn text(&self) -> &str {
        &self.parameters
    }
}
