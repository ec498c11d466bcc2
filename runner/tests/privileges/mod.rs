//! What the kernel allows the command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, lchown};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::json;
use spotsweep_needs::{met, root};

use crate::world::{Answer, Invoke, Outcome, TASK, World, generous, kind, well};

const TRAINING: &str = r#"
    set -e
    cat /proc/self/status
    for folder in "$SPOTSWEEP_OUTPUT" "$SPOTSWEEP_CHECKPOINTS" "$SPOTSWEEP_DATASETS"; do echo 1 > "$folder/mine"; done
    cat "$SPOTSWEEP_PARAMS" > "$SPOTSWEEP_OUTPUT/parameters"
    echo acc=1 >> "$SPOTSWEEP_METRICS"
    mkdir -p "$HOME/.cache" && echo 1 > "$HOME/.cache/mine"
    echo "Login: $USER $LOGNAME"
"#;
/// A number that is probably no user's on any machine.
const USER: u32 = 43_210;
const GROUP: u32 = 43_211;

fn status(outcome: &Outcome) -> BTreeMap<&str, &str> {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout.lines().filter_map(|line| line.split_once(':')).map(|(name, text)| (name, text.trim())).collect()
}

/// Asserts that there is no capability in any set, and that none can be gained.
fn assert_powerless(status: &BTreeMap<&str, &str>, root_before: bool) {
    assert_eq!(status["NoNewPrivs"], "1");
    let bounding = root_before.then_some("CapBnd");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"].into_iter().chain(bounding) {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
}

