//! Puts a process into a container: the machine's files in place of an image's, below a root folder of its own.
//!
//! The entries at the top of the machine's file system are mounted into the container's root folder. That folder then
//! becomes `/` in a mount namespace of the container. So `/dltraining`, `/storage` and its home belong to the
//! container, as on AWS. On the machine they are in that folder, and nothing is made outside of it. Changes below
//! `/tmp` and in the image's folder also go to a folder of the container.
//!
//! The program `spotsweep-container` does this between fork and exec, when it has one thread.

mod layer;
mod namespace;
mod root;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The `HOME` of a container: a folder that is empty at its start.
pub const HOME: &str = "/attempt-home";

/// The folders from which a container is made. All paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// An empty folder that becomes the container's `/`.
    pub root: PathBuf,
    /// An empty folder for the container's changes below `/tmp` and in its image.
    pub changes: PathBuf,
    /// The emulator's own folder. It has the same content as on the machine, because volumes are in it.
    pub work_dir: PathBuf,
    /// The block devices of the emulated instance, which replace the kernel's list, `/sys/class/block`. If absent, the
    /// machine's list is visible.
    pub block_devices: Option<PathBuf>,
    /// The folder of the image, in which the command starts. Without one it starts in `/`.
    pub image: Option<PathBuf>,
}

/// The reason why a container cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct ContainerError {
    what: String,
    source: io::Error,
}

/// Puts the running process into a container. The process must have one thread.
///
/// # Errors
/// If the kernel allows no mount namespace, or a mount fails.
pub fn enter(setup: &Setup) -> Result<(), ContainerError> {
    let rights = namespace::own().map_err(failed(|| "make a mount namespace".to_owned()))?;
    root::fill(setup, rights)?;
    if let Some(image) = &setup.image {
        let at = within(&setup.root, image);
        let shown = layer::show_image(image, &at, &setup.changes.join("image"), rights);
        shown.map_err(failed(|| format!("show {} to the container", image.display())))?;
    }
    root::show_work_dir(setup)?;
    root::show_block_devices(setup)?;
    let folder = setup.image.as_deref().unwrap_or(Path::new("/"));
    root::become_root(&setup.root, folder)
}

/// Returns where a path of the machine is in the container's root.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn failed<E: Into<io::Error>>(what: impl FnOnce() -> String) -> impl FnOnce(E) -> ContainerError {
    |source| ContainerError { what: what(), source: source.into() }
}
