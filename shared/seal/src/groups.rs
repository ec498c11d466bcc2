//! Finds out which files make up one checkpoint.
//!
//! A training writes all files of a checkpoint at once, and trains for longer before the next one. So the times of
//! files show which numbers in their paths belong to checkpoints and which to parts: ranks, shards. Runs and the folds
//! of a cross-validation are no checkpoints: the time between two of their files is as long as between two of them. A
//! first checkpoint gives no such evidence, so its names decide.

mod bursts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::bursts::{MOST_PAUSE_NS, Written, are_of_one_save, is_next, written};
use crate::disk::Stamp;
use crate::groups::bursts::{Evidence, Key, Way, confirmed};
use crate::names::{checkpoint, digit_runs, file_name, integers, is_library_log, is_numbered, number, stem};
use crate::shape::shape;

/// One checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// A path, or a pattern of several: `checkpoint_4-shard*.pt`.
    pub(crate) name: String,
    /// Whether it consists of everything below the folder of its name.
    pub(crate) is_folder: bool,
    /// The paths of its files.
    pub(crate) members: BTreeSet<String>,
}

impl Group {
    /// Its folder, or its files if it is no folder.
    pub(crate) fn places(&self) -> Vec<&str> {
        if self.is_folder { vec![&self.name] } else { self.members.iter().map(String::as_str).collect() }
    }

    /// All numbers of its name.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        values(&self.name)
    }

    /// Whether it is one file.
    pub(crate) fn is_file(&self) -> bool {
        !self.is_folder && self.members.len() == 1
    }
}

/// Files, divided into checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    /// The place of each file's checkpoint in `all`, by path.
    by_path: BTreeMap<String, usize>,
    /// The same for the folders that are a checkpoint as a whole.
    by_folder: BTreeMap<String, usize>,
    /// Files with numbers that are rewritten under their names.
    rewritten: BTreeSet<String>,
}

/// The property that all files of one checkpoint share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    /// They lie below this folder.
    Folder(String),
    /// The numbers in the last part of their paths up to some depth, and the path of its folder or the shape of that
    /// path.
    Numbers(usize, String, Vec<u64>),
    /// Their shape, and the file that was written first.
    Written(String, String),
    /// Their shape: each save rewrites them.
    Parts(String),
    /// It is one file.
    File(String),
}

/// The possible names of each checkpoint, and its files.
type Divided<'a> = BTreeMap<Common, (BTreeSet<String>, BTreeSet<&'a str>)>;

impl Groups {
    /// Divides `files`: those in the checkpoint folder, and those that are kept. If a path occurs again, the first one
    /// counts.
    pub(crate) fn of<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> Self {
        Self::by(files, &[Evidence::Bursts], BTreeSet::new())
    }

