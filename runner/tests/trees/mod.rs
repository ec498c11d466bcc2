//! Process trees of people's own: who gets the stop signal, and what is waited for.

use std::time::Duration;

use crate::world::{INTERRUPTION, Outcome, World, generous, in_seconds, until, well};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees/scripts");

/// Interrupts the command once its metric `score` has this value, `notice` seconds before the instance's end, and goes on
/// with a second attempt on the same volume.
async fn interrupted(world: &World, command: &[&str], score: u32, notice: i64) -> (Outcome, Outcome) {
    std::fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
    let command = [&["env", "-C", SCRIPTS], command].concat();
    let runner = world.spawn(&[], &command);
    let reached = || {
        let reports = world.invocations("report");
        reports.iter().any(|report| report["metrics"]["score"]["last"].as_f64() >= Some(f64::from(score)))
    };
    until("the training trains", reached).await;
    world.announce(INTERRUPTION, &in_seconds(notice));
    let first = world.outcome(runner).await;
    world.announce(INTERRUPTION, "404 - Not Found");
    let root = world.path("second");
    let extra = [("SPOTSWEEP_ROOT", root.to_str().unwrap()), ("AWS_BATCH_JOB_ATTEMPT", "3")];
    let second = world.run(&extra, &command).await;
    (first, second)
}

fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.split_once(start)).map(|(_, rest)| rest.split(' ').next().unwrap_or(rest))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_saves_whatever_has_started_it() {
    let pipeline = "python3 sig.py --steps=5 2>&1 | tee /dev/null";
    let trap = "trap 'echo ended' TERM; python3 sig.py --steps=5; exit $?";
    let commands: [&[&str]; 9] = [
        &["python3", "sig.py", "--steps=5"],
        &["sh", "run.sh", "--steps=5"],
        &["bash", "run.sh", "--steps=5"],
        &["python3", "launch.py", "--steps=5"],
        &["bash", "-c", pipeline],
        &["sh", "-c", "cd . && python3 sig.py --steps=5; echo done"],
        &["bash", "-c", trap],
        &["timeout", "600", "nohup", "python3", "sig.py", "--steps=5"],
        &["python3", "workers.py", "--workers=2"],
    ];
    for command in commands {
        let world = World::start(generous, well).await;
        let (first, second) = interrupted(&world, command, 1, 8).await;
        let saved = after(&first.stdout, "saved step ");
        assert!(saved.is_some(), "{command:?} {} {}", first.stdout, first.stderr);
        assert_eq!(first.code, Some(75), "{command:?}");
        assert_eq!(after(&second.stdout, "START after_step="), saved, "{command:?} {}", second.stdout);
        assert_eq!(second.code, Some(0), "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_without_a_handler_completes_its_next_checkpoint() {
    let world = World::start(generous, well).await;
    let command = ["bash", "-c", "python3 ck.py --mode=torchzip --epochs=4 --pace=2.6 | cat"];
    let started = std::time::Instant::now();
    let (first, second) = interrupted(&world, &command, 0, 40).await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    assert!(started.elapsed() < Duration::from_secs(35), "the notice is not used up: {}", first.stderr);
    assert!(first.stderr.contains("checkpoint epoch_1.pt is complete"), "{}", first.stderr);
    assert_eq!(after(&second.stdout, "after_epoch="), Some("1"), "{}", second.stdout);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_with_pytorchs_data_loader_saves() {
    let Some(python) = spotsweep_needs::opted_in("SPOTSWEEP_TORCH_PYTHON") else { return };
    let torchrun = [&python, "-m", "torch.distributed.run", "--nproc_per_node=1", "loader.py"];
    for command in [&[python.as_str(), "loader.py"] as &[&str], &torchrun] {
        let world = World::start(generous, well).await;
        let (first, second) = interrupted(&world, command, 5, 60).await;
        let saved = after(&first.stdout, "saved step ");
        assert!(saved.is_some(), "{command:?} {} {}", first.stdout, first.stderr);
        assert_eq!(after(&second.stdout, "START after_step="), saved, "{command:?} {}", second.stdout);
        assert_eq!(second.code, Some(0), "{command:?} {}", second.stderr);
    }
}
