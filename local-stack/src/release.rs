//! The programs of a release: for each processor a folder, or in a wheel one archive that is unpacked when it is needed.
//!
//! The functions have most of their code in common, so one archive of all takes a third of the space of a zip for each.

use std::fs::{self, File, Permissions};
use std::io::{self, Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lzma_rust2::XzReader;
use sha2::{Digest as _, Sha256};
use tar::Archive;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::package::BOOTSTRAP;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::hexadecimal;

/// The end of an archive's name. The name before it is Lambda's name of the processor.
const ENDING: &str = "tar.xz";
/// The length of an unpacked folder's name, a part of the archive's SHA-256.
const NAME_CHARS: usize = 16;

/// Returns the folder with the programs for a processor: `<release>/<processor>`, or what `<release>/<processor>.tar.xz`
/// has. An archive is unpacked once, below `cache`.
///
/// # Errors
/// The archive cannot be read, or its programs cannot be written.
pub fn programs(release: &Path, processor: &str, cache: &Path) -> Result<PathBuf, Failure> {
    let archive = release.join(format!("{processor}.{ENDING}"));
    if !archive.is_file() {
        return Ok(release.join(processor));
    }
    unpacked(&archive, &cache.join("programs")).context(|| format!("cannot unpack {}", archive.display()))
}

fn unpacked(archive: &Path, folder: &Path) -> io::Result<PathBuf> {
    let content = fs::read(archive)?;
    let hash = hexadecimal(&Sha256::digest(&content)[..NAME_CHARS / 2]);
    let to = folder.join(hash);
    if to.is_dir() {
        return Ok(to);
    }
    fs::create_dir_all(folder)?;
    let unfinished = tempfile::tempdir_in(folder)?;
    fs::set_permissions(unfinished.path(), Permissions::from_mode(0o755))?;
    Archive::new(XzReader::new(Cursor::new(content), false)).unpack(unfinished.path())?;
    // Another command may have unpacked it meanwhile.
    match fs::rename(unfinished.path(), &to) {
        Err(error) if !to.is_dir() => Err(error),
        _unpacked => Ok(to),
    }
}

/// Returns the zip with a function that Lambda takes. Equal programs have equal zips.
///
/// # Errors
/// The program cannot be read.
pub fn zipped(program: &Path) -> Result<Vec<u8>, Failure> {
    let zip = || {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().unix_permissions(0o755).compression_level(Some(9));
        zip.start_file(BOOTSTRAP, options.last_modified_time(zip::DateTime::default()))?;
        io::copy(&mut File::open(program)?, &mut zip)?;
        zip.flush()?;
        Ok::<_, io::Error>(zip.finish()?.into_inner())
    };
    zip().context(|| format!("cannot read {}", program.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lzma_rust2::{XzOptions, XzWriter};

    use super::*;

    #[test]
    fn an_archive_is_unpacked_once() {
        let release = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir().unwrap();
        let of = |processor| programs(release.path(), processor, cache.path()).unwrap();
        assert_eq!(of("x86_64"), release.path().join("x86_64"), "a folder is used as it is");
        let mut tar = tar::Builder::new(XzWriter::new(Vec::new(), XzOptions::default()).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o755);
        tar.append_data(&mut header, "sweep-upload", b"it".as_slice()).unwrap();
        fs::write(release.path().join("x86_64.tar.xz"), tar.into_inner().unwrap().finish().unwrap()).unwrap();
        let folder = of("x86_64");
        let program = folder.join("sweep-upload");
        assert_eq!(fs::read(&program).unwrap(), b"it");
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(of("x86_64"), folder);
        assert_eq!(fs::read_dir(cache.path().join("programs")).unwrap().count(), 1, "nothing unfinished is left");
        assert_eq!(zipped(&program).unwrap(), zipped(&program).unwrap());
        fs::write(release.path().join("x86_64.tar.xz"), "cut").unwrap();
        assert!(programs(release.path(), "x86_64", cache.path()).is_err());
    }
}
