//! Reads tables: a line of names with lines of numbers below it, as fastai, spaCy, pandas and scikit-learn print them.
//! The first name is a step, or the named metric is among the names.

mod cells;
mod header;
mod label;

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::names::Named;
use crate::number::leading;
use cells::{Gap, cells, is_separator, without_bar};
use header::Header;

pub(crate) use cells::is_rule;

/// The longest name in bytes, because each row repeats the names of its header.
const MOST_NAME_BYTES: usize = 256;

/// The current table. Other lines may be between its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    header: Option<Header>,
    /// A line with the named metric, until the next line shows whether it is a header.
    next: Option<Header>,
    /// The prefix, such as `rollout/`, of rows with a name and a value, as Stable Baselines prints them.
    section: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) found: Logged,
    /// Whether an index counts the rows, as in pandas. Such a table is printed when it is complete, not row by row.
    pub(crate) is_counted: bool,
    /// The newest row of the table if this one is older, because the last row counts.
    pub(crate) again: Option<Logged>,
}

impl Table {
    /// Returns the row in a line. A header is remembered.
    pub(crate) fn read(&mut self, line: &str, named: &Named) -> Option<Row> {
        let found = self.row(line, named)?;
        let is_counted = self.header.as_ref().is_some_and(Header::is_counted);
        let again = self.header.as_mut().and_then(Header::again);
        Some(Row { found, is_counted, again })
    }

    fn row(&mut self, line: &str, named: &Named) -> Option<Logged> {
        let line = without_bar(line);
        let (gap, cells) = cells(line);
        if let Some(found) = self.pair(&cells, gap == Gap::Rules) {
            return Some(found);
        }
        if let Some(header) = Header::certain(line, gap, &cells, named, self.header.as_ref()) {
            (self.header, self.next) = (Some(header), None);
            return None;
        }
        // A line for people may begin in the same way.
        if cells.len() > 1 && header::is_first(cells[0]) {
            return None;
        }
        if let Some(mut next) = self.next.take() {
            if let Some(found) = next.first_row(line, gap, &cells, named) {
                self.header = Some(next);
                return Some(found);
            }
            self.next = (next.take_index(&cells) || is_separator(line, &cells)).then_some(next);
        }
        let found = self.header.as_mut().and_then(|header| header.row(line, gap, &cells, named));
        if found.is_none() && self.next.is_none() {
            self.next = Header::named(line, gap, &cells, named);
        }
        found
    }

    /// Reads a row of two columns below the name of its section; `None` outside of sections.
    fn pair(&mut self, cells: &[&str], has_rules: bool) -> Option<Logged> {
        match (cells, &self.section) {
            ([name, ""], _) if has_rules && name.ends_with('/') && name.len() <= MOST_NAME_BYTES => {
                self.section = Some((*name).to_owned());
                None
            }
            ([name, value], Some(section)) if has_rules => {
                let number = leading(value).filter(|_| is_name(name))?;
                let mut found = Logged::default();
                found.add(&format!("{section}{name}"), number.value, Source::Text);
                Some(found)
            }
            (_, _) => {
                self.section = None;
                None
            }
        }
    }
}

fn is_in(words: &[&str], cell: &str) -> bool {
    words.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

fn is_name(cell: &str) -> bool {
    cell.starts_with(char::is_alphabetic) && !cell.contains(['=', ':']) && cell.len() <= MOST_NAME_BYTES
}

#[cfg(test)]
mod tests;
