//! Reads files that may be JSON. Detectron2 and MMEngine write a document on each line; a script may write one document
//! at its end.
//!
//! In a document that is a whole file, only the named metric is read: as a member, as a list of a history, or in a list
//! of rows with steps. Other numbers may be settings or predictions.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::IgnoredAny;
use spotsweep_protocol::metric::Source;

use crate::figures::differ;
use crate::logged::Logged;
use crate::names::Named;
use crate::object::{self, Nested, Scanner};
use crate::part::{PIECE_BYTES, Read as When};
use crate::{data_set, history, json_line, number, step};

/// A file, and what is known so far about its form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// The hashes of its folder and of its path.
    place: (u64, u64),
    /// Whether its name has an ending of JSON.
    is_json: bool,
    /// The data set that its name states.
    set: Option<&'static str>,
    /// Whether each line is a document of its own, as the first line shows.
    has_lines: bool,
    has_found: bool,
    /// The hash of its content before the training.
    before: Option<u64>,
}

impl Document {
    /// Returns a file that has not been read yet.
    pub(crate) fn named(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            place: (hash(&path.parent()), hash(&path)),
            is_json: path.extension().is_some_and(|ending| ending == "json"),
            set: stem.split(|c: char| !c.is_ascii_alphabetic()).find_map(data_set::short).or_else(|| of_folder(path)),
            ..Self::default()
        }
    }

    /// Returns the hashes of its folder and of its path.
    pub(crate) fn place(&self) -> (u64, u64) {
        self.place
    }

    /// Whether values have been found in it.
    pub(crate) fn has_found(&self) -> bool {
        self.has_found
    }

    /// Returns the rows of lines that are documents of their own. `first` is true if the file begins with these lines.
    pub(crate) fn lines(&mut self, lines: &str, first: bool, named: &Named) -> Vec<Logged> {
        let mut rows = lines.lines().map(|line| json_line::parse(line, Source::Rows, named)).peekable();
        if first {
            self.has_lines = rows.peek().is_some_and(Option::is_some);
        }
        let has_lines = self.has_lines;
        let mut rows: Vec<Logged> = rows.map(|row| row.filter(|_| has_lines).unwrap_or_default()).collect();
        for row in &mut rows {
            self.set.into_iter().for_each(|set| named.in_set(set, row));
            leave_out_of_many(row, named);
            row.values.retain(|value| self.is_of_named_set(named) || !named.is(&value.name));
        }
        self.has_found |= rows.iter().any(|row| !row.values.is_empty());
        rows
    }

    /// Returns the named metric of a file that is one new document. It is read after the end of the training, because a
    /// script may rewrite it until then.
    pub(crate) fn read(&mut self, file: &mut (impl Read + Seek), when: When, named: &Named) -> io::Result<Vec<Logged>> {
        if when == When::During || self.has_found() || !self.is_json {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        file.take(PIECE_BYTES + 1).read_to_end(&mut bytes)?;
        if when == When::Before {
            self.before = Some(hash(&bytes));
            return Ok(Vec::new());
        }
        let is_new = bytes.len() as u64 <= PIECE_BYTES && self.before != Some(hash(&bytes));
        let Some(text) = Some(bytes).filter(|_| is_new).and_then(|bytes| String::from_utf8(bytes).ok()) else {
            return Ok(Vec::new());
        };
        let found = if self.is_of_named_set(named) { parse(&text, named) } else { Vec::new() };
        self.has_found = !found.is_empty();
        Ok(found)
    }

    /// Whether the data set in the file's name, if there is one, may be that of the metric. Trials are not compared by
    /// the values of a test.
    fn is_of_named_set(&self, named: &Named) -> bool {
        let (Some(set), Some(named)) = (self.set, named.name()) else { return true };
        let own = data_set::split(named).map(|(own, _)| own);
        // A metric's own name overrides the file's: a log of the training may have `val_acc`.
        own.map_or(!matches!(set, "train" | "test" | "best"), |own| own == set || set != "best")
    }
}

/// Returns the named metric in a document.
fn parse(text: &str, named: &Named) -> Vec<Logged> {
    if named.name().is_none() || !is_json(text) {
        return Vec::new();
    }
    let text = text.trim();
    let mut rows = if text.starts_with('[') { records(text, named) } else { object(text, named) };
    for row in &mut rows {
        row.values.retain(|value| named.is(&value.name));
        leave_out_of_many(row, named);
    }
    rows.retain(|row| !row.values.is_empty());
    rows
}

