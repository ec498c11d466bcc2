//! Takes the capacity of the demo's zones from a recorded Spot trace.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use spotsweep_world::trace::{Change, Trace};

use super::Turn;
use spotsweep_protocol::failure::{Context, Failure};

/// How much faster than recorded the trace is played. The 60 hours of a window of skypilot-org/spot-traces take four
/// minutes.
const SPEED: f64 = 900.0;

/// The changes of capacity in the demo's zones. A window has more zones than the demo, so the ones with capacity for
/// the longest time are used. After the window every zone is open, so that the sweep can end.
///
/// # Errors
/// The trace cannot be read.
pub fn turns(folder: &Path, zones: &[String]) -> Result<Vec<Turn>, Failure> {
    let trace = Trace::read(folder).context(|| format!("--trace {} cannot be used", folder.display()))?;
    let changes: Vec<Change> = trace.changes(SPEED).collect();
    let end = trace.duration().div_f64(SPEED);
    let roles = roles(&changes, end, zones);
    let played = changes.iter().filter_map(|change| {
        let zone = roles.get(change.zone.as_str())?;
        Some(Turn { at: change.at.as_secs_f64(), zone: (*zone).to_owned(), open: change.available })
    });
    let over = roles.values().map(|zone| Turn { at: end.as_secs_f64(), zone: (*zone).to_owned(), open: true });
    Ok(played.chain(over).collect())
}

/// Which zone of the trace gives its capacity to which zone of the demo.
fn roles<'a>(changes: &'a [Change], end: Duration, ours: &'a [String]) -> BTreeMap<&'a str, &'a str> {
    let mut open: BTreeMap<&str, Duration> = BTreeMap::new();
    for change in changes {
        let until_end = end.saturating_sub(change.at);
        let total = open.entry(&change.zone).or_default();
        *total = if change.available { *total + until_end } else { total.saturating_sub(until_end) };
    }
    let mut longest: Vec<(&str, Duration)> = open.into_iter().collect();
    longest.sort_by_key(|(_, open)| std::cmp::Reverse(*open));
    longest.into_iter().map(|(zone, _)| zone).zip(ours.iter().map(String::as_str)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_zones_with_most_capacity_play_and_open_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        for (zone, available) in [("never", "0000"), ("half", "0110"), ("most", "1110")] {
            let text =
                format!(r#"{{"zone": "{zone}", "gap_seconds": 900, "start_time": "", "available": "{available}"}}"#);
            std::fs::write(folder.path().join(format!("{zone}.json")), text).unwrap();
        }
        let turns = turns(folder.path(), &["a".to_owned(), "b".to_owned()]).unwrap();
        let lines: Vec<String> = turns.iter().map(|turn| format!("{} {} {}", turn.at, turn.zone, turn.open)).collect();
        assert_eq!(lines, ["0 b false", "0 a true", "1 b true", "3 b false", "3 a false", "4 b true", "4 a true"]);
        assert!(super::turns(&folder.path().join("none"), &[]).is_err());
    }
}
