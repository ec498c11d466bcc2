//! What a test needs of the machine beyond Rust, Python and a C compiler: root, programs, loop devices, a folder in
//! memory.
//!
//! In CI, where `.ci/run` sets `SPOTSWEEP_CI`, a test fails if something is missing. Elsewhere it is skipped with a
//! message, because `cargo test` has to work for a user without root on an ordinary machine.

use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Programs that are in a Debian package with another name.
const PACKAGES: [(&str, &str); 9] = [
    ("chromedriver", "chromium-driver"),
    ("e2fsck", "e2fsprogs"),
    ("fsfreeze", "util-linux"),
    ("ip", "iproute2"),
    ("ip6tables", "iptables"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
];

/// Returns a new temporary folder for many small files, in memory where Linux has a folder for that (`/dev/shm`). A
/// disk waits for each fsync(2), and for each removal if its file system was mounted with `discard`.
///
/// # Panics
/// If no temporary folder can be made.
#[must_use]
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

/// A missing thing, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(String);

impl Missing {
    /// Returns that `what` is missing. `remedy` states how to get it.
    #[must_use]
    pub fn new(what: &str, remedy: &str) -> Self {
        Self(format!("{what} ({remedy})"))
    }
}

/// Whether the test can run. If something is missing, it prints that to stderr, although the test's output is captured.
///
/// # Panics
/// In CI, if something is missing.
#[must_use]
pub fn met(missing: Option<Missing>) -> bool {
    let Some(Missing(what)) = missing else { return true };
    let is_ci = env::var_os("SPOTSWEEP_CI").is_some_and(|value| !value.is_empty());
    assert!(!is_ci, "this test needs {what}; with SPOTSWEEP_CI unset it is skipped");
    say_skipped(&what);
    false
}

/// Prints to stderr what this test needs.
fn say_skipped(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // The output of a test that passes is captured, but direct writes to stderr are not.
    let _ = std::io::stderr().write_all(format!("skipped: {test} needs {what}\n").as_bytes());
}

/// Returns the program that `variable` names. The test is opt-in, also in CI, because its packages are large. `.ci/run`
/// runs it in a step of its own after it has installed them. If the variable is not set, that is printed to stderr.
#[must_use]
pub fn opted_in(variable: &str) -> Option<String> {
    let program = env::var(variable).ok().filter(|program| !program.is_empty());
    if program.is_none() {
        say_skipped(variable);
    }
    program
}

/// Returns root as missing if this process is not root.
#[must_use]
pub fn root() -> Option<Missing> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| Missing::new("root", "run the tests as root"))
}

/// Returns the path of a program on the search path.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the programs that are not on the search path.
#[must_use]
pub fn programs(wanted: &[&str]) -> Option<Missing> {
    let absent: Vec<&str> = wanted.iter().copied().filter(|program| find(program).is_none()).collect();
    if absent.is_empty() {
        return None;
    }
    let mut packages: Vec<&str> = absent.iter().map(|program| package(program)).collect();
    packages.sort_unstable();
    packages.dedup();
    Some(Missing::new(&absent.join(", "), &format!("apt-get install {}", packages.join(" "))))
}

fn package(program: &str) -> &str {
    PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package)
}

/// Returns what is missing for block devices: root, tools, a free loop device.
#[must_use]
pub fn block_devices() -> Option<Missing> {
    root().or_else(|| programs(&["losetup", "fsfreeze", "mkfs.ext4"])).or_else(|| {
        let found = Command::new("losetup").arg("--find").output();
        let is_free = found.is_ok_and(|found| found.status.success());
        (!is_free).then(|| Missing::new("a free loop device", "a container needs the host's /dev/loop-control"))
    })
}

#[cfg(test)]
mod tests {
    use super::{Missing, find, met, programs};

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        assert_eq!(programs(&["sh", "ls"]), None);
        assert!(find("sh").is_some());
        let missing = programs(&["sh", "no-such-program", "no-other"]).unwrap();
        assert_eq!(missing.0, "no-such-program, no-other (apt-get install no-other no-such-program)");
        assert!(met(None));
    }

    /// The test runs in a process of its own, because a variable belongs to the whole process.
    #[test]
    fn what_is_missing_fails_in_ci_and_is_skipped_elsewhere() {
        let name = "tests::what_is_missing_fails_in_ci_and_is_skipped_elsewhere";
        if std::env::var_os("NEEDS_NOTHING").is_some() {
            assert!(!met(Some(Missing::new("a unicorn", "none is known"))));
            return;
        }
        let run = |ci: &str| {
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            let run = test.args([name, "--exact"]).env("NEEDS_NOTHING", "1").env("SPOTSWEEP_CI", ci).output().unwrap();
            (run.status.success(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
        };
        let (passed, said) = run("");
        assert!(passed && said.contains("skipped: ") && said.contains("needs a unicorn (none is known)"), "{said}");
        let (passed, said) = run("1");
        assert!(!passed && said.contains("this test needs a unicorn"), "{said}");
    }
}
