//! The results: a table for people, JSON for programs.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::Measurement;
use crate::row::{Row, Target};

pub(crate) fn print(measurement: &Measurement, rows: &[Row], took: Duration) {
    let mut text = format!("\n{measurement:?} ({:.0} s)\n", took.as_secs_f64());
    text.push_str(&format!(
        "{:<44} {:>10} {:>10} {:>10} {:>8} {:>7} {:>3}  {:<12} target\n",
        "", "ours", "peer", "limit", "ratio", "spread", "n", "unit"
    ));
    for row in rows {
        let option = |value: Option<f64>| value.map_or_else(String::new, number);
        let spread = row.spread.map_or_else(String::new, |spread| format!("{:.0} %", spread * 100.0));
        text.push_str(&format!(
            "{:<44} {:>10} {:>10} {:>10} {:>8} {spread:>7} {:>3}  {:<12} {}\n",
            row.name,
            number(row.ours),
            option(row.peer),
            option(row.limit),
            option(row.ratio),
            row.repeats,
            row.unit,
            target(row)
        ));
    }
    // The output may have been closed, which is no error.
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Writes all rows, with the time and the machine of the measurement.
pub(crate) fn write(folder: &Path, rows: &[Row]) {
    let pretty = |value: &serde_json::Value| format!("{value:#}\n");
    fs::write(folder.join("results.json"), pretty(&json!(rows))).expect("the target folder is writable");
    fs::write(folder.join("machine.json"), pretty(&machine())).expect("the target folder is writable");
}

fn machine() -> serde_json::Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "date": Timestamp::now().strftime("%F").to_string(),
        "cpu": model.map(|(_, name)| name),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

/// Formats a number with four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 10.0 => format!("{value:.2}"),
        large if large >= 0.1 => format!("{value:.3}"),
        _small => format!("{value:.3e}"),
    }
}

fn target(row: &Row) -> String {
    let (Some(target), Some(met)) = (row.target, row.met()) else {
        return String::new();
    };
    let wanted = match target {
        Target::AtMost(most) => format!("≤ {}", number(most)),
        Target::RatioAtLeast(least) => format!("ratio ≥ {}", number(least)),
    };
    format!("{wanted} {}", if met { "met" } else { "MISSED" })
}
