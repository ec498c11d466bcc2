//! Reads the files in which libraries log metrics.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read as _, Seek, SeekFrom};
use std::path::Path;

use spotsweep_protocol::metric::Source;

use crate::csv_log::{self, Columns};
use crate::document::{Document, is_time};
use crate::names::Named;
use crate::part::{Found, Part, Read};
use crate::rows::Rows;
use crate::same_rows::SameRows;
use crate::sorted::in_order;
use crate::trainer_state::{self, Seen};
use crate::{data_set, event_file, json_line, wandb_run};

/// The longest file that is read from its beginning each time, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Words in the names of `.jsonl` and `.json` files with metrics. Other such files hold samples and predictions.
const OF_METRICS: [&str; 7] = ["metric", "metrics", "log", "logs", "history", "progress", "scalars"];

/// Words in the names of numbered folders that have others next to them.
const OF_MANY: [&str; 9] = ["fold", "epoch", "step", "iter", "iteration", "checkpoint", "ckpt", "seed", "run"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    EventFile,
    WandbRun,
    Csv,
    /// A log whose first line may name the metric as a column, as Keras's CSVLogger writes `training.log`.
    Log,
    JsonLines,
    /// JSON lines, as Detectron2 and MMEngine write them, or one document.
    Json,
    TrainerState,
}

/// A file in which metrics are logged, and the position up to which it has been read.
#[derive(Debug, Clone)]
pub struct LogFile {
    format: Format,
    /// The bytes of a file of records that have been read.
    offset: u64,
    is_broken: bool,
    /// The position in a file of rows.
    rows: Rows,
    /// The columns of a table.
    columns: Columns,
    document: Document,
    /// The data set that its folder is named after, as in Keras's event files.
    set: Option<&'static str>,
}

/// The state that the files of one trial share.
#[derive(Debug)]
pub struct Shared {
    seen: Seen,
    same: SameRows,
    named: Named,
    /// Seconds since 1970. Earlier values have been recorded already, or belong to another trial.
    since: f64,
}

impl Shared {
    /// Returns the state for values that are logged after `since`, in seconds since 1970. `named` is the metric that
    /// the sweep file names.
    pub fn new(since: f64, named: Option<String>) -> Self {
        Self { seen: Seen::default(), same: SameRows::default(), named: Named::new(named), since }
    }
}

impl LogFile {
    /// Returns a file that has not been read yet; `None` if its name is not that of a log of metrics.
    pub fn named(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_json_lines = || path.extension() == Some(OsStr::new("jsonl")) && is_of_metrics(path);
        let format = match name {
            _ if name.contains("tfevents") => Format::EventFile,
            _ if name.starts_with("run-") && name.ends_with(".wandb") => Format::WandbRun,
            _ if csv_log::NAMES.contains(&name) => Format::Csv,
            trainer_state::NAME => Format::TrainerState,
            _ if is_json_lines() => Format::JsonLines,
            _ if is_text(path) && (is_time(path) || is_of_metrics(path) && !has_number(path)) => Format::Json,
            _ if path.extension() == Some(OsStr::new("log")) && !has_number(path) => Format::Log,
            _ => return None,
        };
        let folder = path.parent().and_then(Path::file_name).and_then(OsStr::to_str);
        let set = folder.and_then(data_set::short).filter(|_| format == Format::EventFile);
        let (rows, columns, document) = (Rows::default(), Columns::default(), Document::named(path));
        Some(Self { format, offset: 0, is_broken: false, rows, columns, document, set })
    }

