//! Makes the image once from Debian's packages: a Debian with Python and nothing else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use spotsweep_needs::{Missing, met, programs, root};
use spotsweep_tests::local::Binaries;

use crate::network::Network;

/// Programs that the test runs.
const PROGRAMS: [&str; 9] =
    ["runc", "mmdebstrap", "ip", "iptables", "ip6tables", "nsenter", "losetup", "e2fsck", "python3"];

/// What this machine lacks for real containers. `None` if nothing is missing.
fn missing() -> Option<Missing> {
    root().or_else(|| programs(&PROGRAMS)).or_else(|| {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        if !mounts.lines().any(|line| line.contains(" /dev devtmpfs ")) || !Path::new("/dev/loop-control").exists() {
            return Some(Missing::new("loop devices that appear in /dev by themselves", "mount a devtmpfs at /dev"));
        }
        let network = Network::make(&format!("spotsweep-probe-{}", std::process::id()));
        network.err().map(|error| Missing::new("network namespaces", &error))
    })
}

/// The root file system, which is never written to. `None` if this machine cannot run containers.
pub(crate) fn image() -> Option<&'static Path> {
    static MISSING: OnceLock<Option<Missing>> = OnceLock::new();
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    met(MISSING.get_or_init(missing).clone()).then(|| MADE.get_or_init(make).as_path())
}

fn make() -> PathBuf {
    // The runner is linked with this system's C library, so the image must have the same.
    let system = fs::read_to_string("/etc/os-release").unwrap();
    let named = system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let release = named.unwrap_or("stable").trim_matches('"');
    let folder = Binaries::build().target().join("container");
    let image = folder.join(release);
    fs::create_dir_all(&folder).unwrap();
    // Each test may run in a process of its own.
    let lock = File::create(folder.join("image.lock")).unwrap();
    lock.lock().unwrap();
    if !image.exists() {
        let part = folder.join(format!("{release}.part"));
        let _ = fs::remove_dir_all(&part);
        let made = Command::new("mmdebstrap")
            .args(["--quiet", "--variant=minbase", "--include=python3", release])
            .arg(&part)
            .output()
            .unwrap();
        assert!(made.status.success(), "mmdebstrap: {}", String::from_utf8_lossy(&made.stderr));
        fs::rename(part, &image).unwrap();
    }
    image
}
