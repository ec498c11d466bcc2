//! Which files of a folder are packed.

use std::io;
use std::path::{Path, PathBuf};

use spotsweep_beneath::{Folder, Kind, Status};

use crate::content::Content;
use crate::left_out::{Finding, LeftOut};
use crate::pack::PackError;
use crate::rules::Rules;
use crate::walk::Walk;
use crate::{data_sets, secrets};

/// The largest files that [`Listing::largest`] names.
const LARGEST: usize = 10;

/// What a person has chosen, as patterns with the syntax of `.gitignore`, relative to the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Files that are sent although an ignore file or a rule of this crate would leave them out.
    pub include: Vec<String>,
    /// Files that are left out. They are left out even if `include` matches them.
    pub exclude: Vec<String>,
}

/// Why a folder cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A folder or file cannot be read, or was removed meanwhile.
    #[error("`{path}` cannot be read: {source}; make it readable, or leave it out with `exclude` in the sweep file")]
    Read {
        /// The path, with control characters escaped.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A path that cannot be in an archive.
    #[error("`{path}` cannot be sent: {why}; rename it, or leave it out with `exclude` in the sweep file")]
    Name {
        /// The path, with control characters and bytes that are not UTF-8 escaped.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// A pattern that cannot be read.
    #[error("the pattern `{pattern}` of {list} cannot be read: {problem}; write it as in a .gitignore file")]
    Pattern {
        /// The ignore file, or `include` or `exclude`.
        list: String,
        /// The pattern.
        pattern: String,
        /// Why.
        problem: String,
    },
    /// More files than [`crate::MOST_ENTRIES`].
    #[error("the folder has more than 1 000 000 files to send; leave some out with `exclude` in the sweep file")]
    TooMany,
}

/// One file or link that is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The path in the folder, with `/` between the names.
    pub path: String,
    /// What is there.
    pub content: Content,
    /// When a file was modified, in nanoseconds since 1970. 0 for a link.
    pub modified_ns: i64,
}

impl Item {
    /// Whether an open file is still the listed one.
    pub(crate) fn is(&self, status: &Status) -> bool {
        status.kind == Kind::File && content_of(status) == self.content && status.modified_ns == self.modified_ns
    }

    pub(crate) fn changed(&self) -> PackError {
        PackError::Changed { path: self.path.clone() }
    }
}

/// Returns what is under the path of a regular file.
pub(crate) fn content_of(status: &Status) -> Content {
    Content::File { bytes: status.bytes, executable: status.mode & 0o100 != 0 }
}

/// The files of a folder that are packed, and those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "the findings have to be shown"]
pub struct Listing {
    /// The packed files and links, sorted by the bytes of their paths.
    pub files: Vec<Item>,
    /// What is left out, sorted by path. Of a folder that is left out only the folder itself is here.
    pub left_out: Vec<LeftOut>,
    /// Secrets in source files. The caller has to show them: those files are left out unless `include` names them, and
    /// without a source file the training probably fails. Also secrets of any kind that `include` sends.
    pub findings: Vec<Finding>,
}

impl Listing {
    /// Returns the bytes of all packed files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|item| item.content.bytes()).sum()
    }

    /// Returns the ten largest packed files, the largest first.
    pub fn largest(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.files.iter().collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.content.bytes()));
        items.truncate(LARGEST);
        items
    }
}

/// Lists which files of a folder are packed. The result depends on the folder, the repository around it and the
/// selection only, and not on the person's own configuration of git.
///
/// In a git repository the `.gitignore` and `.spotsweepignore` files from its top on count, and its
/// `.git/info/exclude`; elsewhere those from the folder on. A file that an ignore file names is left out even if it is
/// committed.
///
/// # Errors
/// If a folder or file cannot be read, a name cannot be in an archive, a pattern cannot be read, or there are too many
/// files.
pub fn list(folder: &Path, selection: &Selection) -> Result<Listing, ListError> {
    let failed = |source| ListError::Read { path: folder.display().to_string(), source };
    let path: PathBuf = folder.canonicalize().map_err(failed)?;
    let root = Folder::trusted(&path).map_err(failed)?;
    let rules = Rules::new(&path, selection)?;
    let (found, mut left_out) = Walk::new(&path, &rules)?.run(&root)?;
    let found = data_sets::leave_out(found, &mut left_out);
    let mut listing = secrets::leave_out(found, left_out, &root)?;
    listing.files.sort_by(|one, other| one.path.cmp(&other.path));
    listing.left_out.sort_by(|one, other| one.path.cmp(&other.path));
    listing.findings.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listing)
}
