//! Unpacks an archive into a folder that an earlier attempt of the training may have changed.

use std::io::{Read, Seek};
use std::path::Path;

use crate::content::Content;
use crate::error::UnpackError;
use crate::names::{self, MOST_ENTRIES};
use crate::place::Place;
use crate::reader::{Entry, Reader};

/// What an archive has, and what was in its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The number of files and links.
    pub files: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// Folders that were in the place of a file, or could not be opened: the path of each before and after it was
    /// moved aside.
    pub moved: Vec<(String, String)>,
}

/// Reads a whole archive and checks everything that [`unpack`] checks, without writing anything.
///
/// # Errors
/// As [`unpack`], without [`UnpackError::Write`].
pub fn verify(archive: impl Read, sha256: &str, limit_bytes: u64) -> Result<Unpacked, UnpackError> {
    let mut reader = Reader::new(archive, limit_bytes)?;
    let mut found = Unpacked::default();
    let mut paths = Vec::new();
    while let Some(entry) = reader.next()? {
        check(&entry)?;
        found.files += 1;
        found.bytes += entry.content.bytes();
        paths.push(entry.path);
        if paths.len() > MOST_ENTRIES {
            return Err(UnpackError::TooMany);
        }
    }
    reader.check_hash(sha256)?;
    check_apart(paths)?;
    Ok(found)
}

/// Unpacks an archive that [`crate::pack`] has written into the folder `into`, and makes that folder if it is missing.
/// `limit_bytes` is the most that the tar may have. Each file of the archive gets the archive's content, whatever is
/// in its place: a file or link there is removed, a folder is moved aside to `<path>.moved-<n>`. Other files stay.
/// Nothing is written before the whole archive is checked, and nothing outside `into`. Links in the path of `into`
/// itself are followed.
///
/// The files get the time of the unpacking and not the archive's, because Python recognizes an outdated `.pyc` file by
/// the time of its source.
///
/// # Errors
/// If the archive is damaged, too large, has another hash, or has an entry that [`crate::pack`] does not write; if a
/// file cannot be written, in which case some files may be written already.
pub fn unpack(
    mut archive: impl Read + Seek,
    sha256: &str,
    into: &Path,
    limit_bytes: u64,
) -> Result<Unpacked, UnpackError> {
    archive.rewind().map_err(UnpackError::Archive)?;
    let mut found = verify(&mut archive, sha256, limit_bytes)?;
    archive.rewind().map_err(UnpackError::Archive)?;
    let mut place = Place::new(into)?;
    let mut reader = Reader::new(&mut archive, limit_bytes)?;
    while let Some(entry) = reader.next()? {
        // Again, because the archive may have been changed meanwhile.
        check(&entry)?;
        place.put(&entry, &mut reader)?;
    }
    reader.check_hash(sha256)?;
    found.moved = place.moved;
    Ok(found)
}

fn check(entry: &Entry) -> Result<(), UnpackError> {
    let refused = |why| Err(UnpackError::Entry { path: names::escaped(entry.path.as_bytes()), why });
    if let Some(why) = names::problem(&entry.path) {
        return refused(why);
    }
    match &entry.content {
        Content::Link { target } if !names::stays_inside(&entry.path, target) => refused("it leads out of the folder"),
        Content::File { .. } | Content::Link { .. } => Ok(()),
    }
}

/// Checks that no path is there twice, and that none is below a file or a link.
fn check_apart(mut paths: Vec<String>) -> Result<(), UnpackError> {
    // With the separator before all other characters, what is below a path comes right after it.
    let order = |path: &String| path.bytes().map(|byte| if byte == b'/' { 0 } else { byte }).collect::<Vec<_>>();
    paths.sort_by_cached_key(order);
    for pair in paths.windows(2) {
        if let Some(rest) = pair[1].strip_prefix(&pair[0]) {
            let why = match rest {
                "" => "it is there twice",
                rest if rest.starts_with('/') => "it is below a file or a link",
                _ => continue,
            };
            return Err(UnpackError::Entry { path: pair[1].clone(), why });
        }
    }
    Ok(())
}
