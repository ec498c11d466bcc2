//! Waits for the trial's volume, mounts it at `<root>/dltraining`, checks it, and unmounts it.

mod charge;
mod device;
mod format;
mod mount;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spotsweep_protocol::claim::WorkspaceGrant;
use spotsweep_seal::disk::MountedDisk;
use tokio::time::Instant;

pub(crate) use self::charge::{free_name, take_charge};
pub(crate) use self::device::Device;
use self::format::{Content, is_half_made, make, probe};
use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;
use crate::reading::FormatReader;

/// The path of the workspace below the root; without a workspace, an ordinary folder.
pub(crate) const POINT: &str = "dltraining";

/// Why a workspace cannot be used although its volume is attached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error("cannot read {0}: the container must be privileged, or have CAP_SYS_ADMIN and the device")]
    Read(PathBuf, #[source] io::Error),
    #[error(
        "{volume} is not blank and has no ext4 or XFS file system; nothing was written. Give a volume or snapshot \
         whose file system lies on the disk itself, without partitions"
    )]
    Unformatted { volume: String },
    #[error(
        "the volume is blank, and neither the image nor the instance has mkfs.ext4: add e2fsprogs to the image, or give \
         a formatted volume with `workspace: {{snapshot: snap-…}}`"
    )]
    NoFormatter,
    #[error("mkfs.ext4 failed")]
    Format(#[source] io::Error),
    #[error("cannot mount {device} on {point}: the container must be privileged, or have CAP_SYS_ADMIN")]
    Mount { device: PathBuf, point: PathBuf, source: io::Error },
    #[error("{0} is not the workspace though it was mounted there; nothing was written")]
    NotMounted(PathBuf),
    #[error("cannot take charge of {0}")]
    Charge(PathBuf, #[source] io::Error),
    #[error(
        "{0} is a link or a file; no link is followed on a workspace. Give a volume or snapshot on which it is a folder, \
         or does not exist"
    )]
    NoFolder(PathBuf),
    #[error("{0} is in the way of the workspace: remove it from the image, or leave it empty")]
    Occupied(PathBuf),
}

/// The path of the workspace, or of the folder in its place.
pub(crate) fn point(config: &Config) -> Result<PathBuf, Failure> {
    let point = config.root.join(POINT);
    std::path::absolute(&point).map_err(|source| Failure::Prepare { path: point, source })
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(Box::new(error))
    }
}

/// A mounted workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The volume's id.
    pub(crate) volume: String,
    /// Whether the file system is new.
    pub(crate) formatted: bool,
    point: PathBuf,
    device: Device,
    formats: Arc<FormatReader>,
}

impl Workspace {
    /// Waits for the volume and mounts it. Only a volume that was granted as blank gets a file system, if it is blank
    /// or an attempt died while it made one.
    pub(crate) async fn mount(config: &Config, grant: &WorkspaceGrant, deadline: Instant) -> Result<Self, Failure> {
        let device = device::wait(&config.devices, grant, deadline).await?;
        let point = point(config)?;
        // Must not be cancelled half-way: what is mounted must be recorded, so that it can be unmounted.
        let formatted = tokio::task::block_in_place(|| match &device {
            Device::Folder(folder) => mount::link(folder, &point).map(|()| false),
            Device::Block(device) => mount_device(device, &point, grant),
        })?;
        let formats = Arc::new(FormatReader::new(config.user.clone()));
        Ok(Self { volume: grant.volume.clone(), formatted, point, device, formats })
    }

    /// The files of the workspace.
    pub(crate) fn disk(&self) -> MountedDisk {
        MountedDisk::below(&self.point).judged_by(self.formats.clone())
    }

    /// The reader that judges the workspace's files.
    pub(crate) fn formats(&self) -> &Arc<FormatReader> {
        &self.formats
    }

    /// The mount point.
    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// Whether the workspace's files are on a separate disk. Then their inode numbers move with them, and they are only
    /// safe after they are written out.
    pub(crate) fn is_disk(&self) -> bool {
        match self.device {
            Device::Block(_) => true,
            Device::Folder(_) => false,
        }
    }

    /// Writes the file system out.
    pub(crate) async fn sync(&self) -> io::Result<()> {
        let point = self.point.clone();
        match self.device {
            Device::Block(_) => tokio::task::spawn_blocking(move || mount::sync(&point)).await?,
            // The local stack reads the same page cache.
            Device::Folder(_) => Ok(()),
        }
    }

    /// Unmounts the workspace. Returns false if a process uses it for longer than a killed process would.
    pub(crate) async fn unmount(&self) -> io::Result<bool> {
        match &self.device {
            Device::Block(device) => mount::leave(device, &self.point).await,
            Device::Folder(_) => mount::unlink(&self.point).map(|()| true),
        }
    }

    /// Detaches the mount of a busy workspace, so that this attempt can end.
    pub(crate) fn detach(&self) -> io::Result<()> {
        mount::detach(&self.point)
    }
}

fn mount_device(device: &Path, point: &Path, grant: &WorkspaceGrant) -> Result<bool, Failure> {
    let unread = |error| WorkspaceError::Read(device.into(), error);
    let content = probe(device).map_err(unread)?;
    let is_empty = || Ok(content == Content::Blank || is_half_made(device, &grant.volume)?);
    if grant.blank && is_empty().map_err(unread)? {
        make(device, &grant.volume)?;
        say(&format!("made an ext4 file system on {}", grant.volume));
        mount::mount(device, point, "ext4")?;
        return Ok(true);
    }
    let file_system = match content {
        Content::Ext4 => "ext4",
        Content::Xfs => "xfs",
        Content::Blank | Content::Unknown => {
            return Err(WorkspaceError::Unformatted { volume: grant.volume.clone() }.into());
        }
    };
    mount::mount(device, point, file_system)?;
    Ok(false)
}
