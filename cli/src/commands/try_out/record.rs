//! Reads the runner's record of metrics on the trial's volume. It has each value, and the control plane only the newest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::de::IgnoredAny;
use spotsweep_seal::OWN;

use super::attempt::Attempt;
use super::bucket::WORKSPACE;
use super::steps::Counter;
use crate::metrics_record::{Line, NAME, lines};

/// The record as far as it was read. The next attempt goes on with it.
#[derive(Debug, Default)]
pub(super) struct Record {
    read: u64,
    /// The time of the newest value.
    newest: f64,
    /// Values until then were read before.
    known: f64,
}

impl Record {
    /// Reads what was added to the record below the folder of `containers`. Each value is of the attempt that had
    /// started before it, in seconds since 1970 as in `starts`. The trial `began` then.
    pub(super) fn look(
        &mut self,
        containers: &Path,
        attempts: &mut BTreeMap<u32, Attempt>,
        (starts, began): (&BTreeMap<u32, f64>, f64),
    ) {
        let found = fs::read_dir(containers).into_iter().flatten().flatten();
        let records = found.map(|container| container.path().join(WORKSPACE).join(OWN).join(NAME));
        // An earlier container may still have a copy. No container has one until the volume is mounted.
        let longest = records.filter_map(|record| Some((fs::metadata(&record).ok()?.len(), record))).max();
        let Some(added) = longest.and_then(|(bytes, record)| self.added(&record, bytes).ok()) else { return };
        for Line { time, step, metrics } in lines::<IgnoredAny>(&added) {
            let Some(step) = step else { continue };
            self.newest = self.newest.max(time);
            if time <= self.known {
                continue;
            }
            let started = starts.iter().rev().find(|(_, started)| **started <= time);
            let Some(attempt) = started.and_then(|(number, _)| attempts.get_mut(number)) else { continue };
            for name in metrics.into_keys() {
                attempt.steps.entry(Counter::Recorded(name)).or_default().add(time - began, step);
            }
        }
    }

    fn added(&mut self, record: &Path, bytes: u64) -> io::Result<Vec<u8>> {
        // The volume was made from a snapshot that does not have the last lines.
        if bytes < self.read {
            (self.read, self.known) = (0, self.newest);
        }
        let mut file = File::open(record)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut added = Vec::new();
        file.read_to_end(&mut added)?;
        added.truncate(added.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        self.read += added.len() as u64;
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_value_is_of_the_attempt_that_has_logged_it() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("try-0").join(WORKSPACE).join(OWN);
        fs::create_dir_all(&own).unwrap();
        let mut attempts: BTreeMap<u32, Attempt> = [(1, Attempt::default()), (2, Attempt::default())].into();
        let starts = [(1, 100.0), (2, 200.0)].into();
        let mut record = Record::default();
        let line =
            |time: u32, step: u32| format!("{{\"time\": {time}, \"step\": {step}, \"metrics\": {{\"loss\": null}}}}\n");
        // The second attempt's runner records a value that the first attempt had logged to a file.
        let text = [line(110, 1), line(210, 5), line(120, 2), line(220, 6)].concat();
        for end in [text.len() / 3, text.len() - 2, text.len()] {
            fs::write(own.join(NAME), &text[..end]).unwrap();
            record.look(folder.path(), &mut attempts, (&starts, 100.0));
        }
        // The record on the next volume is shorter, and goes on.
        for text in [line(110, 1), line(110, 1) + &line(230, 7) + &line(240, 8)] {
            fs::write(own.join(NAME), text).unwrap();
            record.look(folder.path(), &mut attempts, (&starts, 100.0));
        }
        let ends = |number| attempts[&number].steps[&Counter::Recorded("loss".to_owned())].ends();
        assert_eq!((ends(1), ends(2)), (Some((1.0, 2.0)), Some((5.0, 8.0))));
    }
}
