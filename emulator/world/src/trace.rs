//! Recorded Spot availability: a folder with one JSON file per zone.
//!
//! ```json
//! {"zone": "us-east-1a", "gap_seconds": 195, "start_time": "2023-02-21T07:13:40", "available": "110…",
//!  "spot_price": [[0, 1.44], [37, 1.45]]}
//! ```
//! `available` has one character per tick of `gap_seconds`: `1` if a Spot instance was available. All zones begin at
//! the same time and have the same ticks. `spot_price` may be absent. It has the first tick and the USD per hour of
//! each run of equal prices. Other fields are ignored. The traces of skypilot-org/spot-traces have this form after they
//! are cut into windows.

mod price;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use price::Prices;

/// Availability of zones over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    tick: Duration,
    ticks: usize,
    /// The zones, ordered by name.
    zones: Vec<Zone>,
}

/// The record of one zone.
#[derive(Debug, Clone, PartialEq)]
struct Zone {
    name: String,
    /// Whether there was capacity, by tick.
    open: Vec<bool>,
    prices: Prices,
}

/// A change of a zone's Spot capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The time since the start of the trace, on the scaled clock.
    pub at: Duration,
    /// The zone's name.
    pub zone: String,
    /// Whether there is capacity from now on.
    pub available: bool,
}

/// Why a folder is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The folder or a file cannot be read.
    #[error("cannot read the spot trace {}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// A file is not JSON of the expected form.
    #[error("{} is no spot trace of one zone: see the fields that the others have", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        #[source]
        source: serde_json::Error,
    },
    /// A file's content is invalid, or contradicts that of the others.
    #[error("{}: {problem}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// What is wrong, and how to correct it.
        problem: String,
    },
}

#[derive(Deserialize)]
struct File {
    zone: String,
    gap_seconds: u64,
    #[serde(default)]
    start_time: String,
    available: String,
    #[serde(default)]
    spot_price: Vec<(usize, f64)>,
}

impl Trace {
    /// Reads all `.json` files of a folder.
    ///
    /// # Errors
    /// [`TraceError`], which names the file.
    pub fn read(folder: &Path) -> Result<Trace, TraceError> {
        let failed = |path: &Path, source| TraceError::Read { path: path.to_owned(), source };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(|source| failed(folder, source))? {
            paths.push(entry.map_err(|source| failed(folder, source))?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let text = fs::read_to_string(&path).map_err(|source| failed(&path, source))?;
            let file: File =
                serde_json::from_str(&text).map_err(|source| TraceError::Form { path: path.clone(), source })?;
            files.push((path, file));
        }
        combine(folder, &files)
    }

    /// Returns the zones' names, in order.
    pub fn zones(&self) -> impl Iterator<Item = &str> {
        self.zones.iter().map(|zone| zone.name.as_str())
    }

    /// Returns how long the trace is on its own clock.
    pub fn duration(&self) -> Duration {
        self.tick.saturating_mul(u32::try_from(self.ticks).unwrap_or(u32::MAX))
    }

    /// Whether a zone has capacity at a time of the trace's own clock; `None` after its end, or for an unknown zone.
    pub fn is_available(&self, zone: &str, at: Duration) -> Option<bool> {
        let tick = at.as_nanos() / self.tick.as_nanos();
        self.zone(zone)?.open.get(usize::try_from(tick).ok()?).copied()
    }

    /// Returns the cost in USD of an instance that runs in a zone between two times of the trace's own clock. After the
    /// end the last price holds. It is `None` for an unknown zone, and if no price was recorded.
    pub fn dollars(&self, zone: &str, from: Duration, until: Duration) -> Option<f64> {
        self.zone(zone)?.prices.dollars(self.tick, from, until)
    }

    /// Returns a zone's prices: the time on the trace's own clock from which each holds, and USD per hour. It is empty
    /// if none was recorded.
    pub fn prices(&self, zone: &str) -> impl Iterator<Item = (Duration, f64)> {
        self.zone(zone).into_iter().flat_map(|zone| zone.prices.since(self.tick))
    }

    fn zone(&self, name: &str) -> Option<&Zone> {
        self.zones.iter().find(|zone| zone.name == name)
    }

    /// Returns the changes in the order of time; at the same time zones are ordered by name. Each zone's first state
    /// counts as a change. `speed` is how much faster than recorded they come: with 195, a tick of 195 s takes one
    /// second. With a speed that is not above zero all come at the start.
    pub fn changes(&self, speed: f64) -> impl Iterator<Item = Change> {
        (0..self.ticks).flat_map(move |tick| {
            let at = self.tick.as_secs_f64() * tick as f64 / speed;
            let at = Duration::try_from_secs_f64(at).unwrap_or_default();
            let changed = move |open: &[bool]| tick == 0 || open[tick] != open[tick - 1];
            let changed = self.zones.iter().filter(move |zone| changed(&zone.open));
            changed.map(move |zone| Change { at, zone: zone.name.clone(), available: zone.open[tick] })
        })
    }
}

fn combine(folder: &Path, files: &[(PathBuf, File)]) -> Result<Trace, TraceError> {
    let Some((_, first)) = files.first() else {
        let problem = "there is no .json file here: give the folder of one window, with a file per zone".to_owned();
        return Err(TraceError::Contents { path: folder.to_owned(), problem });
    };
    let tick = Duration::from_secs(first.gap_seconds);
    let (start, ticks) = (first.start_time.clone(), first.available.len());
    let mut zones: Vec<Zone> = Vec::new();
    for (path, file) in files {
        let contents = |problem: String| TraceError::Contents { path: path.clone(), problem };
        if file.gap_seconds == 0 || file.available.is_empty() {
            return Err(contents("gap_seconds must be at least 1, and available must not be empty".into()));
        }
        let same = (file.gap_seconds, &file.start_time, file.available.len());
        if same != (tick.as_secs(), &start, ticks) {
            let problem = format!(
                "gap_seconds, start_time and the length of available are {same:?}, but {:?} in the first file: \
                 all zones of a trace must cover the same time",
                (tick.as_secs(), &start, ticks)
            );
            return Err(contents(problem));
        }
        if zones.iter().any(|zone| zone.name == file.zone) {
            return Err(contents(format!("zone {} is in another file, too", file.zone)));
        }
        zones.push(Zone {
            name: file.zone.clone(),
            open: states(&file.available).map_err(contents)?,
            prices: Prices::new(&file.spot_price).map_err(contents)?,
        });
    }
    zones.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Trace { tick, ticks, zones })
}

