//! The sweep file's own patterns.

use regex::Regex;
use spotsweep_protocol::metric::Source;
use spotsweep_protocol::metric::{MetricPattern, UnusableRegex};

use crate::logged::Value;
use crate::number::leading;

/// Patterns that are ready for use.
#[derive(Debug, Clone, Default)]
pub struct Definitions(Vec<(String, Regex)>);

impl Definitions {
    /// Compiles them.
    ///
    /// # Errors
    /// For the first that cannot be compiled: the sweep file's validation lets none through.
    pub fn new(patterns: &[MetricPattern]) -> Result<Self, UnusableRegex> {
        let compiled = patterns.iter().map(|pattern| Ok((pattern.name.clone(), pattern.compile()?)));
        compiled.collect::<Result<_, _>>().map(Self)
    }

    /// The values in a line.
    pub(crate) fn find(&self, line: &str) -> Vec<Value> {
        let of = |(name, regex): &(String, Regex)| {
            let found = regex.captures(line)?.get(1)?.as_str();
            let value = found.trim().parse().ok().or_else(|| leading(found).map(|number| number.value))?;
            Some(Value { name: name.clone(), value, source: Source::Stated })
        };
        self.0.iter().filter_map(of).collect()
    }
}
