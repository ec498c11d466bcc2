//! Several files that are rewritten in place may be one checkpoint, such as `model.pt` and `optimizer.pt`. If one of
//! them goes back to its kept version, the others do, too, if all these versions lay in place at one seal.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use spotsweep_protocol::runner_log::{is_ahead, is_back_too, may_differ};

use crate::content::{has_content, hash, is_small_text};
use crate::database::is_database;
use crate::disk::{Disk, Stamp};
use crate::groups::{Groups, MOST_PAUSE_NS};
use crate::kept::{Kept, is_intact, kept_path};
use crate::logs::may_be_log;
use crate::names::{is_pointer_name, stem};
use crate::record::{InPlace, Record, Sealed};
use crate::saves::{Saves, is_unchanged};
use crate::shape::shape;

/// What happens to a file that lies next to one that went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partner {
    /// Its kept version goes back, too.
    Back,
    /// It may be of another step, and no version of it is known to be of the same step.
    Unsure,
    /// It is of a newer step, and no version of it is of the same step: it is quarantined. A text has to name that step.
    Ahead,
}

impl Record {
    /// Notes which of the kept versions `are_in_place` at a seal.
    pub(crate) fn note_in_place(&mut self, are_in_place: impl Fn(&str, &Sealed) -> bool) {
        let seal = 1 + self.in_place.values().map(|before| before.last).max().unwrap_or(0);
        let kept = &self.kept;
        self.in_place.retain(|path, before| kept.get(path).is_some_and(|kept| kept.sha256 == before.sha256));
        for (path, kept) in kept.iter().filter(|(path, kept)| are_in_place(path, kept)) {
            let new = || InPlace { sha256: kept.sha256.clone(), first: seal, last: seal };
            self.in_place.entry(path.clone()).or_insert_with(new).last = seal;
        }
    }

    /// Whether two versions lay in their places at one seal.
    fn are_of_one_seal(&self, one: (&String, &Sealed), other: (&String, &Sealed)) -> bool {
        let in_place =
            |(path, sealed): (&String, &Sealed)| self.in_place.get(path).filter(|found| found.sha256 == sealed.sha256);
        let both = in_place(one).zip(in_place(other));
        both.is_some_and(|(one, other)| one.first <= other.last && other.first <= one.last)
    }
}

