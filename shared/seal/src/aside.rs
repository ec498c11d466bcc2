//! Checkpoints in quarantine: the training does not find them, but a person does.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::database::with_beside;
use crate::disk::{Disk, Stamp};
use crate::groups::Group;
use crate::logs::is_log;
use crate::record::Record;

/// The quarantine folder in the runner's own folder.
pub(crate) const TORN: &str = "torn";

/// The ending of the name of a folder there that has the files that a restored file replaced.
pub(crate) const REPLACED: &str = "-replaced";

/// The same for a folder that has what a rollback has moved.
pub(crate) const ROLLBACK: &str = "-rollback";

/// The files that were quarantined as incomplete, by path below `checkpoints/`. If there are several versions of one,
/// the newest counts. What a rollback has moved may be complete.
pub(crate) fn incomplete(disk: &dyn Disk, own: &Path) -> io::Result<BTreeMap<String, Stamp>> {
    let is_other = |folder: &str| folder.contains(ROLLBACK) || folder.contains(REPLACED);
    let files = disk.files(&own.join(TORN))?.into_iter();
    let mut found: Vec<(String, Stamp)> = files
        .filter_map(|(path, stamp)| {
            let (folder, path) = path.split_once('/')?;
            (!is_other(folder)).then(|| (path.to_owned(), stamp))
        })
        .collect();
    found.sort_by_key(|(_, stamp)| stamp.modified_ns);
    Ok(found.into_iter().collect())
}

/// The name of an empty folder in quarantine: `name`, or one that begins with it. A retry counts its attempts from 1,
/// in a workspace that has the folders of an earlier trial.
pub(crate) fn unused(disk: &dyn Disk, own: &Path, name: &str) -> io::Result<String> {
    let is_empty = |name: &str| disk.files(&own.join(TORN).join(name)).map(|files| files.is_empty());
    let (mut found, mut count) = (name.to_owned(), 1);
    while !is_empty(&found)? || !is_empty(&format!("{found}{REPLACED}"))? {
        count += 1;
        found = format!("{name}-{count}");
    }
    Ok(found)
}

/// Moves all files of the checkpoint `group` except logs next to others.
pub(crate) fn put_group_aside(
    disk: &dyn Disk,
    checkpoints: &Path,
    aside: &Path,
    group: &Group,
    record: &Record,
) -> io::Result<()> {
    let mut places = places(group, record).flat_map(|place| with_beside(disk, checkpoints, place));
    places.try_for_each(|place| put_aside(disk, checkpoints, aside, &place).map(|_is_moved| ()))
}

/// The files or the folder of the checkpoint `group` that are moved.
pub(crate) fn places<'a>(group: &'a Group, record: &'a Record) -> impl Iterator<Item = &'a str> {
    group.places().into_iter().filter(|path| !is_log(path, record.change(path)))
}

/// Moves the file or folder `name` of `checkpoints` to the folder `aside`; false if it is gone.
pub(crate) fn put_aside(disk: &dyn Disk, checkpoints: &Path, aside: &Path, name: &str) -> io::Result<bool> {
    let source = checkpoints.join(name);
    match disk.rename(&source, &aside.join(name)) {
        // It was moved with its folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        renamed => renamed?,
    }
    // An empty folder may look like a checkpoint. One that is not empty stays.
    let folders = source.ancestors().skip(1).take_while(|folder| *folder != checkpoints);
    let _first_that_stays = folders.map(|folder| disk.remove_folder(folder)).find(Result::is_err);
    Ok(true)
}
