//! Writes files completely, or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use spotsweep_protocol::failure::{Context, Failure};

/// Writes a file. An earlier file of this name stays until the new one is complete.
pub(crate) fn whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let cannot_write = || format!("cannot write {}", path.display());
    let name = path.file_name().ok_or_else(|| Failure::usage(format!("{} is not a file", path.display())))?;
    let aside = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    // It never uses an existing file or a link, because it removes only what it has made.
    let mut file = fs::File::create_new(&aside).context(cannot_write)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // An error is ignored, because nothing more can be done.
        let _ = fs::remove_file(&aside);
    }
    written.context(cannot_write)
}