    /// Returns the next new part of the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&mut self, file: impl io::Read + Seek, when: Read, shared: &mut Shared) -> io::Result<Found> {
        if self.is_broken {
            return Ok(Found::default());
        }
        let mut file = BufReader::new(file);
        let bytes = file.seek(SeekFrom::End(0))?;
        if bytes < self.offset {
            self.offset = 0;
        }
        let named = &shared.named;
        if self.format == Format::Log && csv_log::begins_with_named(&mut file, named)? {
            self.format = Format::Csv;
        }
        let mut found = match self.format {
            Format::Log => Found::default(),
            // Each value in these formats has its time, and an earlier attempt may have logged one shortly before it
            // was lost.
            Format::EventFile | Format::WandbRun if when == Read::Before => Found::default(),
            Format::EventFile => self.part(|offset| event_file::read(&mut file, offset, shared.since))?,
            Format::WandbRun => self.part(|offset| wandb_run::read(&mut file, offset, shared.since))?,
            Format::TrainerState if bytes == self.offset => Found::default(),
            Format::TrainerState => {
                file.seek(SeekFrom::Start(0))?;
                let (logged, has_more) = shared.seen.new_in(file.take(MOST_BYTES), named)?;
                self.offset = if has_more { 0 } else { bytes };
                Found { logged, has_more }
            }
            Format::Csv => {
                let columns = &mut self.columns;
                self.rows.read(&mut file, when, &mut |lines, first| columns.rows(lines, first, named))?
            }
            Format::JsonLines => self.rows.read(&mut file, when, &mut |lines, _| {
                let rows = lines.lines().map(|line| json_line::parse(line, Source::Rows, named).unwrap_or_default());
                rows.collect()
            })?,
            Format::Json => {
                let document = &mut self.document;
                let mut found =
                    self.rows.read(&mut file, when, &mut |lines, first| document.lines(lines, first, named))?;
                if !found.has_more {
                    found.logged.extend(document.read(&mut file, when, named)?);
                }
                shared.same.leave_out(document.place(), &mut found.logged);
                found
            }
        };
        if matches!(self.format, Format::Csv | Format::JsonLines) {
            in_order(&mut found.logged, self.rows.order(), named);
        }
        for logged in &mut found.logged {
            self.set.into_iter().for_each(|set| shared.named.in_set(set, logged));
            shared.named.spell(logged);
        }
        if when == Read::Before {
            return Ok(Found { logged: Vec::new(), ..found });
        }
        Ok(found)
    }

    /// Returns what has not been read in it, as a clause for a message.
    pub fn unread(&self) -> Option<&'static str> {
        let too_long = "lines of more than 256 KiB are not read";
        if self.is_broken {
            Some("nothing is read after a checksum that does not fit")
        } else {
            self.rows.has_passed_over().then_some(too_long)
        }
    }

    /// Whether it is JSON or a log, and has no content in a known form.
    pub fn is_of_other_form(&self) -> bool {
        self.format == Format::Log || (self.format == Format::Json && !self.document.has_found())
    }

    fn part(&mut self, read: impl FnOnce(u64) -> io::Result<Part>) -> io::Result<Found> {
        let part = read(self.offset)?;
        (self.offset, self.is_broken) = (part.offset, part.is_broken);
        Ok(Found { logged: part.found, has_more: part.has_more })
    }
}

/// Whether a file may have JSON lines although it is named like a text: DETR and its derivatives write `log.txt`.
fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["json", "txt", "log"].iter().any(|known| ending == *known))
}

/// Whether similar files, such as those of other epochs, may be next to a file, so that it is not known which one
/// counts.
fn has_number(path: &Path) -> bool {
    let has_digit = |name: &OsStr| name.as_encoded_bytes().iter().any(u8::is_ascii_digit);
    let folder = folders(path).find(|folder| data_set::short(folder).is_none());
    path.file_stem().is_some_and(has_digit)
        || folder.is_some_and(|folder| has_digit(folder.as_ref()) && is_of_many(folder))
}

/// Returns the names of the folders around a file, the innermost first.
fn folders(path: &Path) -> impl Iterator<Item = &str> {
    path.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str())
}

