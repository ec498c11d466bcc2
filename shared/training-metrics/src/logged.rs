//! What was logged together.

use spotsweep_protocol::metric::{Source, metric_name};

/// A value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The metric's name, as the training chose it.
    pub name: String,
    /// NaN and infinity are values too: they show that a training has diverged.
    pub value: f64,
    /// Where it stood.
    pub source: Source,
}

/// Values that were logged together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logged {
    /// Steps or epochs, as the training counts them.
    pub step: Option<f64>,
    /// Values in the order in which they stand.
    pub values: Vec<Value>,
    /// When they were logged, in seconds since 1970, where they say so.
    pub time: Option<f64>,
}

impl Logged {
    pub(crate) fn add(&mut self, name: &str, value: f64, source: Source) {
        // Here and nowhere else, so that the record, the reports and everything after them have the same names.
        self.values.push(Value { name: metric_name(name).into_owned(), value, source });
    }
}
