//! The production path: a real ext4 file system, mounted from a block device.

mod full;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{major, minor};
use rustix::process::Signal;
use serde_json::json;
use spotsweep_needs::{block_devices, met};
use tokio::process::Child;

use crate::send;
use crate::world::{Answer, Outcome, World, generous, granted_workspace, until, well};

const IMAGE_BYTES: u64 = 64 << 20;
/// The serial number of the granted volume: its id without the dash (fact 27).
const SERIAL: &str = "vol0abc";

/// A loop device over a sparse file; removed when dropped.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

impl Disk {
    fn make(image: &Path) -> Self {
        File::create(image).unwrap().set_len(IMAGE_BYTES).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(image).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self(String::from_utf8(made.stdout).unwrap().trim().into())
    }

    fn first_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::open(&self.0).unwrap().take(1 << 20).read_to_end(&mut bytes).unwrap();
        bytes
    }
}

impl World {
    /// Makes this world's kernel list a disk with a serial number.
    fn attach_disk(&self, disk: &Disk, serial: &str) {
        let (device, number) = (disk.0.file_name().unwrap(), fs::metadata(&disk.0).unwrap().rdev());
        let listed = self.path("block").join(device);
        fs::create_dir_all(listed.join("device")).unwrap();
        // The kernel pads the serial number with blanks.
        fs::write(listed.join("device/serial"), format!("{serial:<20}\n")).unwrap();
        symlink(&disk.0, self.path("dev").join(device)).unwrap();
        fs::write(listed.join("dev"), format!("{}:{}\n", major(number), minor(number))).unwrap();
    }

    /// Starts the runner in its own mount namespace, as in a container, with this world's list of disks.
    fn spawn_contained(&self, extra: &[(&str, &str)], command: &[&str]) -> Child {
        fs::create_dir_all(self.path("block")).unwrap();
        let list = self.path("block");
        let script = r#"mount --bind "$0" /sys/class/block && exec "$@""#;
        let shell = ["sh", "-c", script, list.to_str().unwrap(), env!("CARGO_BIN_EXE_spotsweep-runner")];
        let words = [&["--mount", "--propagation", "private", "--"], &shell[..]].concat();
        self.runner("unshare", &words, extra, command).spawn().unwrap()
    }

    async fn run_contained(&self, extra: &[(&str, &str)], script: &str) -> Outcome {
        self.outcome(self.spawn_contained(extra, &["sh", "-c", script])).await
    }
}