fn object(text: &str, named: &Named) -> Vec<Logged> {
    let (mut nested, mut steps, mut set) = (Nested::default(), Logged::default(), None);
    Scanner::default().scan(text, |names, value| {
        if let [name] = names {
            set = set.or_else(|| data_set::of_member(name, object::word(value)));
        }
        let value = number::of_member(value);
        nested.take(names, value, named);
        if let ([name], Some(value)) = (names, value)
            && step::is_name(name)
        {
            steps.add(name, value, Source::Found);
        }
    });
    let mut found = Logged { step: step::take(&mut steps.values), ..Logged::default() };
    nested.add(&mut found, named, Source::Found, set);
    let mut rows = vec![found];
    rows.extend(history::rows(text, named, None, Source::Found));
    rows
}

/// Returns the objects of a list if each has a later step than the one before. Otherwise they may be of classes, folds
/// or samples.
fn records(text: &str, named: &Named) -> Vec<Logged> {
    let objects = object::all(text).into_iter();
    let rows = objects.map(|range| json_line::parse(&text[range], Source::Found, named).unwrap_or_default());
    let rows: Vec<Logged> = rows.collect();
    let are_counted = rows.windows(2).all(|pair| pair[0].step < pair[1].step);
    if are_counted && rows.iter().all(|row| row.step.is_some()) { rows } else { Vec::new() }
}

/// Removes the named metric from a row if it has several different values. They are of folds, classes or data sets, and
/// it is not known which one counts.
fn leave_out_of_many(row: &mut Logged, named: &Named) {
    let reliable = row.values.iter().filter(|value| named.is(&value.name) && value.source > Source::OfTraining);
    let mut values = reliable.map(|value| value.value);
    if values.next().is_some_and(|first| values.any(|other| differ(first, other))) {
        row.values.retain(|value| !named.is(&value.name));
    }
}

/// Returns the data set that a file's folder is named after. A word of a longer name may name a run (`test_2`), but
/// `best_model` may be the model of an earlier epoch.
fn of_folder(path: &Path) -> Option<&'static str> {
    let folder = path.parent()?.file_name()?.to_str()?;
    data_set::short(folder).or_else(|| data_set::in_words(folder).filter(|set| *set == "best"))
}

/// Whether a text is JSON, or JSON with the additional numbers of Python's json module.
fn is_json(text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    is_json(text) || is_json(&json_line::with_quoted_numbers(text))
}

