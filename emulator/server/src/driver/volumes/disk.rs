//! The places of the bytes of volumes and snapshots, as folders or as block devices.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::block::{Loops, Mount};
use super::blocking::cannot;
use super::{block, device_link, directory};
use crate::driver::groups::Running;

/// The storage: folders, or images behind loop devices.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    work_dir: PathBuf,
    /// The loop devices; `None` if volumes are folders.
    loops: Option<Loops>,
}

impl Disk {
    pub(crate) fn new(work_dir: PathBuf, loops: Option<Loops>) -> Self {
        Disk { work_dir, loops }
    }

    fn place(&self, folder: &str, id: &str) -> PathBuf {
        let name = if self.loops.is_some() { format!("{id}.img") } else { id.to_owned() };
        self.work_dir.join(folder).join(name)
    }

    /// Returns a volume's folder or image.
    pub(crate) fn volume(&self, id: &str) -> PathBuf {
        self.place("volumes", id)
    }

    /// Returns a snapshot's folder or image.
    pub(crate) fn snapshot(&self, id: &str) -> PathBuf {
        self.place("snapshots", id)
    }

    /// Returns the folder that an instance's jobs get as their `/dev`.
    pub(crate) fn devices(&self, instance: &str) -> PathBuf {
        self.work_dir.join("instances").join(instance).join("dev")
    }

    /// Returns the folder that an instance's jobs share for data sets.
    pub(crate) fn data(&self, instance: &str) -> PathBuf {
        self.work_dir.join("instances").join(instance).join("data")
    }

    /// Returns the folder that an instance's jobs get as `/sys/class/block`, if volumes are devices.
    pub(crate) fn block_devices(&self, instance: &str) -> Option<PathBuf> {
        self.loops.as_ref().map(|_| self.work_dir.join("instances").join(instance).join("block"))
    }

    fn link(&self, volume: &str, instance: &str) -> PathBuf {
        self.devices(instance).join(device_link(volume))
    }

    /// Makes a volume, and returns its bytes of data.
    pub(super) async fn make(&self, volume: &str, size_gib: u32, from: Option<&str>) -> Result<u64, String> {
        let (path, from) = (self.volume(volume), from.map(|snapshot| self.snapshot(snapshot)));
        make_parent(&path)?;
        if self.loops.is_some() {
            block::make(&path, size_gib, from.as_deref()).await
        } else {
            directory::make(&path, from.as_deref()).await
        }
    }

    pub(super) async fn attach(&self, volume: &str, instance: &str) -> Result<u64, String> {
        let path = self.volume(volume);
        let device = match &self.loops {
            Some(loops) => loops.attach(volume, &path).await?,
            None => path,
        };
        let link = self.link(volume, instance);
        make_parent(&link)?;
        symlink(&device, &link).map_err(|error| cannot("link", &link, &error))?;
        if let Some(list) = self.block_devices(instance) {
            block::list(&list, &self.devices(instance), &device, volume)
                .map_err(|error| cannot("list", &device, &error))?;
        }
        Ok(0)
    }

    pub(super) async fn detach(&self, volume: &str, instance: &str) -> Result<u64, String> {
        let link = self.link(volume, instance);
        gone(std::fs::remove_file(&link)).map_err(|error| cannot("remove", &link, &error))?;
        if let Some(loops) = &self.loops {
            if let Some((list, device)) = self.block_devices(instance).zip(loops.device(volume)) {
                let gone = block::unlist(&list, &self.devices(instance), &device);
                gone.map_err(|error| cannot("unlist", &device, &error))?;
            }
            loops.detach(volume).await?;
        }
        Ok(0)
    }

    pub(super) fn mount_of(&self, volume: &str, running: &Running) -> Option<Mount> {
        let point = match &self.loops {
            Some(loops) => loops.mount_point(volume, running.main)?,
            None => directory::mount_point(&self.volume(volume), &running.root)?,
        };
        Some(Mount { main: running.main, point })
    }

    /// Copies a volume, and returns how many bytes differ from the base.
    pub(super) async fn copy(
        &self,
        snapshot: &str,
        volume: &str,
        base: Option<&str>,
        mount: Option<Mount>,
    ) -> Result<u64, String> {
        let (from, to) = (self.volume(volume), self.snapshot(snapshot));
        // A base whose own copy has failed does not count.
        let base = base.map(|base| self.snapshot(base)).filter(|base| base.exists());
        make_parent(&to)?;
        if self.loops.is_some() {
            block::copy(&from, &to, base, mount).await
        } else {
            directory::copy(&from, &to, base).await
        }
    }

    pub(super) async fn remove_volume(&self, id: &str) -> Result<u64, String> {
        remove(self.volume(id)).await
    }

    pub(super) async fn remove_snapshot(&self, id: &str) -> Result<u64, String> {
        remove(self.snapshot(id)).await
    }

    /// Removes all devices. Their jobs must be dead.
    pub(super) async fn release_all(&self) {
        if let Some(loops) = &self.loops {
            loops.detach_all().await;
        }
    }
}

fn make_parent(path: &Path) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|error| cannot("make", parent, &error))
}

/// Ignores that a removed file was missing.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

async fn remove(path: PathBuf) -> Result<u64, String> {
    let removed =
        if path.is_dir() { tokio::fs::remove_dir_all(&path).await } else { tokio::fs::remove_file(&path).await };
    gone(removed).map_err(|error| cannot("remove", &path, &error))?;
    Ok(0)
}
