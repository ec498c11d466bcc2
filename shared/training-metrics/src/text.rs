//! Metrics in lines of text.

mod line;

use anstream::adapter::strip_str;
use spotsweep_protocol::metric::Source;

use crate::definitions::Definitions;
use crate::json_line;
use crate::logged::{Logged, Value};
use crate::names::Named;
use crate::number::of_member;
use crate::object::{self, Nested, Scanner};
use crate::step;
use crate::table::Table;
use line::Line;

/// The longest object that is read over several lines, in bytes, and the longest line that may begin it.
const MOST_HELD: usize = 64 * 1024;
const MOST_FIRST: usize = 4 * 1024;

/// Reads one stream of lines.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    definitions: Definitions,
    /// The metric that the sweep file names.
    named: Named,
    /// The step that a line has last said, for lines that say none.
    step: Option<f64>,
    table: Table,
    held: Option<Held>,
}

/// An object that goes on over several lines. Only the metric that the sweep file names is looked for in it: it may be
/// the configuration of a model.
#[derive(Debug, Clone, Default)]
struct Held {
    scanner: Scanner,
    bytes: usize,
    found: Nested,
    steps: Logged,
}

impl Lines {
    /// A stream at its beginning. `named` is the metric that the sweep file names: it is looked for as it is.
    pub fn new(named: Option<String>, definitions: Definitions) -> Self {
        Self { definitions, named: Named::new(named), ..Self::default() }
    }

    /// What one line says; no values for most lines.
    pub fn read(&mut self, line: &str) -> Logged {
        let line = strip_str(line).to_string();
        let defined = self.definitions.find(&line);
        let mut found = match json_line::parse(&line, Source::Stated, &self.named) {
            Some(found) => found,
            None => {
                let mut found = self.go_on(&line).unwrap_or_else(|| self.text(&line));
                self.step = found.step.or(self.step);
                found.step = self.step;
                found
            }
        };
        self.named.spell(&mut found);
        // What the sweep file's own patterns find goes before everything else of that name.
        found.values.retain(|value| defined.iter().all(|defined| defined.name != value.name));
        found.values.extend(defined);
        found
    }

    fn text(&mut self, text: &str) -> Logged {
        let line = Line::new(text, &self.named);
        let table = line.objects.is_empty().then(|| self.table.read(text, &self.named)).flatten();
        let mut found = table.unwrap_or_else(|| line.values());
        found.step = found.step.or_else(|| step::counted(&line.outside));
        found
    }

    /// What an object has that goes on or begins in this line, and has not ended in it; nothing before its end. `None`
    /// where the line is no part of one.
    fn go_on(&mut self, line: &str) -> Option<Logged> {
        let text = match &self.held {
            Some(held) if held.scanner.may_go_on(line) && held.bytes + line.len() <= MOST_HELD => line,
            _ => {
                let start = begins(line)?;
                self.held = Some(Held::default());
                &line[start..]
            }
        };
        let held = self.held.as_mut()?;
        held.bytes += line.len();
        let (named, found, steps) = (&self.named, &mut held.found, &mut held.steps);
        let end = held.scanner.scan(text, |names, value| {
            let value = of_member(value);
            found.take(names, value, named);
            if let ([name], Some(value)) = (names, value)
                && step::is_name(name)
            {
                steps.values.push(Value { name: (*name).to_owned(), value, source: Source::Text });
            }
        });
        let mut logged = Logged::default();
        if end.is_some()
            && let Some(mut held) = self.held.take()
        {
            logged.step = step::take(&mut held.steps.values);
            held.found.add(&mut logged, self.named.name().unwrap_or_default(), Source::Text);
        }
        Some(logged)
    }
}

/// Where an object begins in a line that it goes on after.
fn begins(line: &str) -> Option<usize> {
    let line = line.trim_end();
    if line.len() > MOST_FIRST {
        return None;
    }
    let start = match line.strip_suffix('{') {
        Some(before) => object::start(before).unwrap_or(before.len()),
        None if line.ends_with([',', '[']) => object::start(line)?,
        None => return None,
    };
    Scanner::default().scan(&line[start..], |_, _| ()).is_none().then_some(start)
}

#[cfg(test)]
mod tests;
