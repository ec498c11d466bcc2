//! Reads files with a row per step or epoch, such as `metrics.csv` of Lightning's CSVLogger.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};

use csv::{ReaderBuilder, StringRecord, Trim};
use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::logged::Logged;
use crate::names::Named;
use crate::step;

/// The names of such files: Lightning's, Stable Baselines', Ultralytics', timm's, and those of Keras's examples.
pub(crate) const NAMES: [&str; 7] =
    ["metrics.csv", "progress.csv", "results.csv", "summary.csv", "log.csv", "history.csv", "training_log.csv"];
/// The longest name of a column, in bytes, because each row repeats the names.
const MOST_NAME_BYTES: usize = 256;
/// The longest header of a file with any other name, in bytes.
const MOST_HEADER_BYTES: u64 = 64 << 10;
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Whether the first line of a file is a header with a column of the metric that the sweep file names.
pub(crate) fn begins_with_named(file: &mut (impl Read + Seek), named: &Named) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    file.take(MOST_HEADER_BYTES).read_to_end(&mut start)?;
    let end = start.iter().position(|byte| *byte == b'\n');
    let line = end.and_then(|end| std::str::from_utf8(start.get(..end)?).ok());
    Ok(line.is_some_and(|line| is_header_of_named(line, named)))
}

/// Whether a line is a header with a column of the metric that the sweep file names.
fn is_header_of_named(line: &str, named: &Named) -> bool {
    let cells: Vec<&str> = line.split(delimiter(line) as char).map(|cell| cell.trim().trim_matches('"')).collect();
    cells.len() > 1 && !cells.iter().any(|cell| is_number(cell)) && cells.iter().any(|cell| named.is(cell))
}

/// Returns the delimiter between the columns of a header. If two are equally frequent, the first one counts.
fn delimiter(header: &str) -> u8 {
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    DELIMITERS.into_iter().rev().max_by_key(count).unwrap_or(DELIMITERS[0])
}

/// The columns of a file that has been read so far.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The names in the newest header. Empty if it is not known which columns the rows have.
    names: Vec<String>,
    delimiter: u8,
}

impl Default for Columns {
    fn default() -> Self {
        Self { names: Vec::new(), delimiter: DELIMITERS[0] }
    }
}

impl Columns {
    /// Returns the rows in these lines, including rows without numbers. If `first`, the lines begin with the file's
    /// header. Another header may follow, because loggers that append write it again, perhaps with other columns. A row
    /// with another number of columns, such as an incomplete one, is left out.
    pub(crate) fn rows(&mut self, lines: &str, first: bool, named: &Named) -> Vec<Logged> {
        if first {
            // A comment may precede the header.
            let header = lines.lines().find(|line| line.bytes().any(|byte| DELIMITERS.contains(&byte)));
            self.delimiter = delimiter(header.unwrap_or_default());
        }
        let mut reader = ReaderBuilder::new();
        reader.has_headers(false).flexible(true).trim(Trim::All).delimiter(self.delimiter);
        let mut rows = Vec::new();
        for (number, record) in reader.from_reader(lines.as_bytes()).records().map_while(Result::ok).enumerate() {
            if (first && number == 0) || self.is_header(&record, named) {
                self.names = record.iter().map(str::to_owned).collect();
            } else if self.has_half_a_header(&record, named) {
                self.names.clear();
            } else if record.len() == self.names.len() {
                rows.push(self.row(&record, named));
            }
        }
        rows
    }

    /// Whether a row has names in place of values. An uncertain row counts as a header, because values under wrong
    /// names are worse than none.
    fn is_header(&self, record: &StringRecord, named: &Named) -> bool {
        let own = |(cell, name): (&str, &String)| cell == name && !is_number(cell) && !cell.is_empty();
        if record.iter().zip(&self.names).any(own) {
            return true;
        }
        let words: Vec<&str> = record.iter().filter(|cell| !cell.is_empty()).collect();
        let is_distinct = || words.iter().collect::<HashSet<_>>().len() == words.len();
        let is_word = |word: &str| !word.starts_with(|c: char| c.is_ascii_digit());
        // pandas gives its index no name.
        let is_full = || record.iter().skip(1).all(|cell| !cell.is_empty()) && record.len() == self.names.len();
        let is_full = || words.len() >= 2 && is_full() && words.iter().all(|word| is_word(word));
        let is_known = || words.iter().any(|word| self.is_name(word, named));
        !words.is_empty() && !words.iter().any(|word| is_number(word)) && is_distinct() && (is_full() || is_known())
    }

    /// Whether a header follows half a row in the same line, because the attempt before was lost within a row.
    fn has_half_a_header(&self, record: &StringRecord, named: &Named) -> bool {
        record.iter().filter(|cell| self.is_name(cell, named)).count() >= 2
    }

    fn is_name(&self, cell: &str, named: &Named) -> bool {
        !is_number(cell) && (self.names.iter().any(|name| name == cell) || step::is_name(cell) || named.is(cell))
    }

