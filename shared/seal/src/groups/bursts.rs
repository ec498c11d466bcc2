//! Finds the numbers in file names that distinguish checkpoints, from the times of the files.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::Stamp;
use crate::names::{digit_runs, file_name, integers};
use crate::shape::shape;

/// The time between two checkpoints is at least so many times as long as that between two files of one.
const TIMES_LONGER: i64 = 3;
/// The longest computation between two files of one checkpoint.
pub(crate) const MOST_PAUSE_NS: i64 = 5_000_000_000;
/// The time that a slow volume takes to write a byte: 8 MB in a second.
const NS_PER_BYTE: i64 = 125;

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written<'a> {
    /// When it was written, in nanoseconds since 1970.
    pub(crate) at: i64,
    pub(crate) bytes: u64,
    pub(crate) path: &'a str,
}

/// The part of a path that distinguishes checkpoints whose files have names of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The folder.
    Folder,
    /// The number at this place of the last part of the path; the other numbers are those of parts of a checkpoint.
    Number(usize),
    /// The first so many numbers of the last part.
    First(usize),
}

/// A way to divide files into checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    /// Folders before the part of the path that has the numbers.
    pub(super) depth: usize,
    /// Shape of the path up to that part.
    shape: String,
    pub(super) key: Key,
}

/// Files by the values of a key.
pub(super) type Values<'a> = BTreeMap<String, Vec<Written<'a>>>;

/// What the times of files must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The time between two checkpoints is much longer than that between two files of one.
    Bursts,
    /// Each checkpoint was written at once, before the next one.
    Order,
    /// The same, and the newest checkpoint counts, too: the order alone does not rule it out.
    Possible,
}

/// The ways to divide `files` into checkpoints that their times confirm. If a file has several, only the one with the
/// most checkpoints counts. If times show only the order, the one with the fewest counts, and none that divides what
/// may also be one checkpoint: a save that was abandoned after its first part looks like a part of the next one.
pub(super) fn confirmed<'a>(files: &[Written<'a>], evidence: Evidence) -> Vec<(Way, Values<'a>)> {
    let mut ways = BTreeMap::<Way, Values<'a>>::new();
    for file in files {
        for (way, value) in ways_of(file.path) {
            ways.entry(way).or_default().entry(value).or_default().push(*file);
        }
    }
    let is_possible = |values: &&Values| evidence == Evidence::Order && is_confirmed(values, Evidence::Possible);
    let possible: Vec<Values> = ways.values().filter(is_possible).cloned().collect();
    let is_sole = |values: &Values| !possible.iter().any(|other| joins(other, values));
    let counts = |values: &Values| is_confirmed(values, evidence) && is_sole(values);
    let mut confirmed: Vec<_> = ways.into_iter().filter(|(_, values)| counts(values)).collect();
    confirmed.sort_by_key(|(_, values)| values.len());
    if evidence == Evidence::Bursts {
        confirmed.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
    }
    let mut taken = BTreeSet::new();
    confirmed.retain(|(_, values)| {
        let paths = || values.values().flatten().map(|file| file.path);
        let is_free = paths().all(|path| !taken.contains(path));
        if is_free {
            taken.extend(paths());
        }
        is_free
    });
    confirmed
}

/// Whether a checkpoint of `other` has files of several checkpoints of `values`.
fn joins(other: &Values, values: &Values) -> bool {
    let of: BTreeMap<&str, usize> =
        values.values().zip(0..).flat_map(|(files, of)| files.iter().map(move |file| (file.path, of))).collect();
    let several =
        |files: &Vec<Written>| files.iter().filter_map(|file| of.get(file.path)).collect::<BTreeSet<_>>().len() > 1;
    other.values().any(several)
}

/// Whether a file may have been written right after the one before.
pub(crate) fn is_next(before: &Written, file: &Written) -> bool {
    let bytes = i64::try_from(file.bytes).unwrap_or(i64::MAX);
    file.at.saturating_sub(before.at) <= MOST_PAUSE_NS.saturating_add(bytes.saturating_mul(NS_PER_BYTE))
}

/// Whether these versions were written right after each other, as one save does.
pub(crate) fn are_of_one_save<'a>(versions: impl Iterator<Item = (&'a str, Stamp)>) -> bool {
    let mut versions: Vec<_> = versions.map(|(path, stamp)| written(path, stamp)).collect();
    versions.sort_unstable();
    versions.is_sorted_by(is_next)
}

pub(crate) fn written(path: &str, stamp: Stamp) -> Written<'_> {
    Written { at: stamp.modified_ns, bytes: stamp.bytes, path }
}

