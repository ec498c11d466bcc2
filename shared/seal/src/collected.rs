//! Collects the checkpoints of a training that has succeeded: many scripts leave their model only there.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_protocol::claim::Checkpoints;

use crate::content::{has_content, looks_torn, small_text};
use crate::database::beside;
use crate::disk::{Disk, Stamp};
use crate::files::{newest_group, walk};
use crate::groups::Groups;
use crate::names::{checkpoint, file_name, is_library_log, is_log_name, number};
use crate::pointers::names_one;
use crate::shape::shape;

/// The longest time between two parts of one checkpoint that ranks write side by side.
const MOST_PAUSE_NS: i64 = 5_000_000_000;

/// The files of a checkpoint folder that are to be collected, by their paths there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// All collected files. They are complete, as far as their formats show.
    pub files: BTreeSet<String>,
    /// The files from which a training can go on, with the small texts next to them and logs. Empty if a part may be
    /// missing: a script that does not find its file starts from the beginning without a message.
    pub newest: BTreeSet<String>,
    /// Symbolic links that lead to the newest checkpoint, with their targets.
    pub links: BTreeMap<String, String>,
}

/// The files of `folder` to collect. If no file holds more than a short text or a log, the newest of those counts as
/// the checkpoint.
///
/// # Errors
/// If the folder cannot be read.
pub fn collected(disk: &dyn Disk, folder: &Path, which: Checkpoints) -> io::Result<Collected> {
    if which == Checkpoints::None {
        return Ok(Collected::default());
    }
    let is_complete =
        |path: &str, stamp: Stamp| Ok::<_, io::Error>(!looks_torn(disk, &folder.join(path), stamp.bytes)?);
    let all = walk(disk, folder)?;
    let is_content = |path: &str, stamp: Stamp| has_content(disk, &folder.join(path), path, stamp.bytes);
    let content = all.iter().filter(|(path, stamp)| is_content(path, **stamp));
    let content: BTreeMap<_, _> = content.map(|(path, stamp)| (path.clone(), *stamp)).collect();
    // Library logs are no checkpoint, even if there is nothing else.
    let others = all.iter().filter(|(path, _)| !is_library_log(path));
    let others: BTreeMap<_, _> = others.map(|(path, stamp)| (path.clone(), *stamp)).collect();
    let mut newest = if content.is_empty() {
        newest_complete(&all, others.clone(), false, &is_complete)?
    } else {
        resumable(&all, &content, &is_complete)?
    };
    let mut links = BTreeMap::new();
    if !newest.is_empty() {
        let beside = Beside::of(&all, &newest);
        links = beside.links(disk, folder)?;
        newest.extend(beside.texts(disk, folder, &all));
        // The log rows that are there at the start are known to be another trial's. A script may write its whole
        // history again.
        newest.extend(all.keys().filter(|path| is_log_name(path)).cloned());
    }
    let bytes: u64 = newest.iter().map(|path| all[path].bytes).sum();
    if which.most_bytes().is_some_and(|most| bytes > most) {
        newest.clear();
        links.clear();
    }
    let mut files = newest.clone();
    if files.is_empty() {
        // If no training can go on from it, or it is too large, a person still wants the newest model.
        files = latest(&all, [&content, &others], &is_complete)?;
        files.extend(Beside::of(&all, &files).texts(disk, folder, &all));
    }
    if which == Checkpoints::All {
        for (path, stamp) in all {
            if is_complete(&path, stamp)? {
                files.insert(path);
            }
        }
    }
    for paths in [&mut files, &mut newest] {
        let beside: Vec<_> = paths.iter().flat_map(|path| beside(disk, folder, path)).collect();
        paths.extend(beside);
    }
    Ok(Collected { files, newest, links })
}