/// Whether a file is named after the time at which a training began: `20261128_130501.json` of MMEngine,
/// `20261128_130501.log.json` of MMCV.
pub(crate) fn is_time(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_number = |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name.split('.').next().and_then(|stem| stem.split_once('_'));
    stem.is_some_and(|(day, time)| is_number(day, 8) && is_number(time, 6))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use super::*;
    use crate::{LogFile, Shared};

    fn look(file: &mut LogFile, content: &str, when: When, shared: &mut Shared) -> Vec<Logged> {
        file.read(Cursor::new(content.as_bytes()), when, shared).unwrap().logged
    }

    fn values(rows: Vec<Logged>, metric: &str) -> Vec<(Option<f64>, f64, Source)> {
        let of_row = |row: Logged| row.values.into_iter().map(move |value| (row.step, value));
        let all = rows.into_iter().flat_map(of_row).filter(|(_, value)| value.name == metric);
        all.map(|(step, value)| (step, value.value, value.source)).collect()
    }

    /// A path, the file's content, the metric, and the values that are found.
    type Case = (&'static str, &'static str, &'static str, &'static [(Option<f64>, f64, Source)]);

    const FOUND: Source = Source::Found;

    fn check(cases: &[Case]) {
        for (path, content, metric, expected) in cases {
            let mut file = LogFile::named(Path::new(path)).unwrap();
            let mut shared = Shared::new(0.0, Some((*metric).to_owned()));
            assert_eq!(look(&mut file, content, When::During, &mut shared), [], "{path}: {content}");
            let rows = look(&mut file, content, When::Last, &mut shared);
            let has_found = rows.iter().any(|row| !row.values.is_empty());
            assert_eq!(file.is_of_other_form(), !has_found, "{path}: {content}");
            assert_eq!(values(rows, metric), *expected, "{path}: {content}");
        }
    }

    #[test]
    fn json_files_have_the_named_metric() {
        const VISUAL: &str = "work_dirs/a/20261128_130501/vis_data/20261128_130501.json";
        const DETECTED: &str = "{\"bbox/AP\": 40.5, \"iteration\": 19}\n{\"iteration\": 29, \"loss\": 0.5}\n\
                                {\"bbox/AP\": 41.25, \"iteration\": 39}\n";
        const OF_MODES: &str = "{\"env_info\": \"x\", \"seed\": 0}\n{\"mode\": \"train\", \"epoch\": 1, \"iter\": 50, \
                                \"acc\": 0.9}\n{\"mode\": \"val\", \"epoch\": 1, \"iter\": 500, \"acc\": 0.75}\n";
        let cases: [Case; 21] = [
            // Detectron2, MMEngine and MMCV write these.
            ("output/metrics.json", DETECTED, "bbox/AP", &[(Some(19.0), 40.5, FOUND), (Some(39.0), 41.25, FOUND)]),
            (
                VISUAL,
                "{\"loss\": 0.5, \"iter\": 50, \"step\": 50}\n{\"mAP\": 0.25, \"step\": 1}\n",
                "mAP",
                &[(Some(1.0), 0.25, FOUND)],
            ),
            (
                "20210601_123456.log.json",
                OF_MODES,
                "acc",
                &[(Some(1.0), 0.9, Source::OfTraining), (Some(1.0), 0.75, FOUND)],
            ),
            ("20210601_123456.log.json", OF_MODES, "val_acc", &[(Some(1.0), 0.75, FOUND)]),
            // DETR's log is named like a text, and so are files without metrics.
            (
                "output/log.txt",
                "{\"train_loss\": 0.5, \"acc1\": 80.5, \"epoch\": 0}\n",
                "acc1",
                &[(Some(0.0), 80.5, FOUND)],
            ),
            ("output/log.txt", "started\n{\"acc1\": 80.5}\n", "acc1", &[]),
            // These are single documents.
            ("metrics.json", "{\n  \"epoch\": 3,\n  \"val_acc\": 0.75\n}", "val_acc", &[(Some(3.0), 0.75, FOUND)]),
            ("metrics.json", "{\n  \"val\": {\n    \"acc\": 0.75\n  }\n}", "val_acc", &[(None, 0.75, FOUND)]),
            ("metrics.json", "{\"val_acc\": 0.75}", "val_acc", &[(None, 0.75, FOUND)]),
            (
                "history.json",
                "{\"loss\": [1, 0.5], \"val_loss\": [0.75, 0.5]}",
                "val_loss",
                &[(None, 0.75, FOUND), (None, 0.5, FOUND)],
            ),
            (
                "log.json",
                "[{\"epoch\": 1, \"acc\": 0.5},\n{\"epoch\": 2, \"acc\": 0.75}]",
                "acc",
                &[(Some(1.0), 0.5, FOUND), (Some(2.0), 0.75, FOUND)],
            ),
            ("train_metrics.json", "{\"acc\": 0.9}", "acc", &[]),
            ("val_metrics.json", "{\"acc\": 0.75}", "val_acc", &[(None, 0.75, FOUND)]),
            ("test_metrics.json", "{\"acc\": 0.75}", "test_acc", &[(None, 0.75, FOUND)]),
            // These are of other data, one of many rows, settings, and incomplete.
            ("test_metrics.json", "{\"acc\": 0.75}", "acc", &[]),
            ("metrics.json", "[{\"fold\": 1, \"acc\": 0.5},\n{\"fold\": 2, \"acc\": 0.75}]", "acc", &[]),
            ("metrics.json", "{\n\"folds\": [\n{\"acc\": 0.5},\n{\"acc\": 0.75}\n]\n}", "acc", &[]),
            ("metrics.json", "{\n  \"acc\": [0.5, 0.75]\n}", "acc", &[]),
            ("metrics.json", "{\n  \"acc\": \"higher is better\"\n}", "acc", &[]),
            ("metrics.json", "{\n  \"acc\": 0.75,\n", "acc", &[]),
            ("metrics.json", "", "acc", &[]),
        ];
        check(&cases);
    }

    #[test]
    fn json_files_of_other_data_or_of_many_do_not_count() {
        let cases: [Case; 20] = [
            // These are in the folder of a data set, of the best model, and of one of many.
            ("out/eval/metrics.json", "{\"acc\": 0.75}", "acc", &[(None, 0.75, FOUND)]),
            ("out/eval/metrics.json", "{\"acc\": 0.75}", "eval_acc", &[(None, 0.75, FOUND)]),
            ("out/train/metrics.json", "{\"acc\": 0.9}", "acc", &[]),
            ("out/train/metrics.json", "{\n  \"acc\": 0.9\n}", "acc", &[]),
            ("best/metrics.json", "{\"val_acc\": 0.9}", "val_acc", &[]),
            ("best_model/metrics.json", "{\n  \"val_acc\": 0.9\n}", "val_acc", &[]),
            ("best/metrics.json", "{\"best_val_acc\": 0.9}", "best_val_acc", &[(None, 0.9, FOUND)]),
            ("test_run/metrics.json", "{\"acc\": 0.75}", "acc", &[(None, 0.75, FOUND)]),
            // The member's name states its data set.
            ("train_log.json", "{\"val_acc\": 0.75, \"train_acc\": 0.9}", "val_acc", &[(None, 0.75, FOUND)]),
            ("eval_metrics.json", "{\n  \"val_acc\": 0.75\n}", "val_acc", &[(None, 0.75, FOUND)]),
            ("test_metrics.json", "{\"acc\": 0.75}", "val_acc", &[]),
            // These are of folds, data sets, classes, and the best epoch.
            ("metrics.json", "{\"fold_0\": {\"val_acc\": 0.91}, \"fold_1\": {\"val_acc\": 0.72}}", "val_acc", &[]),
            ("metrics.json", "{\"val\": {\"acc\": 0.75},\n\"test\": {\"acc\": 0.5}}", "acc", &[]),
            ("metrics.json", "{\"LOC\": {\"f1\": 0.5},\n\"PER\": {\"f1\": 0.75}}", "f1", &[]),
            (
                "metrics.json",
                "{\"val\": {\"acc\": 0.75},\n\"train\": {\"acc\": 0.9}}",
                "acc",
                &[(None, 0.75, FOUND), (None, 0.9, Source::OfTraining)],
            ),
            (
                "metrics.json",
                "{\"last\": {\"val_acc\": 0.88},\n\"best\": {\"epoch\": 7, \"val_acc\": 0.93}}",
                "val_acc",
                &[(None, 0.88, FOUND), (None, 0.93, Source::OfTraining)],
            ),
            ("metrics.json", "{\"best\": {\"val_acc\": 0.93}}", "best_val_acc", &[(None, 0.93, FOUND)]),
            ("metrics.json", "{\"best\": {\"best_val_acc\": 0.93}}", "best_val_acc", &[(None, 0.93, FOUND)]),
            // A member's text states the data set.
            (
                "metrics.json",
                "{\"split\": \"train\", \"metrics\": {\"acc\": 0.98}}",
                "acc",
                &[(None, 0.98, Source::OfTraining)],
            ),
            ("metrics.json", "{\n\"acc\": 0.98,\n\"split\": \"train\"\n}", "acc", &[(None, 0.98, Source::OfTraining)]),
        ];
        check(&cases);
    }

    #[test]
    fn rows_that_two_files_of_a_folder_have_count_once() {
        let mut shared = Shared::new(0.0, Some("mAP".to_owned()));
        let (one, two) = ("{\"mAP\": 0.25, \"step\": 1}\n", "{\"mAP\": 0.5, \"step\": 2}\n");
        let mut found = Vec::new();
        for folder in ["20261128_130501", "20261128_140501"] {
            let path = |name: &str| format!("work_dirs/a/{folder}/vis_data/{name}.json");
            let mut files = [path(folder), path("scalars")].map(|path| LogFile::named(Path::new(&path)).unwrap());
            for content in ["", one, &[one, two].concat()] {
                for file in &mut files {
                    found.extend(values(look(file, content, When::During, &mut shared), "mAP"));
                }
            }
        }
        let rows = [(Some(1.0), 0.25, Source::Rows), (Some(2.0), 0.5, Source::Rows)];
        assert_eq!(found, rows.repeat(2));
    }

    #[test]
    fn a_document_of_before_is_not_of_this_training() {
        let (old, new) = ("{\n  \"acc\": 0.5\n}", "{\n  \"acc\": 0.75\n}");
        for (after, expected) in [(old, None), (new, Some(0.75))] {
            let mut shared = Shared::new(0.0, Some("acc".to_owned()));
            let mut file = LogFile::named(Path::new("metrics.json")).unwrap();
            assert_eq!(look(&mut file, old, When::Before, &mut shared), []);
            let found = values(look(&mut file, after, When::Last, &mut shared), "acc");
            assert_eq!(found.first().map(|(_, value, _)| *value), expected, "{after}");
        }
    }
}