/// Each way in which the file at `path` may belong to one of several checkpoints, and its value.
fn ways_of(path: &str) -> Vec<(Way, String)> {
    let mut ways = Vec::new();
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for (depth, prefix) in ends.map(|end| &path[..end]).enumerate() {
        let numbers: Vec<&str> = integers(file_name(prefix)).map(|number| number.trim_start_matches('0')).collect();
        // A number that is the only one in a file's path distinguishes it from every other file.
        let is_own = prefix.len() == path.len() && digit_runs(path).count() < 2;
        if is_own || digit_runs(file_name(prefix)).next().is_none() {
            continue;
        }
        let shape = shape(prefix);
        let mut add = |key, value: String| ways.push((Way { depth, shape: shape.clone(), key }, value));
        if prefix.len() < path.len() {
            add(Key::Folder, prefix.to_owned());
        }
        for (place, number) in numbers.iter().enumerate() {
            add(Key::Number(place), (*number).to_owned());
            if place > 0 {
                add(Key::First(place + 1), numbers[..=place].join(" "));
            }
        }
    }
    ways
}

/// Whether the files of each value were written at once, and all of them before those of the next value. The newest
/// value does not count, because it may be incomplete or its instance was slow.
fn is_confirmed<'a>(values: &Values<'a>, evidence: Evidence) -> bool {
    let mut seen = BTreeMap::<i64, usize>::new();
    for at in values.values().flat_map(|files| files.iter().map(|file| file.at).collect::<BTreeSet<_>>()) {
        *seen.entry(at).or_default() += 1;
    }
    // The time of a file that was copied with its time belongs to no checkpoint.
    let own = |files: &Vec<Written<'a>>| -> Vec<Written<'a>> {
        files.iter().filter(|file| seen[&file.at] == 1).copied().collect()
    };
    let numbers = |value: &str| integers(file_name(value)).map(|number| number.parse().ok()).collect::<Vec<_>>();
    let mut bursts: Vec<(_, Vec<Option<u64>>)> =
        values.iter().map(|(value, files)| (own(files), numbers(value))).collect();
    bursts.iter_mut().for_each(|(burst, _)| burst.sort_unstable());
    bursts.sort_unstable();
    if bursts.iter().any(|(burst, _)| burst.is_empty()) {
        return false;
    }
    let is_series = bursts.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let bursts: Vec<_> = bursts.into_iter().map(|(burst, _)| burst).collect();
    let mut between: Vec<i64> = bursts.windows(2).map(|pair| pair[1][0].at - pair[0][pair[0].len() - 1].at).collect();
    // A save after a signal may follow another one at once. If the numbers do not grow with each value, the values may be
    // parts of a checkpoint, such as the folders of its ranks.
    between.sort_unstable();
    let place = if is_series { between.len() / 2 } else { between.len().saturating_sub(1) / 3 };
    let Some(&usual) = between.get(place).filter(|_| between[0] > 0) else {
        return false;
    };
    let is_burst = |burst: &&&Vec<Written>| {
        burst.windows(2).all(|pair| {
            let is_short = (pair[1].at - pair[0].at).saturating_mul(TIMES_LONGER) <= usual;
            is_next(&pair[0], &pair[1]) && (is_short || evidence != Evidence::Bursts)
        })
    };
    let count = if evidence == Evidence::Possible { bursts.len() } else { bursts.len() - 1 };
    let several: Vec<_> = bursts[..count].iter().filter(|burst| burst.len() > 1).collect();
    several.iter().filter(is_burst).count() * 2 > several.len() && !has_series(values)
}

/// Whether the files are separate checkpoints: in a number of their names they are one series over all values, such as
/// the epochs in `version_0/epoch=1.ckpt`, `version_0/epoch=2.ckpt`, `version_1/epoch=3.ckpt`.
fn has_series(values: &Values) -> bool {
    let mut kinds = BTreeMap::<String, Vec<(i64, usize, &str)>>::new();
    for (value, files) in values.values().enumerate() {
        for file in files {
            kinds.entry(shape(file.path)).or_default().push((file.at, value, file.path));
        }
    }
    kinds.into_values().any(|mut files| {
        let of: BTreeSet<usize> = files.iter().map(|(_, value, _)| *value).collect();
        if of.len() < 2 || of.len() == files.len() {
            return false;
        }
        files.sort_unstable();
        let number =
            |path: &str, place| integers(file_name(path)).nth(place).and_then(|number| number.parse::<u64>().ok());
        let places = integers(file_name(files[0].2)).count();
        (0..places).any(|place| files.windows(2).all(|pair| number(pair[0].2, place) < number(pair[1].2, place)))
    })
}