    /// The same, where the numbers in the names of `parts` are those of parts that each save rewrites.
    pub(crate) fn with_parts<'a>(files: impl Iterator<Item = (&'a str, Stamp)>, parts: BTreeSet<String>) -> Self {
        Self::by(files, &[Evidence::Bursts], parts)
    }

    /// The same for what is to be kept. Too much does less harm here than too little, so files that may be one
    /// checkpoint are one. So the first one of a training is kept completely, too.
    pub(crate) fn to_keep<'a>(files: impl Iterator<Item = (&'a str, Stamp)>, parts: BTreeSet<String>) -> Self {
        Self::by(files, &[Evidence::Bursts, Evidence::Order], parts)
    }

    fn by<'a>(
        files: impl Iterator<Item = (&'a str, Stamp)>,
        evidence: &[Evidence],
        rewritten: BTreeSet<String>,
    ) -> Self {
        let mut left = BTreeMap::<&str, Written>::new();
        for (path, Stamp { bytes, modified_ns: at, .. }) in files.filter(|(path, _)| !is_library_log(path)) {
            left.entry(path).or_insert(Written { at, bytes, path });
        }
        let mut groups = Divided::new();
        let mut add = |common: Common, label: String, files: &[&'a str]| {
            let (labels, members) = groups.entry(common).or_default();
            labels.insert(label);
            members.extend(files);
        };
        for (path, _) in left.extract_if(.., |path, _| rewritten.contains(*path)) {
            add(Common::Parts(shape(path)), path.to_owned(), &[path]);
        }
        for evidence in evidence {
            for (way, values) in confirmed(&left.values().copied().collect::<Vec<_>>(), *evidence) {
                for files in values.into_values() {
                    let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
                    for path in &paths {
                        left.remove(path);
                    }
                    add(common(&way, &paths), pattern(&paths, way.depth), &paths);
                }
            }
        }
        let mut named = by_name(&left);
        if evidence.contains(&Evidence::Order) {
            together_at_once(&mut named, &left);
            counted_at_once(&mut named, &left);
        }
        for (common, path) in named {
            let label = if let Common::Folder(folder) = &common { folder.clone() } else { path.to_owned() };
            add(common, label, &[path]);
        }
        Self::with_names(groups, rewritten)
    }

    fn with_names(groups: Divided, rewritten: BTreeSet<String>) -> Self {
        let mut found = Self { rewritten, ..Self::default() };
        let mut names = BTreeSet::new();
        for (common, (labels, members)) in groups {
            let members: BTreeSet<String> = members.into_iter().map(str::to_owned).collect();
            let place = found.all.len();
            found.by_path.extend(members.iter().map(|path| (path.clone(), place)));
            let mut name = together(&labels);
            let is_folder = matches!(common, Common::Folder(_));
            if let Common::Folder(folder) = common {
                found.by_folder.insert(folder.clone(), place);
                name = folder;
            }
            if let Some(first) = members.first().filter(|_| !names.insert(name.clone())) {
                name.clone_from(first);
            }
            found.all.push(Group { name, is_folder, members });
        }
        found
    }

    /// The checkpoint of a file, also of one in a folder that is a checkpoint.
    pub(crate) fn group(&self, path: &str) -> Option<&Group> {
        let in_folder = || path.match_indices('/').find_map(|(end, _)| self.by_folder.get(&path[..end]));
        self.by_path.get(path).or_else(in_folder).map(|place| &self.all[*place])
    }

    /// The checkpoint with a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Group> {
        self.all.iter().find(|group| group.name == name)
    }

    /// The name of the checkpoint of a file.
    pub(crate) fn name<'a>(&'a self, path: &'a str) -> &'a str {
        self.group(path).map_or_else(|| checkpoint(path), |group| &group.name)
    }

    /// The folder that is the checkpoint of a file, or else the file.
    pub(crate) fn place<'a>(&'a self, path: &'a str) -> &'a str {
        self.group(path).map_or_else(|| checkpoint(path), |group| if group.is_folder { &group.name } else { path })
    }

    /// Whether a file belongs to one checkpoint of several, so that the next one does not overwrite it.
    pub(crate) fn is_numbered(&self, path: &str) -> bool {
        let has_number = || is_numbered(path) || self.group(path).is_some_and(|group| !group.is_file());
        !self.rewritten.contains(path) && has_number()
    }

    /// Whether a checkpoint consists of parts that each save rewrites.
    pub(crate) fn has_parts(&self, group: &Group) -> bool {
        !group.is_file() && group.members.iter().any(|path| !self.is_numbered(path))
    }

    /// Whether two files make up one checkpoint.
    pub(crate) fn is_same(&self, one: &str, other: &str) -> bool {
        one == other || self.group(one).zip(self.group(other)).is_some_and(|(one, other)| std::ptr::eq(one, other))
    }

    /// The checkpoints of `files` with their members among these, the most recently modified first. If several have the
    /// same time, the last by name comes first.
    pub(crate) fn newest_first<'a>(
        &'a self,
        files: impl Iterator<Item = (&'a str, Stamp)>,
    ) -> Vec<(&'a Group, BTreeSet<&'a str>)> {
        let mut found = BTreeMap::<usize, (i64, BTreeSet<&str>)>::new();
        for (path, stamp) in files {
            let Some(place) = self.by_path.get(path) else { continue };
            let (modified, members) = found.entry(*place).or_insert((i64::MIN, BTreeSet::new()));
            *modified = stamp.modified_ns.max(*modified);
            members.insert(path);
        }
        let mut ordered: Vec<_> = found.into_iter().map(|(place, found)| (&self.all[place], found)).collect();
        ordered.sort_by_key(|(group, (modified, _))| std::cmp::Reverse((*modified, &group.name)));
        ordered.into_iter().map(|(group, (_, members))| (group, members)).collect()
    }

    /// The name of the most recently modified checkpoint of `files`.
    pub(crate) fn newest<'a>(&'a self, files: impl Iterator<Item = (&'a str, Stamp)>) -> Option<&'a str> {
        self.newest_first(files).first().map(|(group, _)| &*group.name)
    }
}

