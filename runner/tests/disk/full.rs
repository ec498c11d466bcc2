//! A training that fills its volume, and deletes files in its next attempt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use spotsweep_needs::{block_devices, met};

use super::{Disk, SERIAL};
use crate::send;
use crate::world::{Outcome, World, generous, until, well};

/// The first attempt saves a checkpoint, and fills the volume once that is sealed. The second one deletes files and
/// goes on.
const TRAINING: &str = r#"
import os, time
folder = os.environ["SPOTSWEEP_CHECKPOINTS"]
print("found", sorted(os.listdir(folder))[:3], flush=True)
if os.path.exists(folder + "/c1.pt"):
    assert open(folder + "/c1.pt").read() == "whole" * 1000
    for name in os.listdir(folder):
        if name != "c1.pt": os.unlink(folder + "/" + name)
    open(folder + "/c4.pt", "w").write("more" * 1000)
    print("score=2", flush=True)
else:
    open(folder + "/c1.pt", "w").write("whole" * 1000)
    while not os.path.exists(os.environ["SEALED"]): time.sleep(0.02)
    try:
        number = 0
        while os.environ["FILLS"] == "names":
            number += 1
            open(folder + "/n%d.pt" % number, "w").close()
        for name, piece in ("c2.pt", 1 << 20), ("c3.pt", 512):
            with open(folder + "/" + name, "wb", buffering=0) as file:
                try:
                    while True: file.write(b"x" * piece)
                except OSError as error: print(error, flush=True)
    except OSError as error: print(error, flush=True)
    print("score=1", flush=True)
    open(os.environ["FULL"], "w").close()
    time.sleep(600)
"#;

struct Bench {
    world: World,
    disk: Disk,
}

impl Bench {
    async fn new() -> Self {
        let world = World::start(generous, well).await;
        let disk = Disk::make(&world.path("image"));
        world.attach_disk(&disk, SERIAL);
        fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(world.path("signs")).unwrap();
        fs::set_permissions(world.path("signs"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(world.path("train.py"), TRAINING).unwrap();
        Self { world, disk }
    }

    /// Runs the first attempt until the volume is full, and ends it by sending this signal to the runner.
    async fn fill(&self, fills: &str, signal: Signal) {
        let path = |name: &str| self.world.path(name).to_str().unwrap().to_owned();
        let (sealed, full) = (path("signs/sealed"), path("signs/full"));
        let signs = [("FILLS", fills), ("SEALED", &sealed), ("FULL", &full)];
        // A short grace, as there is no handler, and enough time to close a full volume on a busy machine.
        let times = [("SPOTSWEEP_GRACE_SECONDS", "5"), ("SPOTSWEEP_STOP_SECONDS", "240")];
        let variables = [&[("SPOTSWEEP_USER", "43210:43211")][..], &signs, &times].concat();
        let runner = self.world.spawn_contained(&variables, &["python3", &path("train.py")]);
        let is_sealed = || self.world.invocations("report").iter().any(|report| report["seal"]["newest"] == "c1.pt");
        until("a seal", is_sealed).await;
        fs::write(&sealed, "").unwrap();
        until("a full volume", || self.world.path("signs/full").exists()).await;
        send(&runner, signal);
        let outcome = self.world.outcome(runner).await;
        if signal == Signal::TERM {
            assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
            assert!(self.world.invocations("release")[0]["seal"]["files"].as_u64() >= Some(1), "{}", outcome.stderr);
        }
    }

    async fn go_on(&self) -> Outcome {
        let script = self.world.path("train.py");
        let user = [("SPOTSWEEP_USER", "43210:43211"), ("AWS_BATCH_JOB_ATTEMPT", "2")];
        let runner = self.world.spawn_contained(&user, &["python3", script.to_str().unwrap()]);
        self.world.outcome(runner).await
    }

    fn assert_went_on(&self, second: &Outcome) {
        assert_eq!(second.code, Some(0), "{}", second.stderr);
        assert!(second.stdout.starts_with("found ['c1.pt'"), "{}", second.stdout);
        assert_eq!(self.world.invocations("end")[0]["metrics"]["score"]["last"], json!(2.0));
    }
}

/// The test takes half a minute: three volumes are filled, one of them with a file for each inode.
#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_fills_its_volume_goes_on() {
    if !met(block_devices()) {
        return;
    }
    for (fills, signal) in [("bytes", Signal::TERM), ("bytes", Signal::KILL), ("names", Signal::TERM)] {
        let bench = Bench::new().await;
        bench.fill(fills, signal).await;
        let second = bench.go_on().await;
        bench.assert_went_on(&second);
        if signal == Signal::TERM {
            let log = String::from_utf8(bench.world.output("train.log").unwrap()).unwrap();
            assert!(log.contains("No space left on device"), "{fills}: the first attempt's log is kept: {log}");
        }
    }
}

/// The volume has no reserved space, as if it was full before the runner could reserve any.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_without_any_room_keeps_its_seal() {
    if !met(block_devices()) {
        return;
    }
    let bench = Bench::new().await;
    bench.fill("bytes", Signal::TERM).await;
    let fill = r#"mount "$1" "$2" && rm -rf "$2"/.spotsweep/reserve-* "$2"/.spotsweep/kept/*
        cat /dev/zero > "$2/fill"; i=0; while echo x > "$2/fill-$i"; do i=$((i+1)); done; sync; umount "$2""#;

    let (disk, point) = (bench.disk.0.clone(), bench.world.path("signs"));
    let filled = Command::new("unshare").args(["--mount", "sh", "-c", fill, "sh"]).args([&disk, &point]).output();
    let filled = filled.unwrap();
    assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
    let second = bench.go_on().await;
    bench.assert_went_on(&second);
    assert!(second.stderr.contains("the seal is not written"), "{}", second.stderr);
}
