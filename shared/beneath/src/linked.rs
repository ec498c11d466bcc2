//! Opens files through links that stay below a folder.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, readlinkat};

use crate::folder::{Folder, at};
use crate::odd;
use crate::status::{Kind, Status};

/// The most links in a path, the same as Linux's (path_resolution(7)).
const MOST_LINKS: usize = 40;

impl Folder {
    /// Opens the regular file at `path` to read it. Links may lead to it, as long as each of them leads to something
    /// below this folder. `paths` are the paths by which absolute links name this folder. Every step starts from the
    /// handle of the one before, so a name that is swapped meanwhile cannot lead out.
    ///
    /// # Errors
    /// As open(2), or if a link leads out of the folder or to something other than a regular file.
    pub fn open_linked(&self, path: &Path, paths: &[PathBuf]) -> io::Result<File> {
        let mut ahead: Vec<OsString> = backwards(path, path)?;
        let mut entered: Vec<Folder> = Vec::new();
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == ".." {
                entered.pop().ok_or_else(|| odd(path))?;
                continue;
            }
            let here = entered.last().unwrap_or(self);
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry: OwnedFd = openat(&here.handle, &name, flags, Mode::empty()).map_err(|errno| at(errno, path))?;
            match Status::of_handle(&entry)?.kind {
                Kind::Folder => entered.push(Folder { handle: entry }),
                Kind::File if ahead.is_empty() => return here.open(Path::new(&name)),
                Kind::Link if links < MOST_LINKS => {
                    links += 1;
                    let target = readlinkat(&entry, "", Vec::new()).map_err(|errno| at(errno, path))?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    let mut below = target.as_path();
                    if target.is_absolute() {
                        let inside = paths.iter().find_map(|root| target.strip_prefix(root).ok());
                        below = inside.ok_or_else(|| odd(path))?;
                        entered.clear();
                    }
                    ahead.extend(backwards(below, path)?);
                }
                Kind::File | Kind::Link | Kind::Other => return Err(odd(path)),
            }
        }
        Err(odd(path))
    }
}

/// Returns the names of a path, the last first.
fn backwards(path: &Path, whole: &Path) -> io::Result<Vec<OsString>> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(Ok(name.to_owned())),
        Component::ParentDir => Some(Ok("..".into())),
        Component::CurDir => None,
        Component::RootDir | Component::Prefix(_) => Some(Err(odd(whole))),
    };
    path.components().rev().filter_map(name).collect()
}
