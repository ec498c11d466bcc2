//! On resume: which checkpoints are what the seal says, and what to do about the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::disk::{Disk, Stamp};
use crate::files::{checkpoint, has_content, hash, looks_torn};
use crate::record::{Record, Sealed};

/// Files are read again, newest first, up to so many bytes: a volume that was made from a
/// snapshot fetches every block that is read for the first time from S3 (fact 25), and training
/// reads little more than the newest checkpoint. Beyond that, size and time must do.
const READ_AGAIN_BYTES: u64 = 1 << 30;

/// Whether a file can be trusted.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// As it was sealed.
    Sealed(Sealed),
    /// Written after the seal, and whole as far as it tells.
    Later,
    /// Not what it should be.
    Torn,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// Checkpoints (files or folders) that are to be put aside.
    pub(crate) torn: Vec<String>,
    /// Sealed files that are gone.
    pub(crate) missing: Vec<String>,
    /// The newest checkpoint that is left.
    pub(crate) newest: Option<String>,
    /// What is left of the seal.
    pub(crate) sealed: BTreeMap<String, Sealed>,
}

/// Looks at everything once; changes nothing.
pub(crate) struct Judge<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) folder: &'a Path,
    pub(crate) seal: Option<&'a Record>,
    /// Whether inodes are those that were sealed. On the local stack a workspace that has moved is
    /// a copy, file by file; a disk's blocks take their inodes with them.
    pub(crate) same_inodes: bool,
}

impl Judge<'_> {
    pub(crate) fn judge(&self, files: &BTreeMap<String, Stamp>) -> io::Result<Judgement> {
        let mut found = Judgement::default();
        let mut of_text = None;
        let mut bytes_read = 0;
        for (name, members) in newest_first(files) {
            let read_again = found.newest.is_none() || bytes_read < READ_AGAIN_BYTES;
            let mut sealed = Vec::new();
            let mut torn = false;
            for &path in &members {
                let stamp = files[path];
                match self.verdict(path, stamp, read_again)? {
                    Verdict::Sealed(file) => sealed.push((path.to_owned(), file)),
                    Verdict::Later => {}
                    Verdict::Torn => torn = true,
                }
                bytes_read += if read_again { stamp.bytes } else { 0 };
            }
            if torn {
                found.torn.push(name.to_owned());
                continue;
            }
            found.sealed.extend(sealed);
            let has_content = members.iter().any(|path| self.has_content(path, files[*path].bytes));
            let newest = if has_content { &mut found.newest } else { &mut of_text };
            newest.get_or_insert_with(|| name.to_owned());
        }
        // Marks, pointers and logs are no checkpoints, unless a training has nothing else.
        found.newest = found.newest.or(of_text);
        if let Some(seal) = self.seal {
            // While the command runs it removes old checkpoints, which is no loss as long as there are others.
            let gone = seal.files.keys().filter(|path| !files.contains_key(*path));
            let lost = seal.last || (found.newest.is_none() && found.torn.is_empty());
            found.missing = gone.filter(|_| lost).cloned().collect();
        }
        Ok(found)
    }

    fn has_content(&self, path: &str, bytes: u64) -> bool {
        has_content(self.disk, &self.folder.join(path), path, bytes)
    }

    fn verdict(&self, path: &str, stamp: Stamp, read_again: bool) -> io::Result<Verdict> {
        let file = self.folder.join(path);
        let by_itself = || Ok(if looks_torn(self.disk, &file, stamp.bytes)? { Verdict::Torn } else { Verdict::Later });
        let Some((seal, sealed)) = self.seal.and_then(|seal| Some((seal, seal.files.get(path)?))) else {
            return by_itself();
        };
        let (now, then) = (stamp, sealed.stamp);
        let same_inode = self.same_inodes && now.inode == then.inode;
        let untouched = now.bytes == then.bytes && now.modified_ns == then.modified_ns;
        let trusted = untouched && !read_again && (same_inode || !self.same_inodes);
        if trusted || (now.bytes == then.bytes && hash(self.disk, &file, now.bytes)? == sealed.sha256) {
            return Ok(Verdict::Sealed(Sealed { stamp: now, ..sealed.clone() }));
        }
        if seal.last {
            // Nobody has written since.
            return Ok(Verdict::Torn);
        }
        // The command went on after the seal: what differs from it is newer, not worse.
        if now.bytes == 0 && then.bytes > 0 { Ok(Verdict::Torn) } else { by_itself() }
    }
}

/// Checkpoints with their files, the most recently modified first.
pub(crate) fn newest_first(files: &BTreeMap<String, Stamp>) -> Vec<(&str, BTreeSet<&str>)> {
    let mut checkpoints = BTreeMap::<&str, (i64, BTreeSet<&str>)>::new();
    for (path, stamp) in files {
        let (modified, members) = checkpoints.entry(checkpoint(path)).or_insert((i64::MIN, BTreeSet::new()));
        *modified = stamp.modified_ns.max(*modified);
        members.insert(path);
    }
    let mut ordered: Vec<_> =
        checkpoints.into_iter().map(|(name, (modified, members))| (modified, name, members)).collect();
    ordered.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)));
    ordered.into_iter().map(|(_, name, members)| (name, members)).collect()
}
