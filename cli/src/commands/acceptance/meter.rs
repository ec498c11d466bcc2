//! Counts the instance-hours of a run, from the launch of each instance to its end. They limit the run. The functions
//! are pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::subject::Seen;

/// When each instance was launched, and when it was first missing.
#[derive(Debug, Default)]
pub(super) struct Meter {
    spans: BTreeMap<String, (Timestamp, Option<Timestamp>)>,
}

impl Meter {
    /// Adds the instances that are pending or running now.
    pub(super) fn enter(&mut self, seen: &[Seen], now: Timestamp) {
        for one in seen {
            self.spans.insert(one.id.clone(), (one.launched, None));
        }
        for (id, (_, ended)) in &mut self.spans {
            if seen.iter().all(|one| one.id != *id) {
                ended.get_or_insert(now);
            }
        }
    }

    /// Whether there never was an instance.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Time of all instances together. One that existed at the last look counts until `now`.
    pub(super) fn total(&self, now: Timestamp) -> Duration {
        let span = |(launched, ended): &(Timestamp, Option<Timestamp>)| ended.unwrap_or(now).duration_since(*launched);
        self.spans.values().filter_map(|one| Duration::try_from(span(one)).ok()).sum()
    }

    /// The same, plus the idle time of the existing instances if their jobs are ended now.
    pub(super) fn total_if_ended(&self, now: Timestamp, idle: Duration) -> Duration {
        let live = self.spans.values().filter(|(_, ended)| ended.is_none()).count();
        self.total(now) + idle * u32::try_from(live).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn instances_count_from_their_launch_to_their_end() {
        let at = |second: i64| Timestamp::from_second(1_795_262_400 + second).unwrap();
        let seen = |id: &str, launched| Seen { id: id.to_owned(), launched: at(launched), is_running: true };
        let idle = Duration::from_secs(300);
        let mut meter = Meter::default();
        assert!(meter.is_empty());
        meter.enter(&[seen("i-1", 0)], at(10));
        assert_eq!(meter.total(at(40)), Duration::from_secs(40), "it is believed to be there until it is missing");
        meter.enter(&[seen("i-1", 0), seen("i-2", 50)], at(60));
        assert_eq!(meter.total(at(60)), Duration::from_secs(70));
        meter.enter(&[seen("i-2", 50)], at(100));
        meter.enter(&[seen("i-2", 50)], at(150));
        assert_eq!(meter.total(at(150)), Duration::from_secs(100 + 100));
        assert_eq!(meter.total_if_ended(at(150), idle), Duration::from_secs(200 + 300));
        meter.enter(&[], at(160));
        assert_eq!(meter.total_if_ended(at(1_000), idle), Duration::from_secs(100 + 110));
        assert!(!meter.is_empty());
    }
}