/// The name of the newest checkpoint among the `files` of a folder, as an attempt that finds them there names it.
/// `None` if all of them are texts.
///
/// # Errors
/// If the folder cannot be read.
pub fn newest_name(disk: &dyn Disk, folder: &Path, files: &BTreeSet<String>) -> io::Result<Option<String>> {
    let all = walk(disk, folder)?;
    let groups = Groups::of(all.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
    let content = all
        .iter()
        .filter(|(path, stamp)| files.contains(*path) && has_content(disk, &folder.join(path), path, stamp.bytes));
    Ok(groups.newest(content.map(|(path, stamp)| (path.as_str(), *stamp))).map(str::to_owned))
}

/// Only the files of the newest checkpoint.
fn latest(
    files: &BTreeMap<String, Stamp>,
    [content, others]: [&BTreeMap<String, Stamp>; 2],
    is_complete: &dyn Fn(&str, Stamp) -> io::Result<bool>,
) -> io::Result<BTreeSet<String>> {
    for (candidates, with_folder) in [(content, true), (content, false), (others, false)] {
        let newest = newest_complete(files, candidates.clone(), with_folder, is_complete)?;
        if !newest.is_empty() {
            return Ok(newest);
        }
    }
    Ok(BTreeSet::new())
}

/// The files from which a training can go on, whichever of them its script looks for. These are each file with content
/// that is written over, such as `last.pt`, and the newest checkpoint of each series, such as `epoch-3.pt`. An older
/// one replaces an incomplete one only if there is nothing else: a model of one step and an optimizer of another are no
/// checkpoint.
fn resumable(
    files: &BTreeMap<String, Stamp>,
    content: &BTreeMap<String, Stamp>,
    is_complete: &dyn Fn(&str, Stamp) -> io::Result<bool>,
) -> io::Result<BTreeSet<String>> {
    let belonging = Belonging::of(files);
    let (mut numbered, single): (Vec<_>, Vec<_>) = content.iter().partition(|(path, _)| belonging.is_numbered(path));
    let mut found = BTreeSet::new();
    for (path, stamp) in &single {
        if !is_complete(path, **stamp)? {
            return Ok(BTreeSet::new());
        }
        found.insert((*path).clone());
    }
    numbered.sort_by_key(|(path, stamp)| std::cmp::Reverse((stamp.modified_ns, *path)));
    let kinds: BTreeSet<String> = numbered.iter().map(|(path, _)| belonging.kind(path)).collect();
    let is_only = single.is_empty() && kinds.len() == 1;
    let (mut taken, mut incomplete) = (BTreeSet::<String>::new(), BTreeSet::<String>::new());
    for (path, _) in numbered {
        if taken.contains(&belonging.kind(path)) || incomplete.contains(path) {
            continue;
        }
        let checkpoint = belonging.with(path);
        if are_complete(&checkpoint, files, is_complete)? {
            taken.extend(checkpoint.iter().map(|path| belonging.kind(path)));
            found.extend(checkpoint);
        } else if is_only {
            incomplete.extend(checkpoint);
        } else {
            return Ok(BTreeSet::new());
        }
    }
    Ok(found)
}

/// Which files make up a checkpoint. Too many files do less harm here than too few.
struct Belonging<'a> {
    files: &'a BTreeMap<String, Stamp>,
    likely: Groups,
    possible: Groups,
    /// Files by the shapes of their paths.
    alike: BTreeMap<String, Vec<(&'a str, Stamp)>>,
}

impl<'a> Belonging<'a> {
    fn of(files: &'a BTreeMap<String, Stamp>) -> Self {
        let each = || files.iter().map(|(path, stamp)| (path.as_str(), *stamp));
        let mut alike = BTreeMap::<_, Vec<_>>::new();
        each().for_each(|(path, stamp)| alike.entry(shape(path)).or_default().push((path, stamp)));
        Self { files, likely: Groups::of(each()), possible: Groups::to_keep(each(), BTreeSet::new()), alike }
    }

    /// Each file such as `epoch=3-step=40.ckpt` is its own checkpoint. Otherwise all files of a fast training would be
    /// one.
    fn groups(&self, path: &str) -> &Groups {
        if is_checkpoint_name(path) { &self.likely } else { &self.possible }
    }

    /// Whether a file belongs to one checkpoint of several.
    fn is_numbered(&self, path: &str) -> bool {
        numbered_folder(path).is_some() || self.groups(path).is_numbered(path)
    }

    /// The part that the checkpoints of one series have in common.
    fn kind(&self, path: &str) -> String {
        shape(numbered_folder(path).unwrap_or_else(|| self.groups(path).place(path)))
    }

    /// All files of the checkpoint that contains a file, and all files in a numbered folder with one of them.
    fn with(&self, path: &str) -> BTreeSet<String> {
        let mut found = self.groups(path).group(path).map(|group| group.members.clone()).unwrap_or_default();
        found.extend(self.parts(path));
        found.insert(path.to_owned());
        let folders = found.iter().filter_map(|path| numbered_folder(path)).map(|folder| format!("{folder}/"));
        for folder in folders.collect::<BTreeSet<_>>() {
            let from_there = self.files.range(folder.clone()..).map(|(path, _)| path);
            found.extend(from_there.take_while(|path| path.starts_with(&folder)).cloned());
        }
        found
    }

    /// The files that differ from one only in a number that counts them and were written together with it, such as each
    /// rank's `random_states_0.pkl`. Empty if there are others like them, such as those of older checkpoints.
    fn parts(&self, path: &str) -> Vec<String> {
        if is_checkpoint_name(path) || numbered_folder(path).is_some() {
            return Vec::new();
        }
        let mut alike = self.alike.get(&shape(path)).cloned().unwrap_or_default();
        let numbers: BTreeSet<u64> = alike.iter().filter_map(|(path, _)| number(path)?.parse().ok()).collect();
        let is_counted = numbers.iter().zip(0..).all(|(number, place)| *number == place)
            || numbers.iter().zip(1..).all(|(number, place)| *number == place);
        alike.sort_by_key(|(_, stamp)| stamp.modified_ns);
        let pause = |pair: &[(&str, Stamp)]| pair[1].1.modified_ns.saturating_sub(pair[0].1.modified_ns);
        let at_once = alike.windows(2).all(|pair| pause(pair) <= MOST_PAUSE_NS);
        if numbers.len() != alike.len() || !is_counted || !at_once {
            return Vec::new();
        }
        alike.into_iter().map(|(path, _)| path.to_owned()).collect()
    }
}

/// Whether a file is named like a checkpoint and lies in no numbered folder.
fn is_checkpoint_name(path: &str) -> bool {
    let as_folder = format!("{}/", file_name(path));
    numbered_folder(path).is_none() && checkpoint(&as_folder) != as_folder
}

/// The files next to the newest checkpoint that lead to it. A script that finds its checkpoint by a pointer starts from
/// the beginning without them.
struct Beside {
    groups: Groups,
    /// The last parts of the names of the newest checkpoint's places, and of all others.
    newest: BTreeSet<String>,
    others: BTreeSet<String>,
    /// The folders on the way to it.
    folders: BTreeSet<PathBuf>,
}

impl Beside {
    fn of(files: &BTreeMap<String, Stamp>, newest: &BTreeSet<String>) -> Self {
        let groups = Groups::of(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
        let place = |path: &String| file_name(groups.place(path)).to_owned();
        let own: BTreeSet<String> = newest.iter().map(place).collect();
        let numbered = files.keys().filter(|path| groups.is_numbered(path));
        let others = numbered.map(place).filter(|name| !own.contains(name)).collect();
        let folders = newest.iter().flat_map(|path| Path::new(path).ancestors().skip(1)).map(Path::to_owned).collect();
        Self { groups, newest: own, others, folders }
    }

    /// Counters, pointers and configurations: small files that belong to no other checkpoint. A text that leads to
    /// another checkpoint does not count, nor does a log: all logs are collected anyway.
    fn texts(&self, disk: &dyn Disk, folder: &Path, files: &BTreeMap<String, Stamp>) -> Vec<String> {
        let is_one = |path: &str, stamp: &Stamp| {
            let is_near = Path::new(path).parent().is_some_and(|folder| self.folders.contains(folder));
            if !is_near || self.groups.is_numbered(path) || is_log_name(path) {
                return false;
            }
            let Some(text) = small_text(disk, &folder.join(path), stamp.bytes) else { return false };
            let names = |names: &BTreeSet<String>| names_one(&text, &|word| names.contains(word));
            names(&self.newest) || !names(&self.others)
        };
        files.iter().filter(|(path, stamp)| is_one(path, stamp)).map(|(path, _)| path.clone()).collect()
    }

    /// The links in each folder on the way to the newest checkpoint that lead to it or to such a folder.
    fn links(&self, disk: &dyn Disk, folder: &Path) -> io::Result<BTreeMap<String, String>> {
        let folders: BTreeSet<_> = self.folders.iter().filter_map(|folder| folder.file_name()).collect();
        let mut found = BTreeMap::new();
        for below in &self.folders {
            let links = disk.symbolic_links(&folder.join(below))?.into_iter().filter_map(|(link, target)| {
                let name = target.file_name()?;
                let leads = folders.contains(name) || self.newest.contains(name.to_str()?);
                let path = link.strip_prefix(folder).ok()?.to_str()?.to_owned();
                leads.then_some((path, target.to_str()?.to_owned()))
            });
            found.extend(links);
        }
        Ok(found)
    }
}

/// All files of the newest checkpoint that has no incomplete file. `candidates` decide which one is newer. If
/// `with_folder`, all files in a numbered folder with it belong to it, because a model without one of its files is
/// incomplete.
fn newest_complete(
    files: &BTreeMap<String, Stamp>,
    mut candidates: BTreeMap<String, Stamp>,
    with_folder: bool,
    is_complete: &dyn Fn(&str, Stamp) -> io::Result<bool>,
) -> io::Result<BTreeSet<String>> {
    let groups = Groups::of(files.iter().map(|(path, stamp)| (path.as_str(), *stamp)));
    loop {
        let mut group =
            newest_group(&groups, candidates.iter().map(|(path, stamp)| (path.as_str(), *stamp)), files.keys());
        let around = group.first().and_then(|path| numbered_folder(path)).filter(|_| with_folder).map(str::to_owned);
        if let Some(around) = around {
            group.extend(files.keys().filter(|path| Path::new(path).starts_with(&around)).cloned());
        }
        if are_complete(&group, files, is_complete)? {
            return Ok(group);
        }
        candidates.retain(|path, _| !group.contains(path));
    }
}

fn are_complete(
    paths: &BTreeSet<String>,
    files: &BTreeMap<String, Stamp>,
    is_complete: &dyn Fn(&str, Stamp) -> io::Result<bool>,
) -> io::Result<bool> {
    for path in paths {
        if !is_complete(path, files[path])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The outermost folder of a file that has a number in its name.
fn numbered_folder(path: &str) -> Option<&str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).find(|folder| number(folder).is_some())
}
