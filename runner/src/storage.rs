//! The storage folder of a trial: what the training leaves there is collected.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_beneath::{Folder, Owner, Status};

use crate::user::User;

/// The path of the folder, and the user who writes there.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    /// A folder whose path only the runner can change.
    base: PathBuf,
    /// The folder's path below `base`.
    name: PathBuf,
    /// Every path by which the training may name the folder.
    paths: Vec<PathBuf>,
    /// The user that the training runs as; `None` for the runner's own user.
    user: Option<User>,
}

impl Storage {
    /// The folder `name` below `base`, to which `path` leads. The training writes there as `user`.
    pub(crate) fn new(base: PathBuf, name: PathBuf, path: &Path, user: Option<User>) -> Self {
        let paths = vec![path.to_owned(), base.join(&name)];
        Self { base, name, paths, user }
    }

    /// Makes the folder, and gives it to `owner`.
    pub(crate) fn make(&self, owner: Option<Owner>) -> io::Result<()> {
        let folder = Folder::made(&self.base)?.make_folder(&self.name)?;
        owner.map_or(Ok(()), |owner| folder.give_to(owner))
    }

    /// The base folder, and the folder's path below it.
    pub(crate) fn place(&self) -> (&Path, PathBuf) {
        (&self.base, self.base.join(&self.name))
    }

    /// Opens the folder itself.
    pub(crate) fn open(&self) -> io::Result<Folder> {
        Folder::trusted(&self.base)?.folder(&self.name)
    }

    /// Opens a file of the folder for reading, also if links within the folder lead to it.
    pub(crate) fn open_file(&self, folder: &Folder, path: &Path) -> io::Result<File> {
        folder.open_linked(path, &self.paths)
    }

    /// Whether the training may read a file. The runner could read files of other users too, such as those of root to
    /// which a training makes a second name.
    pub(crate) fn is_the_trainings(&self, file: &Status) -> bool {
        self.user.as_ref().is_none_or(|user| user.can_read(file))
    }
}