/// The property that the files at `paths` share. They have one value of the key of `way`.
fn common<'a>(way: &Way, paths: &[&'a str]) -> Common {
    let first = prefix(paths[0], way.depth);
    let numbers = values(file_name(first));
    let numbers = match way.key {
        Key::Folder => return Common::Folder(first.to_owned()),
        Key::Number(place) => numbers[place..=place].to_vec(),
        Key::First(count) => numbers[..count].to_vec(),
    };
    let folder = |path: &'a str| &path[..path.len() - file_name(path).len()];
    let is_one = paths.iter().all(|path| folder(prefix(path, way.depth)) == folder(first));
    let folder = if is_one { folder(first).to_owned() } else { shape(folder(first)) };
    let depth = if first.len() == paths[0].len() { usize::MAX } else { way.depth };
    Common::Numbers(depth, folder, numbers)
}

/// Groups files by their names if their times show nothing. A folder that is named like a checkpoint is one. Files
/// next to each other with the same number are one, such as `model-4.pt` and `optimizer-4.pt`. They are not if only
/// some of the older ones have all of them, such as `best-4.pt`.
fn by_name<'a>(files: &BTreeMap<&'a str, Written<'a>>) -> Vec<(Common, &'a str)> {
    let mut found = Vec::new();
    let mut folders = BTreeMap::<&str, BTreeMap<u64, Vec<&str>>>::new();
    for path in files.keys() {
        let folder = checkpoint(path);
        match number(path).and_then(|number| number.parse().ok()) {
            _ if folder != *path => found.push((Common::Folder(folder.to_owned()), *path)),
            Some(number) => {
                let folder = &path[..path.len() - file_name(path).len()];
                folders.entry(folder).or_default().entry(number).or_default().push(path);
            }
            None => found.push((Common::File((*path).to_owned()), *path)),
        }
    }
    for (folder, numbers) in folders {
        let mut by_time: Vec<_> = numbers.iter().collect();
        by_time.sort_by_key(|(_, paths)| paths.iter().map(|path| files[path].at).max());
        let is_one = are_checkpoints(by_time.into_iter().map(|(_, paths)| &**paths));
        for (number, path) in numbers.iter().flat_map(|(number, paths)| paths.iter().map(|path| (*number, *path))) {
            let numbers = || Common::Numbers(usize::MAX, folder.to_owned(), vec![number]);
            found.push((if is_one { numbers() } else { Common::File(path.to_owned()) }, path));
        }
    }
    found
}

/// Joins numbered files that may be parts of one checkpoint: those of a folder with a number, and those next to each
/// other with several numbers, which were written right after each other.
fn together_at_once<'a>(named: &mut [(Common, &'a str)], files: &BTreeMap<&'a str, Written<'a>>) {
    let mut counts = BTreeMap::<Common, usize>::new();
    named.iter().for_each(|(common, _)| *counts.entry(common.clone()).or_default() += 1);
    let has_number = |folder: &&str| integers(file_name(folder)).next().is_some();
    let kind = |common: &Common, path: &str| {
        let folder = path.match_indices('/').map(|(end, _)| &path[..end]).find(has_number);
        let beside = || (counts[common] == 1 && integers(file_name(path)).count() > 1).then_some(path);
        folder.or_else(beside).map(shape)
    };
    let mut kinds = BTreeMap::<String, Vec<(Written, &mut Common)>>::new();
    for (common, path) in named {
        if is_numbered(path)
            && !matches!(common, Common::Folder(_))
            && let Some(kind) = kind(common, path)
        {
            kinds.entry(kind).or_default().push((files[path], common));
        }
    }
    for (kind, mut parts) in kinds {
        parts.sort_by_key(|(file, _)| *file);
        let mut first: Option<Written> = None;
        let mut before: Option<Written> = None;
        for (file, common) in parts {
            first = first.filter(|_| before.is_some_and(|before| is_next(&before, &file))).or(Some(file));
            before = Some(file);
            *common = Common::Written(kind.clone(), first.map_or(file.path, |first| first.path).to_owned());
        }
    }
}