/// The files next to those that went `back` to earlier versions, if they are rewritten like these. `files` are all that
/// lay there before. A short text, such as `training_metadata.json`, is restored or quarantined if it names a newer
/// version. Otherwise the training would skip steps that its weights have not seen.
pub(crate) fn partners(
    disk: &dyn Disk,
    [checkpoints, own]: [&Path; 2],
    record: &Record,
    groups: &Groups,
    (files, back): (&BTreeMap<String, Stamp>, &Kept),
) -> io::Result<Vec<(String, Partner)>> {
    let mut found = Vec::new();
    let saved = SavedWith { record, groups, sealed: Saves::of(&record.files), kept: Saves::of(&record.kept) };
    let back: Vec<_> = back.iter().collect();
    // Texts come last, because one may belong to a file that stays.
    let is_short = |path: &&String| is_small_text(disk, &checkpoints.join(path), files[*path].bytes);
    let (texts, others): (Vec<_>, Vec<_>) = files.keys().partition(is_short);
    for path in others.into_iter().chain(texts) {
        let folder = Path::new(path).parent();
        let is_beside = |other: &String| {
            let is_neighbour = Path::new(other).parent() == folder && !groups.is_numbered(other);
            // A checkpoint goes back as a whole.
            !groups.is_same(path, other)
                && ((is_neighbour && is_rewritten(record, groups, path)) || saved.is_one(path, other))
        };
        let beside = || back.iter().filter(|(other, _)| *other != path && is_beside(other));
        let file = checkpoints.join(path);
        if beside().next().is_none() || is_database(disk, &file) {
            continue;
        }
        let Ok(stamp) = disk.stamp(&file) else { continue };
        let is_text = is_small_text(disk, &file, stamp.bytes);
        let are_of_one_seal = |sealed| beside().all(|other| saved.are_of_one((path, sealed), *other));
        let is_back = back.iter().find(|(other, _)| *other == path).map(|(_, sealed)| *sealed);
        let is_ahead = |modified_ns: i64| beside().any(|(_, sealed)| is_later(modified_ns, sealed.stamp.modified_ns));
        let is_other = |other: &str| other != path && Path::new(other).parent() == folder;
        let stays = |other: &str| {
            let is_back = back.iter().map(|(path, _)| path.as_str()).any(|path| path == other);
            let goes = found.iter().any(|(path, partner)| path == other && *partner != Partner::Unsure);
            is_other(other) && !is_back && !goes
        };
        let is_ahead_of = |other: &String| saved.is_ahead(path, &stamp, other);
        let unmatched = if beside().any(|(other, _)| is_ahead_of(other)) { Partner::Ahead } else { Partner::Unsure };
        let partner = match is_back.or_else(|| record.kept.get(path)) {
            _ if is_text && (is_back.is_some() || counts_one(disk, checkpoints, files, path, &stays)) => None,
            Some(kept) if is_text && (are_of_one_seal(kept) || !is_ahead(kept.stamp.modified_ns)) => {
                let is_newer = hash(disk, &file, stamp.bytes)? != kept.sha256;
                let to = if is_intact(disk, &kept_path(own, path), kept)? { Partner::Back } else { Partner::Ahead };
                is_newer.then_some(to)
            }
            _ if is_text => is_ahead(stamp.modified_ns).then_some(Partner::Ahead),
            _ if beside().all(|other| saved.is_as_sealed(path, &stamp, *other)) => None,
            Some(kept) if hash(disk, &file, stamp.bytes)? == kept.sha256 => {
                (!are_of_one_seal(kept)).then_some(unmatched)
            }
            Some(kept) if are_of_one_seal(kept) => {
                let is_intact = is_intact(disk, &kept_path(own, path), kept)?;
                Some(if is_intact { Partner::Back } else { unmatched })
            }
            Some(_) => Some(unmatched),
            None => {
                let is_newer = beside().any(|(_, sealed)| stamp.modified_ns > sealed.stamp.modified_ns);
                is_newer.then_some(unmatched)
            }
        };
        found.extend(partner.map(|partner| (path.clone(), partner)));
    }
    Ok(found)
}

/// Which files saves have rewritten together, as far as their versions show.
struct SavedWith<'a> {
    record: &'a Record,
    groups: &'a Groups,
    sealed: Saves,
    kept: Saves,
}

impl SavedWith<'_> {
    /// Whether saves rewrite both files. A file with a number is one of several checkpoints, unless the other one
    /// differs from it in its number only.
    fn is_one(&self, path: &str, other: &str) -> bool {
        let is_alike =
            || shape(path) == shape(other) || ![path, other].into_iter().any(|path| self.groups.is_numbered(path));
        (self.sealed.is_one(path, other) || self.kept.is_one(path, other)) && is_alike()
    }

    /// Whether two versions are of one save, or lay in their places at one seal.
    fn are_of_one(&self, one: (&String, &Sealed), other: (&String, &Sealed)) -> bool {
        let is_kept = |(path, sealed): (&String, &Sealed)| {
            self.record.kept.get(path).is_some_and(|kept| kept.sha256 == sealed.sha256)
        };
        let is_saved = || is_kept(one) && is_kept(other) && self.kept.is_one(one.0, other.0);
        self.record.are_of_one_seal(one, other) || is_saved()
    }

    /// Whether the file at `path`, which has this `stamp`, and the `other` one, which went back, are both as one save
    /// had written them before the last seal.
    fn is_as_sealed(&self, path: &str, stamp: &Stamp, other: (&String, &Sealed)) -> bool {
        let sealed = |path: &str| self.record.files.get(path);
        sealed(path).is_some_and(|sealed| is_unchanged(stamp, &sealed.stamp))
            && sealed(other.0).is_some_and(|sealed| sealed.sha256 == other.1.sha256)
            && self.sealed.is_one(path, other.0)
    }

    /// Whether the file at `path`, which has this `stamp`, is of a later save than the `other` one, which went back.
    fn is_ahead(&self, path: &str, stamp: &Stamp, other: &str) -> bool {
        let versions = [(&self.sealed, &self.record.files), (&self.kept, &self.record.kept)];
        let is_rewritten = |(saves, versions): (&Saves, &Kept)| {
            saves.is_one(path, other) && !is_unchanged(stamp, &versions[path].stamp)
        };
        self.is_one(path, other) && (shape(path) == shape(other) || versions.into_iter().any(is_rewritten))
    }
}

