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

/// What happens to a file that lies next to one that went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partner {
    /// Its kept version goes back, too.
    Back,
    /// It may be of another step, and no version of it is known to be of the same step.
    Unsure,
    /// It is a text that names a newer step and has no older version: it is quarantined.
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
    let back: Vec<_> = back.iter().filter(|(path, _)| !groups.is_numbered(path)).collect();
    // Texts come last, because one may belong to a file that stays.
    let is_short = |path: &&String| is_small_text(disk, &checkpoints.join(path), files[*path].bytes);
    let (texts, others): (Vec<_>, Vec<_>) = files.keys().partition(is_short);
    for path in others.into_iter().chain(texts) {
        let folder = Path::new(path).parent();
        let beside = || back.iter().filter(|(other, _)| *other != path && Path::new(other).parent() == folder);
        let file = checkpoints.join(path);
        if beside().next().is_none() || !is_rewritten(record, groups, path) || is_database(disk, &file) {
            continue;
        }
        let Ok(stamp) = disk.stamp(&file) else { continue };
        let is_text = is_small_text(disk, &file, stamp.bytes);
        let are_of_one_seal = |sealed| beside().all(|other| record.are_of_one_seal((path, sealed), *other));
        let is_back = back.iter().find(|(other, _)| *other == path).map(|(_, sealed)| *sealed);
        let is_ahead = |modified_ns: i64| beside().any(|(_, sealed)| is_later(modified_ns, sealed.stamp.modified_ns));
        let is_other = |other: &str| other != path && Path::new(other).parent() == folder;
        let stays = |other: &str| {
            let is_back = back.iter().map(|(path, _)| path.as_str()).any(|path| path == other);
            let goes = found.iter().any(|(path, partner)| path == other && *partner != Partner::Unsure);
            is_other(other) && !is_back && !goes
        };
        let partner = match is_back.or_else(|| record.kept.get(path)) {
            _ if is_text && (is_back.is_some() || counts_one(disk, checkpoints, files, path, &stays)) => None,
            Some(kept) if is_text && (are_of_one_seal(kept) || !is_ahead(kept.stamp.modified_ns)) => {
                let is_newer = hash(disk, &file, stamp.bytes)? != kept.sha256;
                let to = if is_intact(disk, &kept_path(own, path), kept)? { Partner::Back } else { Partner::Ahead };
                is_newer.then_some(to)
            }
            _ if is_text => is_ahead(stamp.modified_ns).then_some(Partner::Ahead),
            Some(kept) if hash(disk, &file, stamp.bytes)? == kept.sha256 => {
                (!are_of_one_seal(kept)).then_some(Partner::Unsure)
            }
            Some(kept) if are_of_one_seal(kept) => {
                let is_intact = is_intact(disk, &kept_path(own, path), kept)?;
                Some(if is_intact { Partner::Back } else { Partner::Unsure })
            }
            Some(_) => Some(Partner::Unsure),
            None => {
                let is_newer = beside().any(|(_, sealed)| stamp.modified_ns > sealed.stamp.modified_ns);
                is_newer.then_some(Partner::Unsure)
            }
        };
        found.extend(partner.map(|partner| (path.clone(), partner)));
    }
    Ok(found)
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
