//! Text for people: words and aligned columns.

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::Value;
use spotsweep_protocol::visible::escaped;
use spotsweep_protocol::words::{duration, rounded};
use spotsweep_records::trial::{Standing, Trial};

/// Space between two columns.
const GAP: &str = "  ";
/// Most characters of a cell, and of the last cell in a row. `explain` and `--json` have the whole text.
const MOST_CELL: usize = 60;
const MOST_LAST: usize = 200;

/// State of a trial. A trial without a record has had no event yet, so it waits.
pub(crate) fn standing(trial: Option<&Trial>) -> Standing {
    trial.map_or(Standing::Waiting, Trial::standing)
}

/// A value as a cell: a string as it is, and everything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Hours of trainings. Less than one hour is in minutes and seconds.
pub(crate) fn hours(hours: f64) -> String {
    if hours < 0.95 { duration(hours * 3600.0) } else { format!("{hours:.1} h") }
}

/// Number of columns of a text, at one for each character, which is near enough.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text of others as one line, so that the name of a file cannot begin a line.
pub(crate) fn line(text: impl Display) -> String {
    escaped(&text.to_string()).into_owned()
}

/// Writes one row. The last cell is not padded. A cell is one line, whatever is in it.
pub(crate) fn row<C: AsRef<str>>(
    to: &mut dyn Write,
    widths: &[usize],
    cells: impl Iterator<Item = C>,
) -> io::Result<()> {
    let mut line = String::new();
    for (cell, width) in cells.zip(widths) {
        let cell = escaped(cell.as_ref());
        line.push_str(&format!("{cell:<width$}{GAP}"));
    }
    writeln!(to, "{}", line.trim_end())
}

/// Writes rows, each column as wide as its widest cell. A long text is cut, and a long number is rounded.
pub(crate) fn table(to: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let bounded = |row: &Vec<String>| {
        let most = |at: usize| if at + 1 == row.len() { MOST_LAST } else { MOST_CELL };
        row.iter().enumerate().map(|(at, cell)| bounded(cell, most(at))).collect()
    };
    whole_table(to, &rows.iter().map(bounded).collect::<Vec<_>>())
}

fn bounded(cell: &str, most: usize) -> String {
    if width(cell) <= most {
        return cell.to_owned();
    }
    match cell.parse::<f64>() {
        Ok(number) => rounded(number, 5),
        Err(_) => cell.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Writes rows with the whole content of each cell.
pub(crate) fn whole_table(to: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column| {
        rows.iter()
            .filter_map(|row| row.get::<usize>(column))
            .map(|cell: &String| width(&escaped(cell)))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    rows.iter().try_for_each(|cells| row(to, &widths, cells.iter()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hours_read_well() {
        for (given, text) in [(0.002, "7.2 s"), (0.5, "30 min"), (0.96, "1.0 h"), (48.31, "48.3 h")] {
            assert_eq!(hours(given), text);
        }
    }

    #[test]
    fn columns_line_up_and_nothing_escapes() {
        let rows = [["name", "value"], ["lr", "0.1"], ["überlang", "\u{1b}[31mred\n"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(String::from).into()).collect();
        let mut written = Vec::new();
        table(&mut written, &rows).unwrap();
        let expected = "name      value\nlr        0.1\nüberlang  \\u001b[31mred\\n\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn a_table_stays_readable_whatever_is_in_it() {
        let (number, note) = (format!("{:.5}", -f64::MAX), "é".repeat(3835));
        let rows = [[number, note.clone(), note.clone()], ["1".to_owned(), "2".to_owned(), "3".to_owned()]];
        let rows: Vec<Vec<String>> = rows.map(Vec::from).into();
        let (mut written, mut whole) = (Vec::new(), Vec::new());
        table(&mut written, &rows).unwrap();
        let lines: Vec<String> = String::from_utf8(written).unwrap().lines().map(str::to_owned).collect();
        assert!(lines[0].starts_with("-1.79769e308  é") && lines[0].ends_with("é…"), "{}", lines[0]);
        assert!(lines[0].chars().count() < 300 && lines[1].chars().count() < 100, "{lines:?}");
        whole_table(&mut whole, &rows).unwrap();
        assert!(String::from_utf8(whole).unwrap().contains(&note));
    }
}
