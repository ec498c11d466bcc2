//! The patterns of a selection and of ignore files.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use spotsweep_beneath::{Folder, read_regular};

use crate::error::ListError;
use crate::left_out::Reason;

/// The ignore files of a folder. The later one decides.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".spotsweepignore"];

/// The most bytes of a file of git that has one path in it: twice the longest path.
const LONGEST_LINE: u64 = 8_192;

/// What a person has chosen, as patterns with the syntax of `.gitignore`, relative to the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Files that are sent although an ignore file or a rule of this crate would leave them out.
    pub include: Vec<String>,
    /// Files that are left out. They are left out even if `include` matches them.
    pub exclude: Vec<String>,
}

/// The patterns that count everywhere in the packed folder.
pub(crate) struct Rules {
    include: Gitignore,
    exclude: Gitignore,
    /// The names with which the matches of each `include` pattern begin. Empty if they can be anywhere.
    beginnings: Vec<Vec<String>>,
    /// The patterns of the repository around the folder. The later ones decide.
    pub(crate) around: Vec<Gitignore>,
}

impl Rules {
    pub(crate) fn new(folder: &Path, selection: &Selection) -> Result<Self, ListError> {
        let beginnings = selection.include.iter().map(|pattern| beginning(pattern)).collect();
        let include = patterns("", "`include`", &selection.include)?;
        let exclude = patterns("", "`exclude`", &selection.exclude)?;
        Ok(Self { include, exclude, beginnings, around: around(folder)? })
    }

    pub(crate) fn excluded(&self, path: &Path, is_folder: bool) -> Option<Reason> {
        match self.exclude.matched(path, is_folder) {
            Match::Ignore(glob) => Some(Reason::Excluded { pattern: glob.original().to_owned() }),
            Match::None | Match::Whitelist(_) => None,
        }
    }

    /// Whether `include` matches the path or a folder above it.
    pub(crate) fn includes(&self, path: &Path, is_folder: bool) -> bool {
        self.include.matched_path_or_any_parents(path, is_folder).is_ignore()
    }

    /// Whether `include` matches the path itself.
    pub(crate) fn includes_itself(&self, path: &Path, is_folder: bool) -> bool {
        self.include.matched(path, is_folder).is_ignore()
    }

    /// Whether `include` may match something below a folder.
    pub(crate) fn may_include_below(&self, folder: &Path) -> bool {
        let names = || folder.iter().filter_map(|name| name.to_str());
        self.beginnings.iter().any(|beginning| beginning.iter().zip(names()).all(|(one, other)| one == other))
    }
}

/// Returns the names before the first wildcard of a pattern that is bound to the folder, and nothing for another one.
fn beginning(pattern: &str) -> Vec<String> {
    let path = pattern.trim_end_matches('/');
    if !path.contains('/') {
        return Vec::new();
    }
    let names = path.trim_start_matches('/').split('/');
    names.take_while(|name| !name.contains(['*', '?', '[', '{', '\\'])).map(str::to_owned).collect()
}

/// Returns why the ignore files leave a path out. The last of `layers` that matches it decides.
pub(crate) fn ignored(layers: &[Gitignore], path: &Path, is_folder: bool) -> Option<Reason> {
    layers.iter().rev().find_map(|layer| match layer.matched(path, is_folder) {
        Match::None => None,
        Match::Whitelist(_) => Some(None),
        Match::Ignore(glob) => {
            let file = glob.from().unwrap_or(Path::new("an ignore file")).display().to_string();
            Some(Some(Reason::Ignored { file, pattern: glob.original().to_owned() }))
        }
    })?
}

/// Returns the patterns of the ignore files in an open folder, which is at `path`. `shown` is its path for people.
pub(crate) fn ignore_files(folder: &Folder, path: &Path, shown: &Path) -> Result<Vec<Gitignore>, ListError> {
    let mut layers = Vec::new();
    for name in IGNORE_FILES {
        layers.extend(ignore_file(folder, Path::new(name), path, &shown.join(name))?);
    }
    Ok(layers)
}

/// Returns the patterns of the ignore file `name` in an open folder. Its matches are below `root`. A link in its place
/// does not count, as in git.
fn ignore_file(folder: &Folder, name: &Path, root: &Path, shown: &Path) -> Result<Option<Gitignore>, ListError> {
    let failed = |source| ListError::Read { path: shown.display().to_string(), source };
    let mut text = Vec::new();
    match folder.open(name) {
        Ok(mut file) => file.read_to_end(&mut text).map_err(failed)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let text = String::from_utf8_lossy(&text);
    let lines = text.trim_start_matches('\u{feff}').lines();
    patterns(root, &shown.display().to_string(), lines).map(Some)
}

fn patterns<T: AsRef<str>>(
    root: impl AsRef<Path>,
    list: &str,
    lines: impl IntoIterator<Item = T>,
) -> Result<Gitignore, ListError> {
    let mut builder = GitignoreBuilder::new(root);
    let failed = |pattern: &str, error: &ignore::Error| {
        let (list, pattern) = (list.to_owned(), pattern.to_owned());
        ListError::Pattern { list, pattern, problem: error.to_string() }
    };
    for line in lines {
        let added = builder.add_line(Some(PathBuf::from(list)), line.as_ref());
        added.map_err(|error| failed(line.as_ref(), &error))?;
    }
    builder.build().map_err(|error| failed("all", &error))
}

/// Returns the patterns of the repository that the folder is in: first its `info/exclude`, then the ignore files from
/// its top down to the folder around this one.
fn around(folder: &Path) -> Result<Vec<Gitignore>, ListError> {
    let Some(top) = folder.ancestors().find(|path| path.join(".git").symlink_metadata().is_ok()) else {
        return Ok(Vec::new());
    };
    let open = |path: &Path| {
        let failed = |source| ListError::Read { path: path.display().to_string(), source };
        Folder::trusted(path).map_err(failed)
    };
    let mut layers = Vec::new();
    let git = repository(&top.join(".git"));
    if let Ok(opened) = Folder::trusted(&git) {
        let name = Path::new("info/exclude");
        layers.extend(ignore_file(&opened, name, top, &git.join(name))?);
    }
    let mut between: Vec<&Path> = folder.ancestors().skip(1).take_while(|path| path.starts_with(top)).collect();
    between.reverse();
    for path in between {
        layers.extend(ignore_files(&open(path)?, path, path)?);
    }
    Ok(layers)
}

/// Returns the folder of a repository's `info`. `.git` is a file in a worktree and in a submodule: it names the
/// worktree's own folder, and `commondir` there names the repository's (gitrepository-layout(5)).
fn repository(git: &Path) -> PathBuf {
    let Some(text) = line(git) else { return git.to_owned() };
    let own = git.parent().unwrap_or(Path::new("/")).join(text.trim_start_matches("gitdir:").trim());
    match line(&own.join("commondir")) {
        Some(common) => own.join(common),
        None => own,
    }
}

/// Returns the text of a file that has one path in it.
fn line(path: &Path) -> Option<String> {
    let text = String::from_utf8(read_regular(path, LONGEST_LINE).ok()?).ok()?;
    Some(text.trim().to_owned())
}