fn states(text: &str) -> Result<Vec<bool>, String> {
    let state = |(at, character)| match character {
        '1' => Ok(true),
        '0' => Ok(false),
        other => Err(format!("character {} of available is {other:?}: it must be 0 or 1", at + 1)),
    };
    text.chars().enumerate().map(state).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::error::Error;

    fn read(files: &[(&str, &str)]) -> Result<Trace, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Trace::read(folder.path())
    }

    fn zone(zone: &str, available: &str) -> String {
        format!(r#"{{"zone": "{zone}", "gap_seconds": 195, "start_time": "t", "available": "{available}", "x": 1}}"#)
    }

    #[test]
    fn changes_come_in_order_and_on_time() {
        let trace = read(&[("b", "no json"), ("b.json", &zone("b", "0110")), ("a.json", &zone("a", "1110"))]).unwrap();
        assert_eq!(trace.zones().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(trace.duration(), Duration::from_secs(780));
        let times = |speed| {
            let changes = trace.changes(speed);
            changes.map(|c| format!("{:?} {} {}", c.at, c.zone, c.available)).collect::<Vec<_>>()
        };
        assert_eq!(times(195.0), ["0ns a true", "0ns b false", "1s b true", "3s a false", "3s b false"]);
        assert_eq!(times(1.0)[2], "195s b true");
        let at = |seconds| trace.is_available("b", Duration::from_secs(seconds));
        assert_eq!([at(194), at(195), at(779), at(780)], [Some(false), Some(true), Some(false), None]);
        assert_eq!(trace.is_available("c", Duration::ZERO), None);
    }

    #[test]
    fn dollars_are_added_up_over_the_prices_of_the_time() {
        let priced = zone("a", "1111").replace("\"x\": 1", "\"spot_price\": [[0, 1.0], [2, 3.6]]");
        let trace = read(&[("a.json", &priced), ("b.json", &zone("b", "1111"))]).unwrap();
        let dollars = |zone: &str, from, until| {
            let found = trace.dollars(zone, Duration::from_secs(from), Duration::from_secs(until));
            found.map(|usd| (usd * 1e9).round() / 1e9)
        };
        assert_eq!(dollars("a", 0, 360), Some(0.1), "an hour costs 1 USD");
        // The time is 90 s until tick 2 at 390 s, and 110 s after that.
        assert_eq!(dollars("a", 300, 500), Some(0.025 + 0.11));
        assert_eq!(dollars("a", 1000, 4600), Some(3.6), "the last price holds beyond the end");
        assert_eq!(dollars("a", 500, 500), Some(0.0));
        assert_eq!((dollars("b", 0, 1), dollars("c", 0, 1)), (None, None));
    }

    #[test]
    fn bad_files_are_named_with_what_is_wrong() {
        let good = zone("a", "10");
        let priced = |runs: &str| zone("a", "10").replace("\"x\": 1", &format!("\"spot_price\": {runs}"));
        let cases: [(&[(&str, &str)], &str); 10] = [
            (&[("a.json", &priced("[[1, 2.0]]"))], "spot_price must begin with tick 0"),
            (&[("a.json", &priced("[[0, 2.0], [0, 3.0]]"))], "spot_price: tick 0 comes after tick 0"),
            (&[("a.json", &priced("[[0, -1.0]]"))], "spot_price of tick 0 is -1"),
            (&[], "no .json file here"),
            (&[("a.json", "{")], "a.json is no spot trace of one zone"),
            (&[("a.json", r#"{"zone": "a", "gap_seconds": 1}"#)], "missing field `available`"),
            (&[("a.json", &zone("a", "1x"))], "character 2 of available is 'x'"),
            (&[("a.json", &zone("a", ""))], "must not be empty"),
            (&[("a.json", &good), ("b.json", &zone("b", "100"))], "must cover the same time"),
            (&[("a.json", &good), ("b.json", &good)], "zone a is in another file"),
        ];
        for (files, wanted) in cases {
            let error = read(files).unwrap_err();
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            let message = format!("{error}: {cause}");
            assert!(message.contains(wanted), "{message}");
        }
        let missing = Trace::read(Path::new("no/such/folder")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read the spot trace no/such/folder");
    }
}
