//! The patterns of the sweep file.

use regex::Regex;
use spotsweep_protocol::metric::Source;
use spotsweep_protocol::metric::{MetricPattern, UnusableRegex};

use crate::logged::Value;
use crate::number::leading;

/// The compiled patterns of a sweep file.
#[derive(Debug, Clone, Default)]
pub struct Definitions(Vec<(String, Regex)>);

impl Definitions {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// Returns the first pattern that cannot be compiled. The validation of the sweep file refuses such patterns.
    pub fn new(patterns: &[MetricPattern]) -> Result<Self, UnusableRegex> {
        let compiled = patterns.iter().map(|pattern| Ok((pattern.name.clone(), pattern.compile()?)));
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the values that the patterns find in a line.
    pub(crate) fn find(&self, line: &str) -> Vec<Value> {
        let of = |(name, regex): &(String, Regex)| {
            let found = regex.captures(line)?.get(1)?.as_str();
            let value = found.trim().parse().ok().or_else(|| leading(found).map(|number| number.value))?;
            Some(Value { name: name.clone(), value, source: Source::Stated })
        };
        self.0.iter().filter_map(of).collect()
    }
}
