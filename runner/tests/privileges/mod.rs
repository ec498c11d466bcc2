//! What the command may do, as the kernel tells it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, lchown};

use crate::world::{Outcome, World, generous, kind, well};

const TRAINING: &str = r#"
    set -e
    cat /proc/self/status
    for folder in "$SPOTSWEEP_OUTPUT" "$SPOTSWEEP_CHECKPOINTS" "$SPOTSWEEP_DATASETS"; do echo 1 > "$folder/mine"; done
    cat "$SPOTSWEEP_PARAMS" > "$SPOTSWEEP_OUTPUT/parameters"
    echo acc=1 >> "$SPOTSWEEP_METRICS"
    mkdir -p "$HOME/.cache" && echo 1 > "$HOME/.cache/mine"
    echo "Login: $USER $LOGNAME"
"#;
/// Nobody on any machine, one hopes.
const USER: u32 = 43_210;
const GROUP: u32 = 43_211;

fn status(outcome: &Outcome) -> BTreeMap<&str, &str> {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.stdout.lines().filter_map(|line| line.split_once(':')).map(|(name, text)| (name, text.trim())).collect()
}

/// No capability in any set, and none to come.
fn assert_powerless(status: &BTreeMap<&str, &str>, root_before: bool) {
    assert_eq!(status["NoNewPrivs"], "1");
    let bounding = root_before.then_some("CapBnd");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"].into_iter().chain(bounding) {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
}

/// Real, effective, saved, and for files.
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
    if !is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    for workspace in [true, false] {
        let world = World::start(if workspace { generous } else { kind }, well).await;
        fs::create_dir(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        // Others may pass through, as in a container.
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
    if !is_root() {
        eprintln!("skipped: the other tests run without root already");
        return;
    }
    let world = World::start(kind, well).await;
    // Where the binary was built need not be readable for everybody.
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
    // The folder is removed by whom it was made.
    chown(world.path(""), Some(0), Some(0)).unwrap();
}
