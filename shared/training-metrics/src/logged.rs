//! Values that were logged together.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::metric::{Source, metric_name};

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The metric's name, as the training chose it.
    pub name: String,
    /// The value. NaN and infinity are values too: they show that a training has diverged.
    #[serde(with = "spotsweep_protocol::number")]
    pub value: f64,
    /// The kind of place in which the value was found.
    pub source: Source,
}

/// Values that were logged together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// The steps or epochs, as the training counts them.
    #[serde(with = "spotsweep_protocol::number::optional")]
    pub step: Option<f64>,
    /// The values in the order of the text.
    pub values: Vec<Value>,
    /// The time of logging in seconds since 1970, if it is stated.
    #[serde(with = "spotsweep_protocol::number::optional")]
    pub time: Option<f64>,
    /// The stream or file of the values, as a number that no other has.
    pub origin: u64,
}

impl Logged {
    pub(crate) fn add(&mut self, name: &str, value: f64, source: Source) {
        // Names are changed here and nowhere else, so that the record and all reports have the same ones.
        self.values.push(Value { name: metric_name(name).into_owned(), value, source });
    }
}
