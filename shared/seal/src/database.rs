//! SQLite databases. A database is written in place. When it is opened, it recovers by itself from the files next to it
//! (<https://www.sqlite.org/fileformat2.html>, sections 1, 3 and 4). It does not recover without them or with those of
//! another version. So these files are no checkpoints: they are neither sealed nor kept, and move with their database.

use std::path::Path;

use spotsweep_checkpoint_formats::SQLITE;

use crate::disk::Disk;

/// The endings that the names of these files add to the database's name.
const ENDINGS: [&str; 3] = ["-journal", "-wal", INDEX];
/// The ending of a file without any content that the database lacks.
const INDEX: &str = "-shm";
/// The first bytes of these files.
const MARKS: [&[u8]; 4] =
    [&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7], b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\x18\xe2\x2d\0"];

/// Whether a file is a database.
pub(crate) fn is_database(disk: &dyn Disk, file: &Path) -> bool {
    start(disk, file).is_some_and(|start| start == SQLITE)
}

/// Whether the file at `path` below `folder` is one next to a database. The database may have no page yet, or its first
/// one may be lost.
pub(crate) fn is_beside_database(disk: &dyn Disk, folder: &Path, path: &str) -> bool {
    let Some(database) = ENDINGS.iter().find_map(|end| path.strip_suffix(end)) else { return false };
    match start(disk, &folder.join(database)) {
        Some(start) => start == SQLITE || start.iter().all(|byte| *byte == 0),
        None => {
            let has_mark = |start: Vec<u8>| MARKS.iter().any(|mark| start.starts_with(mark));
            start(disk, &folder.join(path)).is_some_and(has_mark)
        }
    }
}

/// The paths of the files next to the database at `path` below `folder`. Empty if it is no database.
pub(crate) fn beside(disk: &dyn Disk, folder: &Path, path: &str) -> Vec<String> {
    let is_there = |beside: &String| disk.stamp(&folder.join(beside)).is_ok();
    let names = ENDINGS.iter().map(|end| format!("{path}{end}"));
    names.filter(|beside| is_there(beside) && is_beside_database(disk, folder, beside)).collect()
}

/// The file or folder at `path` below `folder`, and the files that must move after it: they are of no use alone.
pub(crate) fn with_beside(disk: &dyn Disk, folder: &Path, path: &str) -> Vec<String> {
    std::iter::once(path.to_owned()).chain(beside(disk, folder, path)).collect()
}

/// Whether a part of the database at `path` may be next to it, so that the file alone is no complete version.
pub(crate) fn is_divided(disk: &dyn Disk, folder: &Path, path: &str) -> bool {
    let has_content = |beside: &String| disk.stamp(&folder.join(beside)).is_ok_and(|stamp| stamp.bytes > 0);
    beside(disk, folder, path).iter().any(|beside| !beside.ends_with(INDEX) && has_content(beside))
}

/// The first bytes of a file.
fn start(disk: &dyn Disk, file: &Path) -> Option<Vec<u8>> {
    let mut start = vec![0; SQLITE.len()];
    let count = disk.open(file).ok()?.read_at(&mut start, 0).ok()?;
    start.truncate(count);
    Some(start)
}
