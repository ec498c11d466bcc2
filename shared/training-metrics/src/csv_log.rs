//! Files with a row per step or epoch, such as `metrics.csv` of Lightning's CSVLogger.

use std::io::Read;

use csv::{ReaderBuilder, Trim};
use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::step;

/// Names of such files: Lightning's, Stable Baselines', Ultralytics', timm's, and those of Keras's examples.
pub(crate) const NAMES: [&str; 7] =
    ["metrics.csv", "progress.csv", "results.csv", "summary.csv", "log.csv", "history.csv", "training_log.csv"];

/// All rows, those without numbers too. A row that is not complete yet is left out.
pub(crate) fn rows(text: impl Read) -> Vec<Logged> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text);
    let Ok(header) = reader.headers().cloned() else { return Vec::new() };
    let row = |record: csv::StringRecord| {
        let mut row = Logged::default();
        for (name, cell) in header.iter().zip(&record).filter(|(name, _)| !name.is_empty()) {
            if let Ok(value) = cell.parse() {
                row.add(name, value, Source::Rows);
            }
        }
        row.step = step::take(&mut row.values);
        row
    };
    reader.records().map_while(Result::ok).map(row).collect()
}