/// Joins files whose names differ in one number only, if they were written at once and that number counts them from 0 or
/// 1. They may be the parts of a first checkpoint. They may also be checkpoints that a training has saved that fast.
fn counted_at_once<'a>(named: &mut [(Common, &'a str)], files: &BTreeMap<&'a str, Written<'a>>) {
    let mut kinds = BTreeMap::<String, Vec<(Written, &mut Common)>>::new();
    for (common, path) in named {
        if matches!(common, Common::Numbers(..) | Common::File(_)) && is_numbered(path) {
            kinds.entry(shape(path)).or_default().push((files[path], common));
        }
    }
    for (kind, mut parts) in kinds {
        parts.sort_by_key(|(file, _)| *file);
        let paths: Vec<&str> = parts.iter().map(|(file, _)| file.path).collect();
        if parts.len() > 1 && parts.windows(2).all(|pair| is_next(&pair[0].0, &pair[1].0)) && are_counted(&paths) {
            let all = Common::Written(kind, paths[0].to_owned());
            parts.into_iter().for_each(|(_, common)| *common = all.clone());
        }
    }
}

/// Whether a number in these paths of one shape counts them, from 0 or 1.
fn are_counted(paths: &[&str]) -> bool {
    let numbers: Vec<Vec<u64>> = paths.iter().map(|path| values(path)).collect();
    (0..numbers[0].len()).any(|place| {
        let values: BTreeSet<u64> = numbers.iter().map(|numbers| numbers[place]).collect();
        [0, 1].into_iter().any(|first| values.iter().copied().eq(first..first + paths.len() as u64))
    })
}

/// Whether files by their numbers, oldest first, are checkpoints: each has files of the same names except for the
/// number. The newest may lack some.
fn are_checkpoints<'a>(by_time: impl Iterator<Item = &'a [&'a str]>) -> bool {
    let kinds = |paths: &[&str]| {
        let stems: BTreeSet<&str> = paths.iter().map(|path| stem(path)).collect();
        let shapes: BTreeSet<String> = stems.iter().map(|stem| shape(stem)).collect();
        // Names of one shape differ in another number.
        (stems.len() == shapes.len()).then_some(shapes)
    };
    let Some(mut kinds) = by_time.map(kinds).collect::<Option<Vec<_>>>() else { return false };
    let newest = kinds.pop().unwrap_or_default();
    let first = kinds.first().unwrap_or(&newest);
    kinds.iter().all(|kinds| kinds == first) && newest.is_subset(first)
}

/// The first parts of a path: one more than `depth`.
fn prefix(path: &str, depth: usize) -> &str {
    path.match_indices('/').nth(depth).map_or(path, |(end, _)| &path[..end])
}

/// The numbers of a name.
fn values(name: &str) -> Vec<u64> {
    integers(name).map(|number| number.parse().unwrap_or(u64::MAX)).collect()
}

/// The paths up to some depth as one, with `*` in place of each number that differs.
fn pattern(paths: &[&str], depth: usize) -> String {
    let prefixes: Vec<&str> = paths.iter().map(|path| prefix(path, depth)).collect();
    let runs = |path: &str| digit_runs(path).map(|run| path[run].to_owned()).collect::<Vec<_>>();
    let all: Vec<_> = prefixes.iter().map(|path| runs(path)).collect();
    let (mut pattern, mut end) = (String::new(), 0);
    for (place, run) in digit_runs(prefixes[0]).enumerate() {
        pattern.push_str(&prefixes[0][end..run.start]);
        end = run.end;
        let differs = all.iter().any(|runs| runs.get(place) != all[0].get(place));
        pattern.push_str(if differs { "*" } else { &prefixes[0][run] });
    }
    pattern + &prefixes[0][end..]
}

/// Several names as one: their common start and end, and `*` between.
fn together(labels: &BTreeSet<String>) -> String {
    let (Some(first), Some(last)) = (labels.first(), labels.last()) else { return String::new() };
    if labels.len() == 1 {
        return first.clone();
    }
    let start = first.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
    let ending = |label: &String| {
        let most = first.len().min(label.len()) - start;
        first.bytes().rev().zip(label.bytes().rev()).take(most).take_while(|(one, other)| one == other).count()
    };
    let end = first.len() - labels.iter().map(ending).min().unwrap_or(0);
    format!("{}*{}", &first[..first.floor_char_boundary(start)], &first[first.ceil_char_boundary(end)..])
}
