//! The image: a Debian with Python and nothing else, made once from Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use spotsweep_tests::local::Binaries;

use crate::network::Network;

/// What the test runs.
const PROGRAMS: [&str; 9] =
    ["runc", "mmdebstrap", "ip", "iptables", "ip6tables", "nsenter", "losetup", "e2fsck", "python3"];

/// What this machine lacks for real containers; `None` where nothing is missing.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root".to_owned());
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let absent = |program: &&str| !folders.iter().any(|folder| folder.join(program).is_file());
    let absent: Vec<_> = PROGRAMS.into_iter().filter(|program| absent(program)).collect();
    if !absent.is_empty() {
        return Some(absent.join(", "));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.contains(" /dev devtmpfs ")) || !Path::new("/dev/loop-control").exists() {
        return Some("loop devices that appear in /dev by themselves".to_owned());
    }
    Network::make(&format!("spotsweep-probe-{}", std::process::id())).err()
}

/// The root file system, which is never written to; `None` where this machine has no containers for us, which is said.
pub(crate) fn image() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = MADE.get_or_init(|| match missing() {
        None => Some(make()),
        Some(missing) => {
            // Not captured, as the output of a test that passes would be.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("skipped: no real containers without {missing}\n").as_bytes(),
            );
            None
        }
    });
    made.as_deref()
}

fn make() -> PathBuf {
    // The runner is linked with this system's C library: the image has the same.
    let system = fs::read_to_string("/etc/os-release").unwrap();
    let named = system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let release = named.unwrap_or("stable").trim_matches('"');
    let folder = Binaries::build().target().join("container");
    let image = folder.join(release);
    if !image.exists() {
        let part = folder.join(format!("{release}.part"));
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(&folder).unwrap();
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
