//! An EBS volume as an instance on Nitro has it: a block device that appears and disappears while containers run.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use tokio::time::{Instant, sleep};

/// The folder in which udev puts links to EBS volumes (fact 27). This machine's udev makes none for loop devices.
const BY_ID: &str = "/dev/disk/by-id";
const BYTES: u64 = 64 << 20;
/// How long a device may stay in use after its last user has ended, because kernel threads release it later.
const PATIENCE: Duration = Duration::from_secs(60);
/// Removes a loop device. The number is `LOOP_CTL_REMOVE` (linux/loop.h).
const REMOVE: &str = "import fcntl, sys; fcntl.ioctl(open('/dev/loop-control'), 0x4C81, int(sys.argv[1]))";

/// A volume's bytes, and its device while it is attached.
pub(crate) struct Volume {
    /// `vol-…`
    pub(crate) id: String,
    image: PathBuf,
    link: PathBuf,
    /// The instance's disks as the kernel lists them. It lists no serial numbers of loop devices.
    list: PathBuf,
    attached: Option<u32>,
}

impl Volume {
    /// Makes a new volume of zeros in `folder`.
    pub(crate) fn create(folder: &Path, id: String) -> Self {
        let image = folder.join("volume");
        File::create(&image).unwrap().set_len(BYTES).unwrap();
        let link = Path::new(BY_ID).join(format!("nvme-Amazon_Elastic_Block_Store_{}", id.replace('-', "")));
        let list = folder.join("block");
        fs::create_dir_all(&list).unwrap();
        Self { id, image, link, list, attached: None }
    }

    /// The folder that a container has at `/sys/class/block`.
    pub(crate) fn list(&self) -> &Path {
        &self.list
    }

    /// Attaches the volume. Its device number was not used before.
    pub(crate) fn attach(&mut self) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // The number is far from those that others get, and differs from those of tests that run at the same time.
        let number = 1000 + std::process::id() % 4096 * 64 + NEXT.fetch_add(1, Ordering::Relaxed) % 64;
        assert!(!device(number).exists(), "{} is there before it is attached", device(number).display());
        let made = Command::new("losetup").arg(device(number)).arg(&self.image).output().unwrap();
        assert!(made.status.success(), "losetup: {}", String::from_utf8_lossy(&made.stderr));
        self.attached = Some(number);
        fs::create_dir_all(BY_ID).unwrap();
        // If there is a link already, it leads to another device.
        let _ = symlink(format!("../../loop{number}"), &self.link);
        let listed = self.list.join(format!("loop{number}"));
        fs::create_dir_all(listed.join("device")).unwrap();
        fs::write(listed.join("device/serial"), format!("{}\n", self.id.replace('-', ""))).unwrap();
        fs::write(listed.join("dev"), format!("7:{number}\n")).unwrap();
    }

    /// Makes the link of this volume lead to another volume's device, which is on the same instance.
    pub(crate) fn lag_behind(&self, other: &Volume) {
        symlink(format!("../../loop{}", other.number()), &self.link).unwrap();
        let name = format!("loop{}", other.number());
        let copied =
            Command::new("cp").arg("-a").args([other.list.join(&name), self.list.join(&name)]).status().unwrap();
        assert!(copied.success());
    }

    /// Path of the file with its bytes.
    pub(crate) fn image(&self) -> &Path {
        &self.image
    }

    /// Number of the loop device to which it is attached.
    pub(crate) fn number(&self) -> u32 {
        self.attached.unwrap()
    }

    /// Its device number as in `/proc/self/mountinfo`.
    pub(crate) fn device_number(&self) -> Option<String> {
        // Loop devices are block devices of major number 7 (Documentation/admin-guide/devices.txt).
        self.attached.map(|number| format!(" 7:{number} "))
    }

    /// Whether no mount namespace has it mounted (open(2), `O_EXCL`).
    pub(crate) fn is_free(&self) -> bool {
        open(device(self.number()), OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()).is_ok()
    }

    /// Detaches the volume. Fails if something still has the device open or mounted.
    pub(crate) async fn detach(&mut self) -> Result<(), String> {
        let Some(number) = self.attached.take() else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        loop {
            match remove(number) {
                Ok(()) => break,
                Err(_busy) if Instant::now() < until => sleep(Duration::from_millis(50)).await,
                Err(busy) => {
                    self.attached = Some(number);
                    return Err(format!("{} cannot be detached: {busy}", device(number).display()));
                }
            }
        }
        fs::remove_file(&self.link).unwrap();
        fs::remove_dir_all(self.list.join(format!("loop{number}"))).unwrap();
        Ok(())
    }

    /// A copy of what the kernel has written to it until now, without what is still in memory.
    pub(crate) fn written(&self) -> PathBuf {
        let copy = self.image.with_extension("written");
        fs::copy(&self.image, &copy).unwrap();
        copy
    }

    /// Replaces its bytes by those of a file.
    pub(crate) fn hold(&self, bytes: &Path) {
        fs::copy(bytes, &self.image).unwrap();
    }

    /// Replays the journal as a mount would, and checks the file system. Fails if anything is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let checked = Command::new("e2fsck").args(["-p"]).arg(&self.image).output().unwrap();
        let again = Command::new("e2fsck").args(["-f", "-n"]).arg(&self.image).output().unwrap();
        let problem = || String::from_utf8_lossy(&[checked.stdout.clone(), again.stdout.clone()].concat()).into_owned();
        (checked.status.code() < Some(4) && again.status.success()).then_some(()).ok_or_else(problem)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(number) = self.attached {
            if let Err(problem) = remove(number) {
                eprintln!("{} is left: {problem}", device(number).display());
            }
            let _ = fs::remove_file(&self.link);
        }
        // This removes the folders only if nothing else is in them.
        let _ = fs::remove_dir(BY_ID).and_then(|()| fs::remove_dir("/dev/disk"));
    }
}

fn device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn remove(number: u32) -> Result<(), String> {
    // While the device is mounted, this only makes the kernel detach it after the last use. The next step fails then.
    let _ = Command::new("losetup").arg("--detach").arg(device(number)).output();
    let removed = Command::new("python3").args(["-c", REMOVE, &number.to_string()]).output().unwrap();
    let problem = || String::from_utf8_lossy(&removed.stderr).lines().last().unwrap_or_default().to_owned();
    removed.status.success().then_some(()).ok_or_else(problem)
}