/// Whether a text was written with a file that `stays`, and has a name that begins with that file's, such as
/// `best_score.json` next to `best.pt`. Times alone do not show that, because several files may be saved at once. Any
/// other text goes with what went back, because it may count that. A score that is too old costs less than steps that
/// no weights have seen.
fn counts_one(
    disk: &dyn Disk,
    checkpoints: &Path,
    files: &BTreeMap<String, Stamp>,
    path: &str,
    stays: &dyn Fn(&str) -> bool,
) -> bool {
    let modified_ns = files[path].modified_ns;
    let is_at_once = |other: i64| !is_later(modified_ns, other) && !is_later(other, modified_ns);
    files.iter().any(|(other, stamp)| {
        stays(other)
            && stem(path).starts_with(stem(other))
            && is_at_once(stamp.modified_ns)
            && disk.stamp(&checkpoints.join(other)).is_ok_and(|now| now == *stamp)
            && has_content(disk, &checkpoints.join(other), other, stamp.bytes)
    })
}

/// Whether a file may be rewritten under its name, and is no pointer or log.
fn is_rewritten(record: &Record, groups: &Groups, path: &str) -> bool {
    !groups.is_numbered(path) && !is_pointer_name(path) && !may_be_log(path, record.change(path))
}

/// The line for the log.
pub(crate) fn note(path: &str, partner: Partner) -> String {
    match partner {
        Partner::Back => is_back_too(path),
        Partner::Unsure => may_differ(path),
        Partner::Ahead => is_ahead(path),
    }
}

/// The short texts next to `lost` checkpoint files that are newer than everything else there from which a training
/// starts. They may count steps that no weights have seen.
pub(crate) fn counters_beside(
    disk: &dyn Disk,
    checkpoints: &Path,
    record: &Record,
    groups: &Groups,
    (files, lost): (&BTreeMap<String, Stamp>, &BTreeSet<String>),
) -> Vec<String> {
    let folder = |path: &str| Path::new(path).parent().map(Path::to_owned);
    let lost: BTreeSet<_> = lost.iter().map(|path| folder(path)).collect();
    let beside = files.keys().filter(|path| lost.contains(&folder(path)));
    let there: Vec<_> = beside.filter_map(|path| Some((path, disk.stamp(&checkpoints.join(path)).ok()?))).collect();
    let mut newest = BTreeMap::new();
    for (path, stamp) in &there {
        if has_content(disk, &checkpoints.join(path), path, stamp.bytes) {
            let newest = newest.entry(folder(path)).or_insert(i64::MIN);
            *newest = stamp.modified_ns.max(*newest);
        }
    }
    let is_counter = |path: &str, stamp: &Stamp| {
        is_rewritten(record, groups, path)
            && newest.get(&folder(path)).is_none_or(|left| is_later(stamp.modified_ns, *left))
            && is_small_text(disk, &checkpoints.join(path), stamp.bytes)
    };
    there.into_iter().filter(|(path, stamp)| is_counter(path, stamp)).map(|(path, _)| path.clone()).collect()
}

/// Whether a file was saved later than the `other` one, and not together with it.
fn is_later(modified_ns: i64, other: i64) -> bool {
    modified_ns > other.saturating_add(MOST_PAUSE_NS)
}