fn used_before(request: &str, nth: usize) -> Answer {
    if request == "claim" { granted_workspace(false) } else { generous(request, nth) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blank_disk_is_formatted_once_and_its_files_survive() {
    if !met(block_devices()) {
        return;
    }
    fn blank_once(request: &str, nth: usize) -> Answer {
        if nth == 0 { generous(request, nth) } else { used_before(request, nth) }
    }
    let world = World::start(blank_once, well).await;
    let disk = Disk::make(&world.path("image"));
    world.attach_disk(&disk, SERIAL);
    // The image's files at this path are hidden, not lost.
    fs::create_dir_all(world.path("dltraining/checkpoints")).unwrap();
    fs::write(world.path("dltraining/checkpoints/of-the-image"), "1").unwrap();

    let script = r#"
        grep " $SPOTSWEEP_ROOT/dltraining " /proc/self/mounts
        echo state > "$SPOTSWEEP_CHECKPOINTS/epoch-1"; echo out > "$SPOTSWEEP_OUTPUT/file"
        id -u > "$SPOTSWEEP_DATASETS/id"
        # A process that has left the group and keeps the workspace busy.
        (cd "$SPOTSWEEP_CHECKPOINTS" && setsid sh -c 'trap "" TERM; touch busy; sleep 600') &
        trap 'exit 143' TERM; while :; do sleep 0.02; done
    "#;
    let user = [("SPOTSWEEP_USER", "43210:43211")];
    fs::set_permissions(world.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let runner = world.spawn_contained(&user, &["sh", "-c", script]);
    until("a seal", || world.invocations("report").iter().any(|report| report["seal"]["files"] == 2)).await;
    send(&runner, Signal::TERM);
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
    let mount = outcome.stdout.lines().next().unwrap_or_default();
    assert!(mount.starts_with(disk.0.to_str().unwrap()) && mount.contains(" ext4 "), "{mount}");
    assert!(mount.contains("nodev") && mount.contains("nosuid"), "{mount}");
    let first = &world.invocations("mounted")[0]["found"];
    assert_eq!(*first, json!({"formatted": true, "newest": null, "torn": [], "missing": []}));
    let seal = &world.invocations("release")[0]["seal"];
    assert_eq!(seal["files"], 2, "unmounted although it was busy: {}", outcome.stderr);

    let script = r#"cat "$SPOTSWEEP_CHECKPOINTS/epoch-1" "$SPOTSWEEP_DATASETS/id"; ls "$SPOTSWEEP_CHECKPOINTS""#;
    let outcome = world.run_contained(&[], script).await;
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "state\n43210\nbusy\nepoch-1\n"),
        "{}",
        outcome.stderr
    );
    let second = &world.invocations("mounted")[1]["found"];
    assert_eq!((&second["formatted"], &second["torn"]), (&json!(false), &json!([])));
    assert_eq!(world.output("file").unwrap(), b"out\n");
    assert!(world.path("dltraining/checkpoints/of-the-image").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_blank_disk_that_is_said_to_be_blank_is_formatted() {
    if !met(block_devices()) {
        return;
    }
    let world = World::start(used_before, well).await;
    let disk = Disk::make(&world.path("image"));
    world.attach_disk(&disk, SERIAL);
    let started = world.path("started");
    let script = format!("touch {}", started.display());
    let outcome = world.run_contained(&[], &script).await;
    assert_eq!(outcome.code, Some(70), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("vol-0abc is not blank and has no"), "{}", outcome.stderr);
    assert!(disk.first_bytes().iter().all(|byte| *byte == 0), "nothing was written");

    let world = World::start(generous, well).await;
    world.attach_disk(&disk, SERIAL);
    let outcome = world.run_contained(&[("PATH", "/usr/bin:/bin")], &script).await;
    assert_eq!(outcome.code, Some(70), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("add e2fsprogs to the image"), "{}", outcome.stderr);

    fs::OpenOptions::new().write(true).open(&disk.0).unwrap().write_all(b"a partition table?").unwrap();
    let before = disk.first_bytes();
    let outcome = world.run_contained(&[], &script).await;
    assert_eq!(outcome.code, Some(70), "{}", outcome.stderr);
    assert!(disk.first_bytes() == before, "nothing was written");
    assert!(!started.exists());
}

/// The by-id link still leads to the disk of another trial (fact 59), which is blank as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_lags_leads_to_no_other_volume() {
    if !met(block_devices()) {
        return;
    }
    let world = World::start(generous, well).await;
    let (own, other) = (Disk::make(&world.path("own")), Disk::make(&world.path("other")));
    world.attach_disk(&other, "vol0abcdef");
    world.attach(&other.0);
    let outcome = world.run_contained(&[("SPOTSWEEP_WORKSPACE_SECONDS", "0.7")], "echo trained").await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(75), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("vol-0abc is granted, but has not appeared"), "{}", outcome.stderr);

    let runner = world.spawn_contained(&[], &["sh", "-c", "echo trained"]);
    until("the runner looks for its volume", || world.invocations("access").len() == 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    world.attach_disk(&own, SERIAL);
    let outcome = world.outcome(runner).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "trained\n"), "{}", outcome.stderr);
    assert!(own.first_bytes().iter().any(|byte| *byte != 0), "it was formatted");
    assert!(other.first_bytes().iter().all(|byte| *byte == 0), "nothing was written to the other trial's volume");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_that_another_process_could_break_is_not_final() {
    if !met(block_devices()) {
        return;
    }
    // Two processes that the runner has not started. The second has its own mount namespace, in which the file system
    // stays mounted after the runner has unmounted it.
    let others = [
        (&[][..], "a process outside this attempt uses"),
        (&["unshare", "--mount"], "mounted in another mount namespace"),
    ];
    for (way, message) in others {
        let world = World::start(generous, well).await;
        let disk = Disk::make(&world.path("image"));
        world.attach_disk(&disk, SERIAL);
        let script = r#"echo 1 > "$SPOTSWEEP_CHECKPOINTS/epoch-1"; trap 'exit 143' TERM; while :; do sleep 0.02; done"#;
        let runner = world.spawn_contained(&[], &["sh", "-c", script]);
        until("a seal", || world.invocations("report").iter().any(|report| report["seal"]["files"] == 1)).await;
        let pid = runner.id().unwrap().to_string();
        let folder = world.path("dltraining/checkpoints");
        let script = format!("cd {} && touch {} && exec sleep 600", folder.display(), world.path("inside").display());
        let mut other = Command::new("nsenter")
            .args(["--target", &pid, "--mount"])
            .args(way)
            .args(["sh", "-c", &format!("exec 3< {}; {script}", folder.display())])
            .spawn()
            .unwrap();
        until("the other process is inside", || world.path("inside").exists()).await;
        send(&runner, Signal::TERM);
        let outcome = world.outcome(runner).await;
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
        assert_eq!(world.invocations("release")[0]["seal"], json!(null), "nothing is promised");
    }
}
