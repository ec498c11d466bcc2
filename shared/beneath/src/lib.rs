//! Opens files below a folder that another user can write.
//!
//! The runner is root, and a training can put a link, a pipe or a device under any name in its folders, at any moment.
//! So a path there is opened from a handle of the folder, name by name, and a link on the way is an error. A file is
//! opened without waiting, and its kind is checked on the handle that is then read (open(2), `O_NOFOLLOW` and
//! `O_NONBLOCK`). openat2(2) does the same with one call, but kernels before 5.6 and some container runtimes refuse it.
//!
//! No other module of the runner and of the seal opens such paths: both `clippy.toml` files forbid `std::fs`.

mod change;
mod folder;
mod linked;
mod protected;
mod read;
mod status;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use folder::{Entry, Folder};
pub use protected::is_protected;
pub use read::read_regular;
pub use status::{Kind, Owner, Status, give_file};

/// The error for a path that is not what it has to be: a link is on the way, or a pipe, a device or a folder is in the
/// place of a file. It is not opened, so the error's kind is [`io::ErrorKind::NotFound`].
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} is not used: it, or a folder on the way to it, is a link, a pipe, a device or something else than expected"
)]
struct Odd(PathBuf);

/// Returns the error of an operation on such a path.
pub fn odd(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, Odd(path.to_owned()))
}

/// Whether an operation has failed because something that is no plain file or folder is at the path.
pub fn is_odd(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Odd>())
}
