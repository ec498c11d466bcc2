//! Lists which files of a folder are packed.

use std::path::{Path, PathBuf};

use spotsweep_beneath::Folder;

use crate::error::ListError;
use crate::listing::Listing;
use crate::rules::{Rules, Selection};
use crate::walk::Walk;
use crate::{data_sets, secrets};

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
    let (found, mut left_out) = Walk::new(&path, &rules).run(&root)?;
    let found = data_sets::leave_out(found, &mut left_out);
    let mut listing = secrets::leave_out(found, left_out, &root)?;
    listing.files.sort_by(|one, other| one.path.cmp(&other.path));
    listing.left_out.sort_by(|one, other| one.path.cmp(&other.path));
    listing.findings.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listing)
}