    fn row(&self, record: &StringRecord, named: &Named) -> Logged {
        let mut row = Logged::default();
        let is_usable = |name: &str| !name.is_empty() && name.len() <= MOST_NAME_BYTES;
        for (name, cell) in self.names.iter().zip(record).filter(|(name, _)| is_usable(name)) {
            if let Ok(value) = cell.parse() {
                row.add(name, value, Source::Rows);
            }
        }
        let set = self.names.iter().zip(record).find_map(|(name, cell)| data_set::of_member(name, cell));
        set.into_iter().for_each(|set| named.in_set(set, &mut row));
        row.step = step::take(&mut row.values);
        row
    }
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;
    use crate::log_file::{LogFile, Shared};
    use crate::part;

    /// Returns the steps and values of `val_acc` in a file.
    fn values(lines: &[&str]) -> Vec<(Option<f64>, f64)> {
        let named = Named::new(Some("val_acc".to_owned()));
        let rows = Columns::default().rows(&lines.join("\n"), true, &named);
        let value = |row: Logged| row.values.into_iter().find(|value| named.is(&value.name)).map(|value| value.value);
        rows.into_iter().filter_map(|row| Some((row.step, value(row)?))).collect()
    }

    #[test]
    fn a_log_has_rows_where_its_first_line_names_the_metric() {
        let named = Named::new(Some("val_acc".to_owned()));
        for (text, expected) in [
            ("epoch,acc,val_acc\n0,0.5,0.25\n", true),
            ("epoch;val_acc\r\n0;0.5\r\n", true),
            ("\"epoch\",\"val_acc\"\n", true),
            ("epoch,acc,val_acc", false),
            ("epoch,acc\n0,0.5\n", false),
            ("val_acc,0.5\n", false),
            ("INFO training, val_acc follows\nepoch,val_acc\n", false),
            ("val_acc\n0.5\n", false),
            ("", false),
        ] {
            let begins = |named| begins_with_named(&mut io::Cursor::new(text), named).ok();
            assert_eq!(begins(&named), Some(expected), "{text}");
            assert_eq!(begins(&Named::new(None)), Some(false), "no metric is named");
        }
    }

    /// Keras's CSVLogger writes this form.
    #[test]
    fn rows_of_a_log_are_read() {
        for (header, expected) in [("epoch,acc", vec![0.123_456]), ("epoch,loss", vec![])] {
            let mut file = LogFile::named(Path::new("training.log")).unwrap();
            let mut shared = Shared::new(0.0, Some("acc".to_owned()));
            let mut look = |rows: &str| {
                let text = io::Cursor::new(format!("{header}\n{rows}"));
                file.read(text, part::Read::During, &mut shared).unwrap().logged
            };
            assert_eq!(look(""), []);
            let values = look("0,0.123456\n").into_iter().flat_map(|row| row.values);
            assert_eq!(values.map(|value| value.value).collect::<Vec<_>>(), expected);
            assert_eq!(file.is_of_other_form(), header != "epoch,acc");
        }
        assert!(LogFile::named(Path::new("fold_3.log")).is_none(), "which of them counts is not known");
    }

    #[test]
    fn values_have_the_names_of_the_newest_header() {
        let (one, two) = ((Some(1.0), 0.25), (Some(2.0), 0.5));
        for (lines, expected) in [
            (&["epoch,loss,val_acc", "1,9,0.25", "epoch,val_acc,loss", "2,0.5,8"][..], &[one, two][..]),
            (&["epoch,loss,val_acc", "1,9,0.25", "epoch,loss,lr,val_acc", "2,8,0.1,0.5"], &[one, two]),
            (&["epoch,loss,val_acc", "1,9,0.25", "epoch,loss,val_acc", "2,8,0.5"], &[one, two]),
            (&["epoch,0,val_acc", "1,9,0.25", "epoch,0,val_acc", "2,8,0.5"], &[one, two]),
            (&["# a comment", "epoch,val_acc", "1,0.25"], &[one]),
            (&[",epoch,val_acc", "0,1,0.25", ",val_acc,epoch", "1,0.5,2"], &[one, two]),
            (&["epoch;loss;val_acc", "1;9;0.25"], &[one]),
            (&["epoch\tloss\tval_acc", "1\t9\t0.25"], &[one]),
            (&["epoch,Val Acc,note", "1,0.25,", "2,0.5,early"], &[one, two]),
            // Ultralytics pads its columns. A column may also name the data set of a row.
            (&["     epoch,     val_acc", "         1,        0.25"], &[one]),
            (&["epoch,phase,acc", "1,val,0.25", "1,train,9"], &[one]),
            // Other columns without a known name, half a header, and rows without numbers give no value.
            (&["epoch,val_acc", "1,0.25", "test_loss,test_f1", "3,0.5"], &[one]),
            (&["epoch,loss,val_acc", "1,9,0.25", "2,0epoch,val_acc,loss", "2,0.5,8"], &[one]),
            (&["epoch,val_acc,note", "1,0.25,", ",,stopped", "2,0.5,x"], &[one, two]),
            (&["time,phase,val_acc", "10:00,train,", "10:05,val,0.25"], &[(None, 0.25)]),
            (&["epoch,val_acc", "1,0.25", "nan,nan", "resumed", "2,0.5"], &[one, (None, f64::NAN), two]),
        ] {
            assert_eq!(format!("{:?}", values(lines)), format!("{expected:?}"), "{lines:?}");
        }
    }
}
