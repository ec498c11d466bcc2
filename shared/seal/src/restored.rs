//! Restores the collected checkpoint of another trial, from which a trial starts. It is put on the workspace once,
//! complete, before the training starts for the first time.
//!
//! Its files are fetched into a folder of the runner's own. When all are written out, the runner writes a mark. Only
//! then does one rename put the folder in the place of `checkpoints/`. If an attempt is lost on the way, there are
//! three cases. Without the mark, everything is fetched again. With the mark and the folder, the folder is moved. With
//! the mark alone, nothing is to be done, whatever the training has changed in its checkpoints since.

use std::io;
use std::path::{Path, PathBuf};

use crate::content::read;
use crate::disk::{Disk, write_whole};
use crate::record::NAME as SEAL;
use crate::{CHECKPOINTS, OWN};

/// The folder in the runner's own folder that collects the files.
const ASIDE: &str = "restoring";
/// The mark that all of the checkpoint is there; it names the trial of the checkpoint.
const MARK: &str = "restored";
/// The most bytes of a mark.
const MOST_BYTES: u64 = 4096;

/// What is left to do for a restoration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restoration {
    /// Nothing: the workspace has the checkpoint, or has had it.
    Done,
    /// The caller has to put its files into this folder, which may not exist yet.
    Into(PathBuf),
    /// The workspace was used before: it has the files of the volume's source.
    Occupied,
}

/// What is left to do on the workspace at `point` until it has the checkpoint `of` another trial. The folder that it
/// names has nothing of an earlier try. The mark of another restoration comes from the snapshot that the volume was
/// made from.
///
/// # Errors
/// If the workspace cannot be read or written.
pub fn restoration(disk: &dyn Disk, point: &Path, of: &str) -> io::Result<Restoration> {
    let own = point.join(OWN);
    let (checkpoints, aside) = (point.join(CHECKPOINTS), own.join(ASIDE));
    let begun = disk.files(&aside)?;
    if read(disk, &own.join(MARK), MOST_BYTES).is_ok_and(|mark| mark == of.as_bytes()) {
        if !begun.is_empty() {
            place(disk, point)?;
        }
        return Ok(Restoration::Done);
    }
    // With a seal of other files, the files of this checkpoint would count as unknown.
    if !disk.files(&checkpoints)?.is_empty() || disk.stamp(&own.join(SEAL)).is_ok() {
        return Ok(Restoration::Occupied);
    }
    if !begun.is_empty() {
        let links = disk.symbolic_links(&aside)?.into_iter().map(|(link, _)| link);
        for path in begun.keys().map(|path| aside.join(path)).chain(links) {
            disk.remove_file(&path)?;
        }
    }
    Ok(Restoration::Into(aside))
}

/// Makes the files in the folder that [`restoration`] has named the trial's checkpoints, when all are there. `of` is
/// the trial that they come from.
///
/// # Errors
/// If the workspace cannot be written.
pub fn restored(disk: &dyn Disk, point: &Path, of: &str) -> io::Result<()> {
    disk.sync_all(point)?;
    write_whole(disk, &point.join(OWN).join(MARK), of.as_bytes())?;
    place(disk, point)
}

fn place(disk: &dyn Disk, point: &Path) -> io::Result<()> {
    let checkpoints = point.join(CHECKPOINTS);
    match disk.remove_folder(&checkpoints) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    disk.rename(&point.join(OWN).join(ASIDE), &checkpoints)?;
    disk.sync_all(point)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use std::fs;

    use super::*;
    use crate::disk::MountedDisk;

    /// A workspace whose attempt was lost after so many of four steps; the training takes the last one.
    fn lost_after(steps: usize, point: &Path) {
        let (disk, own) = (MountedDisk::below(point), point.join(OWN));
        fs::create_dir_all(own.join(ASIDE).join("epoch-3")).unwrap();
        fs::create_dir(point.join(CHECKPOINTS)).unwrap();
        fs::write(own.join(ASIDE).join("epoch-3/part"), "half").unwrap();
        let ways: [&dyn Fn(); 4] = [
            &|| fs::write(own.join(ASIDE).join("epoch-3/model"), "whole").unwrap(),
            &|| fs::write(own.join(MARK), "s-1/3").unwrap(),
            &|| place(&disk, point).unwrap(),
            &|| fs::remove_dir_all(point.join(CHECKPOINTS).join("epoch-3")).unwrap(),
        ];
        ways.iter().take(steps).for_each(|step| step());
    }

    #[test]
    fn wherever_an_attempt_is_lost_the_checkpoint_is_restored_once() {
        let aside = Path::new(OWN).join(ASIDE);
        for steps in 0..=4 {
            let folder = spotsweep_needs::scratch();
            let point = folder.path();
            lost_after(steps, point);
            let disk = MountedDisk::below(point);
            let left = restoration(&disk, point, "s-1/3").unwrap();
            let checkpoint = point.join(CHECKPOINTS).join("epoch-3/model");
            if steps < 2 {
                assert_eq!(left, Restoration::Into(point.join(&aside)), "{steps}");
                assert_eq!(disk.files(&point.join(&aside)).unwrap().len(), 0, "{steps}");
                assert!(!checkpoint.exists(), "nothing incomplete is in its place");
                fs::write(point.join(&aside).join("epoch-3/model"), "whole").unwrap();
                restored(&disk, point, "s-1/3").unwrap();
            } else {
                assert_eq!(left, Restoration::Done, "{steps}");
            }
            assert_eq!(checkpoint.exists(), steps < 4, "{steps}: what the training has removed stays removed");
            assert!(!point.join(&aside).exists(), "{steps}");
            assert_eq!(restoration(&disk, point, "s-1/3").unwrap(), Restoration::Done, "{steps}");
        }
    }

    #[test]
    fn a_workspace_that_was_used_before_is_left_as_it_is() {
        let cases: [(&str, &str); 4] = [
            ("checkpoints/base.pt", "b"),
            (".spotsweep/seal.json", "{}"),
            (".spotsweep/restored", ""),
            (".spotsweep/restored", "s-0/7"),
        ];
        for (path, content) in cases {
            let folder = spotsweep_needs::scratch();
            fs::create_dir(folder.path().join(CHECKPOINTS)).unwrap();
            fs::create_dir(folder.path().join(OWN)).unwrap();
            fs::write(folder.path().join(path), content).unwrap();
            let left = restoration(&MountedDisk::below(folder.path()), folder.path(), "s-1/3").unwrap();
            let is_mark = path.ends_with(MARK);
            assert_eq!(left == Restoration::Occupied, !is_mark, "{path} {left:?}");
            assert_ne!(left, Restoration::Done, "{path}: the mark of another trial, or of none");
        }
    }
}