/// The real, effective, saved and file system id.
fn four(id: &str) -> String {
    [id; 4].join("\t")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_has_no_capabilities_and_gets_none() {
    let world = World::start(kind, well).await;
    let outcome = world.run(&[], &["sh", "-c", TRAINING]).await;
    let status = status(&outcome);
    assert_powerless(&status, is_root());
    let own = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(status["Uid"], four(&own));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_runs_as_the_user_that_was_asked_for() {
    if !met(root()) {
        return;
    }
    for workspace in [true, false] {
        let world = World::start(if workspace { generous } else { kind }, well).await;
        fs::create_dir(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        // Others may enter the folder, as in a container.
        fs::set_permissions(world.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let user = format!("{USER}:{GROUP}");
        let outcome = world.run(&[("SPOTSWEEP_USER", &user)], &["sh", "-c", TRAINING]).await;
        let status = status(&outcome);
        assert_powerless(&status, true);
        assert_eq!(status["Uid"], four(&USER.to_string()));
        assert_eq!((status["Gid"], status["Groups"]), (four(&GROUP.to_string()).as_str(), ""));
        assert_eq!(status["Login"], "trial trial", "passwd has no entry");
        assert_eq!(world.output("parameters").unwrap(), br#"{"lr":0.1,"name":"a b"}"#);
        assert_eq!(world.invocations("end")[0]["metrics"]["acc"]["last"], 1.0, "it can write its metrics");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_without_root_works_as_well() {
    if !met(root()) {
        return;
    }
    let world = World::start(kind, well).await;
    // The folder in which the binary was built may not be readable for every user.
    let program = world.path("runner");
    fs::copy(env!("CARGO_BIN_EXE_spotsweep-runner"), &program).unwrap();
    for name in ["", "tmp", "dev", "dev/disk", "dev/disk/by-id", "runner"] {
        lchown(world.path(name), Some(USER), Some(GROUP)).unwrap();
    }
    let run = async |extra: &[(&str, &str)]| {
        let mut runner = world.runner(&program, &[], extra, &["sh", "-c", TRAINING]);
        let runner = runner.uid(USER).gid(GROUP).current_dir(world.path("")).spawn().unwrap();
        world.outcome(runner).await
    };
    let outcome = run(&[]).await;
    let status = status(&outcome);
    assert_powerless(&status, false);
    assert_eq!(status["Uid"], four(&USER.to_string()));

    let outcome = run(&[("SPOTSWEEP_USER", "0:0")]).await;
    assert_eq!(outcome.code, Some(78), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("SPOTSWEEP_USER=0:0 needs a container that starts as root"), "{}", outcome.stderr);
    assert!(!outcome.stdout.contains("Uid"), "nothing runs with other rights than those asked for");
    // The user that has made the folder removes it.
    chown(world.path(""), Some(0), Some(0)).unwrap();
}

/// The temporary folder that the job names belongs to the training, which could replace the runner's folder in it.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_files_are_where_the_training_cannot_replace_them() {
    if !met(root()) {
        return;
    }
    let world = World::start(kind, well).await;
    fs::set_permissions(world.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    chown(world.path("tmp"), Some(USER), Some(GROUP)).unwrap();
    let script = r#"case "$SPOTSWEEP_METRICS" in "$TMPDIR"*) exit 3;; esac; echo acc=1 >> "$SPOTSWEEP_METRICS""#;
    let outcome = world.run(&[("SPOTSWEEP_USER", &format!("{USER}:{GROUP}"))], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(world.invocations("end")[0]["metrics"]["acc"]["last"], 1.0);
}

/// The GPUs as the driver lists them: two of four are assigned, and the PCI addresses have another order than the
/// minors.
const GPUS: [(&str, &str, u32); 4] =
    [("00:1b.0", "GPU-b", 1), ("00:1c.0", "GPU-a", 0), ("00:1d.0", "GPU-k", 10), ("00:1e.0", "GPU-c", 2)];

/// Makes a device file that behaves as `/dev/null`.
fn null_device(path: &Path) {
    let everybody = Mode::from_raw_mode(0o666);
    mknodat(CWD, path, FileType::CharacterDevice, everybody, makedev(1, 3)).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
}

/// Makes the driver's list, and device files in the container's own `/dev` and in the host's, which the job mounts.
fn lay_out_gpus(world: &World) {
    fs::set_permissions(world.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir_all(world.path("host-dev/shm")).unwrap();
    fs::create_dir_all(world.path("dev/shm")).unwrap();
    fs::write(world.path("dev/shm/memory"), "shared\n").unwrap();
    std::os::unix::fs::symlink("nvidia0", world.path("dev/first")).unwrap();
    for folder in ["dev", "host-dev"] {
        null_device(&world.path(&format!("{folder}/nvidiactl")));
        for (address, uuid, minor) in GPUS {
            null_device(&world.path(&format!("{folder}/nvidia{minor}")));
            let described = world.path(&format!("proc/driver/nvidia/gpus/0000:{address}"));
            fs::create_dir_all(&described).unwrap();
            let text = format!("Model: \t\t NVIDIA A10G\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n");
            fs::write(described.join("information"), text).unwrap();
        }
    }
}

/// The GPUs that ECS has assigned, as `trial-claim` reports them. The runner looks at a training stalled for a second.
fn grant_with(gpus: &serde_json::Value, request: &str, nth: usize) -> Answer {
    match (request, kind(request, nth)) {
        ("claim", Answer::Json(mut grant)) => {
            grant["granted"]["gpus"] = gpus.clone();
            grant["granted"]["stalls"] = json!({"warn_seconds": 1, "end_seconds": null, "is_last": false});
            Answer::Json(grant)
        }
        (_, other) => other,
    }
}

fn two_assigned(request: &str, nth: usize) -> Answer {
    grant_with(&json!(["GPU-k", "GPU-b"]), request, nth)
}

fn none_assigned(request: &str, nth: usize) -> Answer {
    grant_with(&json!([]), request, nth)
}

fn unlisted_assigned(request: &str, nth: usize) -> Answer {
    grant_with(&json!(["GPU-x"]), request, nth)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gpus_of_other_trials_are_not_there() {
    if !met(root()) {
        return;
    }
    // The GPUs are given by the environment, as NVIDIA's runtime sets it in its mode `legacy`, and by ECS.
    for (user, invoke, given) in [
        ("", kind as Invoke, "GPU-k,GPU-b"),
        ("43210:43211", kind, "GPU-k,GPU-b"),
        ("43210:43211", two_assigned, "void"),
    ] {
        let world = World::start(invoke, well).await;
        lay_out_gpus(&world);
        let script = r#"
            cd "$SPOTSWEEP_ROOT"
            echo $CUDA_VISIBLE_DEVICES $(ls dev) : $(ls host-dev) : $(cat dev/shm/memory) : $(readlink dev/first)
            : > dev/nvidia10 && cat dev/nvidia10 host-dev/nvidia1 dev/nvidiactl && echo opened
            umount dev; mknod dev/nvidia0 c 1 3 && echo made; ls dev/nvidia0 host-dev/nvidia0 && echo there
            exit 0
        "#;
        let host = world.path("host-dev");
        let extra =
            [("NVIDIA_VISIBLE_DEVICES", given), ("SPOTSWEEP_DEV", host.to_str().unwrap()), ("SPOTSWEEP_USER", user)];
        let outcome = world.run(&extra, &["sh", "-c", script]).await;
        let seen = "GPU-k,GPU-b disk first nvidia1 nvidia10 nvidiactl shm : nvidia1 nvidia10 nvidiactl shm : shared : nvidia0\nopened\n";
        assert_eq!(outcome.stdout, seen, "{user}: {}", outcome.stderr);
        assert!(world.path("dev/nvidia0").exists() && world.path("host-dev/nvidia2").exists(), "the host keeps them");
        let task = world.invocations("claim")[0].get("task").cloned();
        let asked = (given == "void").then(|| json!({"arn": TASK, "container": "default"}));
        assert_eq!(task, asked, "ECS is asked where the environment says nothing");
    }
}

/// Such a training would use another trial's GPU.
#[tokio::test(flavor = "multi_thread")]
async fn no_training_starts_where_its_gpus_are_not_known() {
    if !met(root()) {
        return;
    }
    let cases: [(Invoke, &str, &str); 5] = [
        (kind, "void", "the instance shows 4 GPUs, and which are this trial's is not known"),
        (kind, "", "ECS does not say which GPUs it has assigned"),
        (kind, "GPU-x", "the driver does not list GPU-x"),
        (unlisted_assigned, "void", "the driver does not list GPU-x"),
        (none_assigned, "void", "ECS says that it has assigned no GPU"),
    ];
    for (invoke, given, reason) in cases {
        let world = World::start(invoke, well).await;
        lay_out_gpus(&world);
        let extra = [("NVIDIA_VISIBLE_DEVICES", given), ("SPOTSWEEP_USER", "43210:43211")];
        let outcome = world.run(&extra, &["echo", "trained"]).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(75), ""), "{given}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
    }
    // A trial that asks for no GPU trains, and sees none.
    let world = World::start(none_assigned, well).await;
    lay_out_gpus(&world);
    let outcome = world.run(&[], &["sh", "-c", "ls $SPOTSWEEP_ROOT/dev | grep nvidia"]).await;
    assert_eq!(outcome.stdout, "nvidiactl\n", "{}", outcome.stderr);
    assert!(outcome.stderr.contains("asks for no GPU"), "{}", outcome.stderr);
}

/// The training can read every process of its user.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_as_the_trainings_user_sees_what_the_training_sees() {
    if !met(root()) {
        return;
    }
    let world = World::start(two_assigned, well).await;
    lay_out_gpus(&world);
    for folder in ["bin", "signs"] {
        fs::create_dir(world.path(folder)).unwrap();
        fs::set_permissions(world.path(folder), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let program = world.path("bin/nvidia-smi");
    fs::write(&program, "#!/bin/sh\nls $SPOTSWEEP_ROOT/dev > $SPOTSWEEP_ROOT/signs/seen\necho GPU-k, 0\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    let extra = [("PATH", path.as_str()), ("NVIDIA_VISIBLE_DEVICES", "void"), ("SPOTSWEEP_USER", "43210:43211")];
    let wait = "until test -s $SPOTSWEEP_ROOT/signs/seen; do sleep 0.05; done";
    let outcome = world.run(&extra, &["timeout", "30", "sh", "-c", wait]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let seen = fs::read_to_string(world.path("signs/seen")).unwrap();
    assert_eq!(seen, "disk\nfirst\nnvidia1\nnvidia10\nnvidiactl\nshm\n");
}
