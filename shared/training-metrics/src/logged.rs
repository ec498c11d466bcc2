//! What was logged together.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::metric::{Source, metric_name};

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The metric's name, as the training chose it.
    pub name: String,
    /// NaN and infinity are values too: they show that a training has diverged.
    #[serde(with = "spotsweep_protocol::number")]
    pub value: f64,
    /// Where it stood.
    pub source: Source,
}

/// Values that were logged together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// Steps or epochs, as the training counts them.
    #[serde(with = "spotsweep_protocol::number::optional")]
    pub step: Option<f64>,
    /// Values in the order in which they stand.
    pub values: Vec<Value>,
    /// When they were logged, in seconds since 1970, where they say so.
    #[serde(with = "spotsweep_protocol::number::optional")]
    pub time: Option<f64>,
    /// The stream or file in which they stood: one number for each.
    pub origin: u64,
}

impl Logged {
    pub(crate) fn add(&mut self, name: &str, value: f64, source: Source) {
        // Here and nowhere else, so that the record, the reports and everything after them have the same names.
        self.values.push(Value { name: metric_name(name).into_owned(), value, source });
    }
}
