//! Makes sure that only the runner can have written its own files on a workspace.
//!
//! Others may have changed a volume or snapshot that a person gives, and a training may write everything that belongs
//! to its user. So the runner checks two things before it reads anything there. Only the runner can change its own
//! names in the top folder, and only the runner has written its own folder.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use spotsweep_beneath::{Entry, Folder, Kind, Owner, Status};
use spotsweep_seal::{CHECKPOINTS, OWN};

use super::WorkspaceError;
use crate::log::say;

/// The training's folders in the runner's own folder.
const OF_THE_TRAINING: [&str; 2] = ["storage", "code"];
/// Only the owner of a name may remove or rename it (`S_ISVTX`, inode(7)).
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const OWNER_WRITES: u32 = 0o200;
const GROUP_WRITES: u32 = 0o020;
/// The mode of the runner's own folder.
const OWN_MODE: u32 = 0o755;
/// How many folders may have been renamed before.
const MOST_ASIDE: u32 = 1000;

/// Protects the runner's own files on the workspace at `point`, and makes its folder.
pub(crate) fn take_charge(point: &Path) -> Result<(), WorkspaceError> {
    let refused = |source| WorkspaceError::Charge(point.to_owned(), source);
    let top = Folder::trusted(point).map_err(refused)?;
    protect_names(&top).map_err(refused)?;
    if top.status(CHECKPOINTS.as_ref()).is_ok_and(|found| found.kind != Kind::Folder) {
        return Err(WorkspaceError::NoFolder(point.join(CHECKPOINTS)));
    }
    if let Ok(found) = top.status(OWN.as_ref())
        && !is_own(&top, &found).map_err(refused)?
    {
        let aside = put_aside(&top).map_err(refused)?;
        say(&format!(
            "{OWN} on the workspace has been changed by someone else: it is put aside as {}, and nothing in it is used",
            aside.display()
        ));
    }
    top.make_folder(OWN.as_ref()).and_then(|own| own.set_mode(OWN_MODE)).map_err(refused)
}

/// Gives the top folder to the runner, so that no other user can replace what belongs to the runner. A user that could
/// make names there still can.
fn protect_names(top: &Folder) -> io::Result<()> {
    let found = top.own_status()?;
    let uid = geteuid();
    let is_others = found.owner.uid != uid.as_raw();
    if is_others && !uid.is_root() {
        // Without privileges the training runs as the same user, so the two cannot be separated.
        return Ok(());
    }
    let for_owner = if is_others && found.mode & OWNER_WRITES != 0 { OTHERS_WRITE } else { 0 };
    let mode = found.mode | for_owner;
    let mode = if mode & (GROUP_WRITES | OTHERS_WRITE) == 0 { mode } else { mode | STICKY };
    top.give_to(Owner { uid: uid.as_raw(), gid: found.owner.gid })?;
    if mode == found.mode { Ok(()) } else { top.set_mode(mode) }
}

/// Whether only the runner has written the folder that was `found` under its name.
fn is_own(top: &Folder, found: &Status) -> io::Result<bool> {
    let uid = geteuid().as_raw();
    if found.kind != Kind::Folder || !found.is_writable_only_by(uid) {
        return Ok(false);
    }
    let is_plain = |Entry { name, status }: &Entry| match status.kind {
        Kind::Folder => OF_THE_TRAINING.iter().any(|own| name == own) || status.is_writable_only_by(uid),
        Kind::File => status.is_writable_only_by(uid),
        Kind::Link | Kind::Other => false,
    };
    Ok(top.folder(OWN.as_ref())?.entries()?.iter().all(is_plain))
}

/// Renames the file or folder that has the name of the runner's own folder; returns the new name.
fn put_aside(top: &Folder) -> io::Result<PathBuf> {
    let name = free_name(top, &format!("{OWN}-changed"))?;
    top.rename(OWN.as_ref(), &name).map(|()| name)
}

