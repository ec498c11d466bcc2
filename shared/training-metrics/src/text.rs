//! Reads metrics in lines of text.

mod line;
mod phrase;

use anstream::adapter::strip_str;
use spotsweep_protocol::metric::Source;

use crate::data_set::{self, Sets};
use crate::definitions::Definitions;
use crate::history;
use crate::json_line;
use crate::logged::{Logged, Value};
use crate::names::Named;
use crate::number::of_member;
use crate::object::{self, Nested, Scanner};
use crate::said::{Repeats, Said};
use crate::step;
use crate::table::{Row, Table};
use crate::traceback::Traceback;
use line::Line;

/// The longest object over several lines, in bytes, and the longest line that may begin one.
const MOST_HELD: usize = 64 * 1024;
const MOST_FIRST: usize = 4 * 1024;

/// Reads one stream of lines.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    definitions: Definitions,
    /// The metric that the sweep file names.
    named: Named,
    /// The step that a line has stated last, for lines without one.
    step: Option<f64>,
    said: Said,
    table: Table,
    traceback: Traceback,
    held: Option<Held>,
}

/// An object over several lines. Only the named metric is read in it, because it may be the configuration of a model.
#[derive(Debug, Clone, Default)]
struct Held {
    scanner: Scanner,
    text: String,
    found: Nested,
    steps: Logged,
    /// The data set of its values, stated by a member or by the text before it.
    set: Option<&'static str>,
}

impl Lines {
    /// Returns a stream at its beginning. `named` is the metric that the sweep file names, which needs no sign before
    /// its value.
    pub fn new(named: Option<String>, definitions: Definitions) -> Self {
        Self { definitions, named: Named::new(named), ..Self::default() }
    }

    /// Returns the rows of one line: one row, without values for most lines, and more only for a whole history.
    pub fn read(&mut self, line: &str) -> Vec<Logged> {
        let line = strip_str(line).to_string();
        if self.traceback.read(&line) {
            return vec![Logged::default()];
        }
        let defined = self.definitions.find(&line);
        let mut found = match json_line::parse(&line, Source::Stated, &self.named) {
            Some(found) => {
                let mut found = vec![found];
                found.extend(self.history(&line, Source::Stated));
                found
            }
            None => {
                let mut found = self.go_on(&line).unwrap_or_else(|| self.line(&line));
                self.step = found.first().and_then(|first| first.step).or(self.step);
                found.iter_mut().for_each(|row| row.step = row.step.or(self.step));
                found
            }
        };
        for row in &mut found {
            self.named.spell(row);
            // Values found by the sweep file's own patterns replace all others with the same name.
            row.values.retain(|value| defined.iter().all(|defined| defined.name != value.name));
        }
        found.iter_mut().take(1).for_each(|first| first.values.extend_from_slice(&defined));
        found.iter().enumerate().for_each(|(at, row)| self.said.take(row, at > 0, &self.named));
        found
    }

    /// Whether the last line belongs to a traceback of Python, which quotes the source.
    pub fn is_in_traceback(&self) -> bool {
        self.traceback.has_last
    }

    fn line(&mut self, text: &str) -> Vec<Logged> {
        let (found, again) = self.text(text);
        let is_found = found.values.iter().any(|value| self.named.is(&value.name));
        let mut more = if is_found { again.into_iter().collect() } else { self.history(text, Source::Text) };
        more.insert(0, found);
        more
    }

    /// Returns the history in a text, without repeated values.
    fn history(&self, text: &str, source: Source) -> Vec<Logged> {
        let mut rows = history::rows(text, &self.named, self.step, source);
        if self.said.has_history(&rows, &self.named) {
            return Vec::new();
        }
        rows.iter_mut().for_each(|row| self.said.leave_out(Repeats::Near, row, &self.named));
        rows
    }

    /// Returns the values of a text that is no history, and the newest row of its table if that is another one.
    fn text(&mut self, text: &str) -> (Logged, Option<Logged>) {
        let line = Line::new(text, &self.named);
        let row = line.objects.is_empty().then(|| self.table.read(text, &self.named)).flatten();
        let (mut found, again) = match row {
            Some(Row { mut found, is_counted, again }) => {
                let repeats = if is_counted && found.step.is_some() { Repeats::Near } else { Repeats::Same };
                self.said.leave_out(repeats, &mut found, &self.named);
                (found, again)
            }
            None => (line.values(), None),
        };
        found.step = found.step.or_else(|| step::counted(&line.outside));
        (found, again)
    }

    /// Reads a line that begins or continues an object over several lines. The values are returned at the object's end.
    /// `None` if the line is no part of one.
    fn go_on(&mut self, line: &str) -> Option<Vec<Logged>> {
        let text = match &self.held {
            Some(held) if held.scanner.may_go_on(line) && held.text.len() + line.len() < MOST_HELD => line,
            _ => {
                let start = begins(line)?;
                let set = Sets::of(&line[..start]).before(start);
                self.held = Some(Held { set, ..Held::default() });
                &line[start..]
            }
        };
        let held = self.held.as_mut()?;
        held.text.push_str(text);
        held.text.push('\n');
        let (named, found, steps, set) = (&self.named, &mut held.found, &mut held.steps, &mut held.set);
        let end = held.scanner.scan(text, |names, value| {
            if let [name] = names {
                *set = data_set::of_member(name, object::word(value)).or(*set);
            }
            let value = of_member(value);
            found.take(names, value, named);
            if let ([name], Some(value)) = (names, value)
                && step::is_name(name)
            {
                steps.values.push(Value { name: (*name).to_owned(), value, source: Source::Text });
            }
        });
        let mut logged = Logged::default();
        let Some(mut held) = self.held.take_if(|_| end.is_some()) else { return Some(vec![logged]) };
        logged.step = step::take(&mut held.steps.values);
        held.found.add(&mut logged, &self.named, Source::Text, held.set);
        let mut history = self.history(&held.text, Source::Text);
        held.set.into_iter().for_each(|set| history.iter_mut().for_each(|row| self.named.in_set(set, row)));
        let mut found = vec![logged];
        found.append(&mut history);
        Some(found)
    }
}

/// Returns where an object begins in a line that does not end it.
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
