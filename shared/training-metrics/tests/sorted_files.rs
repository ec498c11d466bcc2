//! Files of rows that a training writes sorted, the best first.

#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::path::Path;

use spotsweep_training_metrics::{Figures, LogFile, Read, Shared};

/// The newest value, its step, and another reading of it.
type Expected = (f64, Option<f64>, Option<f64>);

/// Returns what is found in a file that has these rows at one look after another, and at the last one.
fn found(header: &str, looks: &[&[&str]]) -> Expected {
    let named = || Some("acc".to_owned());
    let (mut file, mut shared) = (LogFile::named(Path::new("results.csv")).unwrap(), Shared::new(0.0, named()));
    let mut figures = Figures::new(named());
    let last = looks.last().unwrap();
    let all = looks.iter().map(|rows| (rows, Read::During)).chain([(last, Read::Last)]);
    for (rows, when) in all {
        let text = format!("{header}\n{}\n", rows.join("\n"));
        for mut logged in file.read(Cursor::new(text), when, &mut shared).unwrap().logged {
            figures.take(&mut logged);
        }
    }
    let metric = figures.metrics()["acc"];
    (metric.last, metric.step, metric.other)
}

#[test]
fn the_newest_row_of_a_sorted_file_counts() {
    let cases: [(&str, &[&[&str]], Expected); 6] = [
        // Each look finds one more row.
        ("lr,acc", &[&["1,0.5"], &["2,0.7", "1,0.5"], &["2,0.7", "3,0.6", "1,0.5"]], (0.6, None, None)),
        ("epoch,acc", &[&["1,0.5"], &["3,0.7", "2,0.6", "1,0.5"]], (0.7, Some(3.0), None)),
        // A look finds two more rows, and no column counts them.
        ("lr,acc", &[&["1,0.5"], &["3,0.7", "2,0.6", "1,0.5"]], (0.6, None, Some(0.7))),
        // The rows are found at the end of the training.
        ("epoch,acc", &[&["7,0.9", "8,0.8", "3,0.7", "1,0.5"]], (0.8, Some(8.0), None)),
        ("lr,acc", &[&["7,0.9", "8,0.8", "3,0.7", "1,0.5"]], (0.5, None, Some(0.9))),
        // The rows are appended.
        ("lr,acc", &[&["1,0.9"], &["1,0.9", "2,0.8"], &["1,0.9", "2,0.8", "3,0.7"]], (0.7, None, None)),
    ];
    for (header, looks, expected) in cases {
        assert_eq!(found(header, looks), expected, "{header}: {looks:?}");
    }
}
