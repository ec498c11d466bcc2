//! Files with a row per step or epoch, such as `metrics.csv` of Lightning's CSVLogger.

use csv::{ReaderBuilder, Trim};
use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::step;

/// Names of such files: Lightning's, Stable Baselines', Ultralytics', timm's, and those of Keras's examples.
pub(crate) const NAMES: [&str; 7] =
    ["metrics.csv", "progress.csv", "results.csv", "summary.csv", "log.csv", "history.csv", "training_log.csv"];
/// The longest name of a column, in bytes: each row repeats them.
const MOST_NAME_BYTES: usize = 256;

/// The rows in these lines, those without numbers too. The `first` lines of a file begin with the `header`. A row with
/// another number of columns, such as one that is not complete yet, is left out.
pub(crate) fn rows(lines: &str, first: bool, header: &mut Vec<String>) -> Vec<Logged> {
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(lines.as_bytes());
    let mut records = reader.records().map_while(Result::ok);
    if first {
        *header = records.next().iter().flatten().map(str::to_owned).collect();
    }
    let row = |record: csv::StringRecord| {
        let mut row = Logged::default();
        let is_usable = |name: &str| !name.is_empty() && name.len() <= MOST_NAME_BYTES;
        for (name, cell) in header.iter().zip(&record).filter(|(name, _)| is_usable(name)) {
            if let Ok(value) = cell.parse() {
                row.add(name, value, Source::Rows);
            }
        }
        row.step = step::take(&mut row.values);
        row
    };
    records.filter(|record| record.len() == header.len()).map(row).collect()
}
