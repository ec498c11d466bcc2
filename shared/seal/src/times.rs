//! Corrects the times of the files that an attempt finds.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::content::hash;
use crate::disk::{Disk, Stamp};
use crate::kept::may_be_mixed;
use crate::names::is_numbered;
use crate::record::Record;

/// Sets the time of a file back that has the content of its sealed version and may have been overwritten in place. A lost
/// instance may have written out the new time of such a file, but not its content. By that time, the file would seem to
/// be newer than it is, and of another save.
pub(crate) fn correct_times(
    disk: &dyn Disk,
    folder: &Path,
    seal: &Record,
    found: &mut BTreeMap<String, Stamp>,
) -> io::Result<()> {
    for (path, sealed) in seal.versions() {
        let Some(now) = found.get_mut(path) else { continue };
        let (file, then) = (folder.join(path), sealed.stamp.modified_ns);
        let may_be_same = now.bytes == sealed.stamp.bytes && now.modified_ns != then;
        if may_be_same
            && may_be_mixed(disk, folder, path, (seal, is_numbered(path)))?
            && hash(disk, &file, now.bytes)? == sealed.sha256
        {
            disk.set_modified(&file, then)?;
            now.modified_ns = then;
        }
    }
    Ok(())
}