/// Whether a folder's name has a word for one of many.
fn is_of_many(folder: &str) -> bool {
    let mut words = folder.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| OF_MANY.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

fn is_of_metrics(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    stem.split(|c: char| !c.is_ascii_alphabetic()).any(|word| OF_METRICS.contains(&word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use super::*;
    use crate::logged::Logged;

    const EVENTS: &[u8] =
        include_bytes!("../tests/recorded/tensorboard_writer/runs/events.out.tfevents.1795668261.vm.2799.0");
    const RUN: &[u8] =
        include_bytes!("../tests/recorded/wandb_sweep/wandb/offline-run-20261126_054041-x1po24s3/run-x1po24s3.wandb");

    fn all(file: &mut LogFile, bytes: &[u8], when: Read, shared: &mut Shared) -> Vec<Logged> {
        let mut all = Vec::new();
        loop {
            let found = file.read(Cursor::new(bytes), when, shared).unwrap();
            all.extend(found.logged);
            if !found.has_more {
                return all;
            }
        }
    }

    fn read(file: &mut LogFile, bytes: &[u8], when: Read) -> Vec<(f64, Source)> {
        let found = all(file, bytes, when, &mut Shared::new(0.0, None));
        found.into_iter().flat_map(|row| row.values).map(|value| (value.value, value.source)).collect()
    }

    #[test]
    fn a_file_that_grows_is_read_as_if_it_were_read_once() {
        for (name, bytes) in [("events.out.tfevents.1.x", EVENTS), ("run-a.wandb", RUN)] {
            let whole = read(&mut LogFile::named(Path::new(name)).unwrap(), bytes, Read::Last);
            assert!(whole.len() >= 20, "{name}: {}", whole.len());
            for step in [1, 7, 1000] {
                let mut file = LogFile::named(Path::new(name)).unwrap();
                let mut pieces = Vec::new();
                for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
                    pieces.extend(read(&mut file, &bytes[..end], Read::During));
                }
                assert_eq!(pieces, whole, "{name} in steps of {step}");
            }
            let mut file = LogFile::named(Path::new(name)).unwrap();
            assert_eq!(read(&mut file, &bytes[..bytes.len() / 2], Read::Before), []);
            assert_eq!(read(&mut file, bytes, Read::During), whole, "its values have times");
        }
    }

    #[test]
    fn nothing_is_read_after_a_checksum_that_does_not_fit() {
        for (name, bytes) in [("events.out.tfevents.1.x", EVENTS), ("run-a.wandb", RUN)] {
            let whole = read(&mut LogFile::named(Path::new(name)).unwrap(), bytes, Read::Last);
            for at in (0..bytes.len()).step_by(13) {
                let mut broken = bytes.to_vec();
                broken[at] ^= 0x10;
                let found = read(&mut LogFile::named(Path::new(name)).unwrap(), &broken, Read::Last);
                assert!(whole.starts_with(&found), "{name} at {at}");
                assert!(found.len() < whole.len() || at > bytes.len() / 2, "{name} at {at}: the rest was read");
            }
        }
    }

    #[test]
    fn what_is_recorded_already_is_passed_over() {
        for (name, bytes) in [("events.out.tfevents.1.x", EVENTS), ("run-a.wandb", RUN)] {
            let since = |since| {
                let mut file = LogFile::named(Path::new(name)).unwrap();
                all(&mut file, bytes, Read::Last, &mut Shared::new(since, None))
            };
            let whole = since(0.0);
            let middle = whole[whole.len() / 2].time.unwrap();
            let later: Vec<_> = whole.into_iter().filter(|logged| logged.time > Some(middle)).collect();
            assert_eq!(since(middle), later, "{name}");
            assert_eq!(since(4_000_000_000.0), [], "{name}");
        }
    }

    #[test]
    fn rows_count_for_more_where_the_training_appends_to_them() {
        let (header, one, two) = ("epoch,acc,note\n", "0,0.5,x\n", "1,0.75,\n");
        let whole = [header, one, two].concat();
        let mut file = LogFile::named(Path::new("logs/metrics.csv")).unwrap();
        assert_eq!(read(&mut file, [header, one].concat().as_bytes(), Read::During), []);
        assert_eq!(read(&mut file, &whole.as_bytes()[..whole.len() - 1], Read::During), [], "a line without its end");
        assert_eq!(read(&mut file, whole.as_bytes(), Read::During), [(0.5, Source::Rows), (0.75, Source::Rows)]);
        assert_eq!(read(&mut file, whole.as_bytes(), Read::Last), []);

        let mut found = LogFile::named(Path::new("metrics.csv")).unwrap();
        assert_eq!(read(&mut found, whole.as_bytes(), Read::During), []);
        assert_eq!(read(&mut found, whole.as_bytes(), Read::Last), [(0.5, Source::Found), (0.75, Source::Found)]);

        // The file of an earlier attempt is rewritten from its beginning.
        let mut old = LogFile::named(Path::new("metrics.jsonl")).unwrap();
        let (one, two) = ("{\"acc\": 0.5}\n", "{\"acc\": 0.75}\n");
        assert_eq!(read(&mut old, one.as_bytes(), Read::Before), []);
        assert_eq!(
            read(&mut old, [one, two, "{\"acc\": 0.8"].concat().as_bytes(), Read::During),
            [(0.75, Source::Rows)]
        );
        assert_eq!(read(&mut old, two.as_bytes(), Read::During), [(0.75, Source::Rows)]);
        assert_eq!(read(&mut old, two.as_bytes(), Read::Last), []);
    }

    #[test]
    fn a_file_that_is_written_again_loses_no_row_and_repeats_none() {
        let file = |rows: &[&str]| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
        let (header, more) = ("epoch,acc", "epoch,loss,acc");
        type Looks = &'static [(&'static [&'static str], &'static [f64])];
        let looks: [Looks; 8] = [
            // A later attempt rewrites it, and has more rows at the first look.
            &[(&["1,0.1", "2,0.2"], &[0.1, 0.2]), (&["3,0.3", "4,0.4", "5,0.5"], &[0.3, 0.4, 0.5])],
            // The attempt goes on from a checkpoint, and appends after older rows.
            &[
                (&["1,0.1", "2,0.2", "3,0.3"], &[0.1, 0.2, 0.3]),
                (&["1,0.1", "2,0.25", "3,0.35", "4,0.4"], &[0.25, 0.35, 0.4]),
            ],
            // Each look finds the file while it is being rewritten.
            &[(&["1,0.1", "2,0.2"], &[0.1, 0.2]), (&["1,0.1"], &[]), (&["1,0.1", "2,0.2", "3,0.3"], &[0.3])],
            &[(&["1,0.1"], &[0.1]), (&[], &[]), (&["1,0.1", "2,0.2"], &[0.2])],
            // The last row changes, or gets its value later.
            &[(&["1,0.1", "2,0.2"], &[0.1, 0.2]), (&["1,0.1", "2,0.25"], &[0.25]), (&["1,0.1", "2,0.25", "3,"], &[])],
            &[(&["1,0.1", "2,"], &[0.1]), (&["1,0.1", "2,0.2"], &[0.2])],
            // The file always has one row.
            &[(&["1,0.1"], &[0.1]), (&["2,0.1"], &[0.1]), (&["3,0.3"], &[0.3])],
            &[(&["1,0.1"], &[0.1]), (&["1,0.2"], &[0.2])],
        ];
        for looks in looks {
            let mut log = LogFile::named(Path::new("metrics.csv")).unwrap();
            read(&mut log, &[header, "\n"].concat().into_bytes(), Read::During);
            for (number, (rows, expected)) in looks.iter().enumerate() {
                let bytes = file(&[&[header][..], *rows].concat());
                let found: Vec<f64> =
                    read(&mut log, bytes.as_bytes(), Read::During).iter().map(|(value, _)| *value).collect();
                assert_eq!(found, *expected, "look {number} of {looks:?}");
            }
        }
        // Stable Baselines and Lightning rewrite the file with more columns.
        let mut log = LogFile::named(Path::new("progress.csv")).unwrap();
        read(&mut log, file(&[header, "1,0.1"]).as_bytes(), Read::Before);
        let wider = file(&[more, "1,,0.1", "2,9,0.2"]);
        assert_eq!(read(&mut log, wider.as_bytes(), Read::During), [(9.0, Source::Rows), (0.2, Source::Rows)]);
        let other = file(&["epoch,lr,loss,acc", "3,,9,0.3"]);
        assert_eq!(read(&mut log, other.as_bytes(), Read::During), [(9.0, Source::Rows), (0.3, Source::Rows)]);
    }

    #[test]
    fn event_files_in_the_folder_of_a_data_set_are_of_it() {
        let of = |path: &str, named: &str| {
            let mut file = LogFile::named(Path::new(path)).unwrap();
            let found = all(&mut file, EVENTS, Read::Last, &mut Shared::new(0.0, Some(named.to_owned())));
            let values = found.into_iter().flat_map(|row| row.values).filter(|value| value.name == named);
            values.map(|value| value.source).next()
        };
        assert_eq!(of("logs/events.out.tfevents.1.x", "accuracy/val"), Some(Source::Recorded));
        assert_eq!(of("logs/train/events.out.tfevents.1.x", "accuracy/val"), Some(Source::OfTraining));
        assert_eq!(of("logs/train/events.out.tfevents.1.x", "train/accuracy_val"), Some(Source::Recorded));
        assert_eq!(of("logs/validation/events.out.tfevents.1.x", "val_accuracy/val"), Some(Source::Recorded));
    }

    #[test]
    fn a_file_is_a_log_by_its_name() {
        let is_log = |path: &str| LogFile::named(Path::new(path)).is_some();
        for path in ["runs/a/events.out.tfevents.1.x.0", "wandb/offline-run-1/run-a.wandb", "metrics.csv"] {
            assert!(is_log(path), "{path}");
        }
        for path in ["checkpoint-5/trainer_state.json", "train_log.jsonl", "metrics.jsonl", "metrics.json"] {
            assert!(is_log(path), "{path}");
        }
        for path in ["a/progress.csv", "vis_data/scalars.json", "output/log.txt", "vis_data/20261128_130501.json"] {
            assert!(is_log(path), "{path}");
        }
        for path in
            ["predictions.jsonl", "submission.csv", "state.json", "model.pt", "catalog.jsonl", "1_2.json", "notes.txt"]
        {
            assert!(!is_log(path), "{path}");
        }
        for path in ["metrics_epoch_9.json", "log_0.txt", "20261128_1305.json", "ckpt/epoch_10/metrics.json"] {
            assert!(!is_log(path), "{path}");
        }
        // The folder may show that the file is one of many. A number alone may be a version or a time.
        for path in ["version_0/metrics.json", "runs/metrics.json", "fold_0/20261128_130501.json", "exp_3/log.txt"] {
            assert!(is_log(path), "{path}");
        }
        for path in ["fold_0/metrics.json", "fold_0/val/metrics.json", "Seed-1/log.txt", "global_step500/metrics.json"]
        {
            assert!(!is_log(path), "{path}");
        }
    }
}
