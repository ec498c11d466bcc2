//! A container's own view of this machine: the machine's files in place of an image's, below a root folder of its own.
//!
//! What lies at the top of the machine's file system is mounted into the container's root folder, which then becomes
//! `/` in a mount namespace of the container's. So `/dltraining`, `/storage` and its home are the container's own, as on
//! AWS. On the machine they lie in that folder, and nothing is made outside of it. Changes below `/tmp` and in the
//! image's folder go to a folder of the container's, too.
//!
//! The program `spotsweep-container` does this between fork and exec, where it has one thread.

mod layer;
mod namespace;
mod root;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// `HOME` of a container: a folder that is empty at its start.
pub const HOME: &str = "/attempt-home";

/// What a container is made from. All paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The container's `/`: a folder that is empty.
    pub root: PathBuf,
    /// Takes what the container changes below `/tmp` and in its image: a folder that is empty.
    pub changes: PathBuf,
    /// The emulator's own folder. It stays as it is on the machine, because volumes are in it.
    pub work_dir: PathBuf,
    /// In place of the kernel's list of block devices, `/sys/class/block`: those of the emulated instance. Without one it is
    /// the machine's.
    pub block_devices: Option<PathBuf>,
    /// The folder of the image, in which the command starts; without one it starts in `/`.
    pub image: Option<PathBuf>,
}

/// Why a container cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct ContainerError {
    what: String,
    source: io::Error,
}

/// Puts the running process into a container. It must have one thread.
///
/// # Errors
/// Where the kernel allows no mount namespace, or a mount fails.
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

/// Where the container's root has a path of the machine's.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn failed<E: Into<io::Error>>(what: impl FnOnce() -> String) -> impl FnOnce(E) -> ContainerError {
    |source| ContainerError { what: what(), source: source.into() }
}
