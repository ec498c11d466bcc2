//! Whether a training that resumed has come further than the attempts before it.

use std::io::{self, BufRead, BufReader, Read};
use std::time::SystemTime;

use serde::Deserialize;

/// A line of the record of metrics.
#[derive(Debug, Deserialize)]
struct Line {
    /// Seconds since 1970.
    time: f64,
    step: Option<f64>,
}

/// Whether the `record` of metrics has a step since `started` that is larger than every step before.
pub(crate) fn has_new_step(record: impl Read, started: SystemTime) -> io::Result<bool> {
    let started = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let (mut before, mut since) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for line in BufReader::new(record).lines() {
        let Ok(Line { time, step: Some(step) }) = serde_json::from_str(&line?) else { continue };
        let largest = if time < started { &mut before } else { &mut since };
        *largest = largest.max(step);
    }
    Ok(since > before)
}

/// When the newest line of the `record` was logged, in seconds since 1970.
pub(crate) fn last_time(record: impl Read) -> io::Result<Option<f64>> {
    let mut newest = None;
    for line in BufReader::new(record).lines() {
        let Ok(Line { time, .. }) = serde_json::from_str(&line?) else { continue };
        newest = Some(newest.map_or(time, |newest: f64| newest.max(time)));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_larger_step_is_progress() {
        let started = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100);
        let old = r#"{"time": 99.5, "step": 3.0, "metrics": {"loss": 0.5}}"#;
        for (since, expected) in [
            ("", false),
            (r#"{"time": 100.5, "step": null, "metrics": {"lr": 0.1}}"#, false),
            (r#"{"time": 100.5, "step": 3.0, "metrics": {"loss": 0.5}}"#, false),
            (r#"{"time": 100.5, "step": 4.0, "metrics": {"loss": 0.5}}"#, true),
        ] {
            let record = format!("{old}\n{since}\n");
            assert_eq!(has_new_step(record.as_bytes(), started).unwrap(), expected, "{since}");
        }
    }
}