/// The path with the first number after it that gives an unused name.
pub(crate) fn free_name(folder: &Folder, path: &str) -> io::Result<PathBuf> {
    let mut names = (1..MOST_ASIDE).map(|count| PathBuf::from(format!("{path}-{count}")));
    let is_free = |name: &PathBuf| folder.status(name).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    names.find(is_free).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    const TRAINING: u32 = 43_210;

    /// How someone changes a workspace, and whether the runner's folder still counts as its own then.
    type Case = (&'static str, fn(&Path), bool);

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    const CASES: &[Case] = &[
        ("nothing", |_| (), true),
        ("the training's own folders", |own| mode(&own.join("storage"), 0o777), true),
        ("a folder that others may write", |own| mode(own, 0o777), false),
        ("a file that others may write", |own| mode(&own.join("seal.json"), 0o666), false),
        ("a folder in it that others may write", |own| mode(&own.join("kept"), 0o775), false),
        ("a link to a file", |own| symlink("/etc/passwd", own.join("train.log")).unwrap(), false),
        (
            "a link to a folder",
            |own| {
                fs::remove_dir(own.join("storage")).unwrap();
                symlink("/etc", own.join("storage")).unwrap();
            },
            false,
        ),
        (
            "a link in its own place",
            |own| {
                fs::rename(own, own.with_file_name("old")).unwrap();
                symlink("old", own).unwrap();
            },
            false,
        ),
        (
            "a file in its own place",
            |own| {
                fs::rename(own, own.with_file_name("old")).unwrap();
                fs::write(own, "").unwrap();
            },
            false,
        ),
    ];

    #[test]
    fn what_someone_else_has_changed_is_put_aside() {
        for (what, change, is_own) in CASES {
            let folder = tempfile::tempdir().unwrap();
            let own = folder.path().join(OWN);
            for name in ["storage", "kept", "torn"] {
                fs::create_dir_all(own.join(name)).unwrap();
                mode(&own.join(name), 0o755);
            }
            mode(&own, 0o755);
            fs::write(own.join("seal.json"), "{}").unwrap();
            mode(&own.join("seal.json"), 0o644);
            change(&own);
            take_charge(folder.path()).unwrap();
            assert_eq!(own.join("seal.json").exists(), *is_own, "{what}");
            assert_eq!(folder.path().join(".spotsweep-changed-1").symlink_metadata().is_err(), *is_own, "{what}");
            assert!(own.symlink_metadata().unwrap().is_dir(), "{what}");
            take_charge(folder.path()).unwrap();
            assert!(folder.path().join(".spotsweep-changed-2").symlink_metadata().is_err(), "{what}: once");
        }
    }

    #[test]
    fn checkpoints_are_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/tmp", folder.path().join(CHECKPOINTS)).unwrap();
        assert!(matches!(take_charge(folder.path()), Err(WorkspaceError::NoFolder(_))));
    }

    /// Runs as root only, because other users cannot give a folder away.
    #[test]
    fn names_in_a_folder_of_the_trainings_are_protected() {
        if !geteuid().is_root() {
            return;
        }
        // Owner and mode before, and the mode afterwards.
        for (uid, before, after) in [
            (0, 0o755, 0o755),
            (0, 0o777, 0o1777),
            (TRAINING, 0o755, 0o1757),
            (TRAINING, 0o555, 0o555),
            (0, 0o1777, 0o1777),
        ] {
            let folder = tempfile::tempdir().unwrap();
            mode(folder.path(), before);
            chown(folder.path(), Some(uid), None).unwrap();
            take_charge(folder.path()).unwrap();
            let found = fs::metadata(folder.path()).unwrap();
            assert_eq!((found.uid(), found.mode() & 0o7777), (0, after), "{uid} {before:o}");
            assert_eq!(fs::metadata(folder.path().join(OWN)).unwrap().uid(), 0);
        }
    }
}
