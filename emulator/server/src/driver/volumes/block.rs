//! Volumes as block devices: sparse images behind loop devices. It needs Linux, as root.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{SeekFrom, major, minor, seek};
use rustix::io::Errno;
use rustix::process::Pid;

use super::blocking::{beside, cannot};
use super::{tool, until};

/// A mount of a volume by a job.
pub(super) struct Mount {
    /// A process whose mount namespace has the mount.
    pub(super) main: Pid,
    /// The mount point in that process's namespace.
    pub(super) point: PathBuf,
}

const GIB: u64 = 1 << 30;
/// The size of the chunks that are compared.
const CHUNK: usize = 64 * 1024;
/// The size of the blocks that stat(2) counts.
const STAT_BLOCK: u64 = 512;
/// The longest time to freeze a file system. Its writers are halted, so only their written data remain.
const FREEZE_LIMIT: Duration = Duration::from_secs(20);

/// The tools that the emulator itself needs; the runner needs mkfs.ext4.
const TOOLS: [&str; 3] = ["losetup", "cp", "fsfreeze"];

/// Checks that this machine has the rights, the tools, and a working loop device.
pub(crate) async fn check(work_dir: &Path, has_containers: bool) -> Result<(), String> {
    if !has_containers {
        return Err("their mounts would be every job's; name the program that makes containers".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("block devices need root; run as root, or use directories".into());
    }
    if let Some(missing) = TOOLS.iter().find(|program| tool::find(program).is_none()) {
        return Err(format!("{missing} is not installed; install util-linux and coreutils, or use directories"));
    }
    let image = work_dir.join("probe.img");
    let made = File::create(&image).and_then(|file| file.set_len(CHUNK as u64));
    made.map_err(|error| cannot("make", &image, &error))?;
    let loops = Loops::default();
    let tried = loops.attach("probe", &image).await;
    loops.detach_all().await;
    std::fs::remove_file(&image).map_err(|error| cannot("remove", &image, &error))?;
    tried.map(|_| ()).map_err(|error| format!("loop devices do not work here: {error}"))
}

/// The loop devices in use, by volume.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loops(Arc<Mutex<BTreeMap<String, Loop>>>);

/// A loop device that disappears by itself when it is neither open nor mounted. So even a killed emulator leaves none
/// behind.
#[derive(Debug)]
struct Loop {
    path: PathBuf,
    /// The open file that keeps the device.
    _open: File,
}

impl Loops {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Loop>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn attach(&self, volume: &str, image: &Path) -> Result<PathBuf, String> {
        let device = tool::run("losetup", &["--find".as_ref(), "--show".as_ref(), image.as_os_str()]).await?;
        let path = PathBuf::from(device);
        let open = File::open(&path).map_err(|error| cannot("open", &path, &error))?;
        // While the device is open this only marks it: "lazy device destruction" (losetup(8)).
        tool::run("losetup", &["--detach".as_ref(), path.as_os_str()]).await?;
        self.lock().insert(volume.to_owned(), Loop { path: path.clone(), _open: open });
        Ok(path)
    }

    pub(super) fn device(&self, volume: &str) -> Option<PathBuf> {
        self.lock().get(volume).map(|device| device.path.clone())
    }

    /// Removes a device. After the end of a job it takes a moment until its mounts and with them the device are gone.
    pub(super) async fn detach(&self, volume: &str) -> Result<(), String> {
        let Some(device) = self.lock().remove(volume).map(|device| device.path) else { return Ok(()) };
        let bound = bound_flag(&device);
        if until(|| !bound.exists()).await {
            return Ok(());
        }
        Err(format!("{} is still in use", device.display()))
    }

    pub(super) async fn detach_all(&self) {
        let volumes: Vec<String> = self.lock().keys().cloned().collect();
        for volume in volumes {
            if let Err(error) = self.detach(&volume).await {
                tracing::error!(volume, error, "a loop device is left behind");
            }
        }
    }

    /// Removes all devices like [`Loops::detach_all`], without waiting.
    pub(crate) fn detach_all_now(&self) {
        self.lock().clear();
    }

    /// Returns where a process has a volume mounted, by its mount namespace (proc_pid_mountinfo(5)).
    pub(super) fn mount_point(&self, volume: &str, main: Pid) -> Option<PathBuf> {
        let device = self.lock().get(volume)?.path.clone();
        let number = std::fs::metadata(device).ok()?.rdev();
        let number = format!("{}:{}", major(number), minor(number));
        let mounts = std::fs::read(format!("/proc/{}/mountinfo", main.as_raw_nonzero())).ok()?;
        // A container's own mounts may have any names.
        String::from_utf8_lossy(&mounts).lines().find_map(|line| {
            let mut fields = line.split(' ').skip(2);
            (fields.next()? == number).then(|| fields.nth(1).map(|point| PathBuf::from(point.replace("\\040", " "))))?
        })
    }
}

/// Returns a file that exists while the device has an image.
fn bound_flag(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("loop/backing_file")
}

/// Adds a device to `list` in the kernel's form for an NVMe disk, with the volume's id as its serial number (EBS user
/// guide, "Map Amazon EBS volumes to NVMe device names"), and to the instance's `/dev`.
pub(super) fn list(list: &Path, devices: &Path, device: &Path, volume: &str) -> io::Result<()> {
    let name = device.file_name().unwrap_or_default();
    let (listed, number) = (list.join(name), std::fs::metadata(device)?.rdev());
    std::fs::create_dir_all(listed.join("device"))?;
    std::fs::write(listed.join("device/serial"), format!("{}\n", volume.replacen('-', "", 1)))?;
    symlink(device, devices.join(name))?;
    // This file comes last, so that a listed device is complete.
    std::fs::write(listed.join("dev"), format!("{}:{}\n", major(number), minor(number)))
}

/// Removes a device from there.
pub(super) fn unlist(list: &Path, devices: &Path, device: &Path) -> io::Result<()> {
    let name = device.file_name().unwrap_or_default();
    for removed in [std::fs::remove_dir_all(list.join(name)), std::fs::remove_file(devices.join(name))] {
        removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    }
    Ok(())
}

pub(super) async fn make(path: &Path, size_gib: u32, from: Option<&Path>) -> Result<u64, String> {
    if let Some(from) = from {
        copy_image(from, path).await?;
    }
    let size = u64::from(size_gib) * GIB;
    let made = File::options().create(true).truncate(false).write(true).open(path);
    let made = made.and_then(|file| {
        file.set_len(size)?;
        Ok(file.metadata()?.blocks() * STAT_BLOCK)
    });
    made.map_err(|error| cannot("make", path, &error))
}

/// Copies an image. A mounted file system is frozen meanwhile, because the kernel writes back by itself and a copy must
/// have the content of one moment.
pub(super) async fn copy(from: &Path, to: &Path, base: Option<PathBuf>, mount: Option<Mount>) -> Result<u64, String> {
    let frozen = match mount {
        Some(mount) => Some(freeze(&mount).await?),
        None => None,
    };
    let copied = copy_image(from, to).await;
    if let Some(file_system) = frozen {
        thaw(&file_system).await?;
    }
    copied?;
    let image = to.to_owned();
    beside(move || changed(&image, base.as_deref())).await
}

async fn copy_image(from: &Path, to: &Path) -> Result<(), String> {
    let how = ["--sparse=always", "--reflink=auto", "--preserve=timestamps", "--"].map(AsRef::as_ref);
    let arguments = [how.as_slice(), &[from.as_os_str(), to.as_os_str()]].concat();
    tool::run("cp", &arguments).await.map(|_| ())
}

/// Freezes a file system. The open mount point keeps it reachable, even if the job ends.
async fn freeze(mount: &Mount) -> Result<File, String> {
    let inside = mount.point.strip_prefix("/").unwrap_or(&mount.point);
    let path = Path::new("/proc").join(mount.main.as_raw_nonzero().to_string()).join("root").join(inside);
    let file_system = File::open(&path).map_err(|error| cannot("open", &path, &error))?;
    let frozen = tokio::time::timeout(FREEZE_LIMIT, fsfreeze("--freeze", &file_system)).await;
    match frozen {
        Ok(Ok(())) => Ok(file_system),
        Ok(Err(error)) => Err(error),
        Err(_elapsed) => {
            thaw(&file_system).await?;
            Err(format!("cannot freeze {}: no end after {FREEZE_LIMIT:?}", mount.point.display()))
        }
    }
}

async fn thaw(file_system: &File) -> Result<(), String> {
    fsfreeze("--unfreeze", file_system).await
}

async fn fsfreeze(what: &str, file_system: &File) -> Result<(), String> {
    let path = format!("/proc/{}/fd/{}", std::process::id(), file_system.as_raw_fd());
    tool::run("fsfreeze", &[what.as_ref(), path.as_ref()]).await.map(|_| ())
}

/// Returns the bytes of an image's data that differ from the base, by chunks.
fn changed(image: &Path, base: Option<&Path>) -> io::Result<u64> {
    let image = File::open(image)?;
    let base = base.map(File::open).transpose()?;
    let (mut sum, mut at) = (0, 0);
    while let Some((start, end)) = next_data(&image, at)? {
        sum += match &base {
            None => end - start,
            Some(base) => differing(&image, base, start, end)?,
        };
        at = end;
    }
    Ok(sum)
}

/// Returns the next range from `at` on that is no hole.
fn next_data(image: &File, at: u64) -> io::Result<Option<(u64, u64)>> {
    match seek(image, SeekFrom::Data(at)) {
        Ok(start) => Ok(Some((start, seek(image, SeekFrom::Hole(start))?))),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn differing(image: &File, base: &File, start: u64, end: u64) -> io::Result<u64> {
    let (mut own, mut theirs) = (vec![0; CHUNK], vec![0; CHUNK]);
    let (mut sum, mut at) = (0, start);
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        let read = image.read_at(&mut own[..wanted], at)?;
        if read == 0 {
            break;
        }
        let of_base = base.read_at(&mut theirs[..read], at)?;
        if own[..read] != theirs[..of_base] {
            sum += read as u64;
        }
        at += read as u64;
    }
    Ok(sum)
}
