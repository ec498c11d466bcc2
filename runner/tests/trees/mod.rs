//! Process trees of people's own: who gets the stop signal, and what is waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::attempts::{End, after, trial};
use crate::habits::SCRIPT;
use crate::world::{Outcome, until};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees/scripts");

/// Interrupts the command once its metric `score` has this value, `notice` seconds before the instance's end, and goes on
/// with a second attempt on the same volume.
async fn interrupted(command: &[&str], score: f64, notice: i64) -> (Outcome, Outcome) {
    let world = trial().await;
    let command = [&["env", "-C", SCRIPTS], command].concat();
    let runner = world.spawn(&[], &command);
    until("the training trains", || world.has_score(score)).await;
    let first = world.interrupt(runner, End::Notice(notice)).await;
    (first, world.next(3, &[], &command).await)
}

/// The first attempt has saved, and the second one starts from that.
async fn saves(command: &[&str], score: f64, notice: i64) {
    let (first, second) = interrupted(command, score, notice).await;
    let saved = after(&first.stdout, "saved step ");
    assert!(saved.is_some(), "{command:?} {} {}", first.stdout, first.stderr);
    assert_eq!(first.code, Some(75), "{command:?}");
    assert_eq!(after(&second.stdout, "START after_step="), saved, "{command:?} {}", second.stdout);
    assert_eq!(second.code, Some(0), "{command:?} {}", second.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_saves_whatever_has_started_it() {
    const PIPELINE: &str = "python3 sig.py --steps=5 2>&1 | tee /dev/null";
    const TRAP: &str = "trap 'echo ended' TERM; python3 sig.py --steps=5; exit $?";
    const COMMANDS: [&[&str]; 10] = [
        &["python3", "sig.py", "--steps=5"],
        &["sh", "run.sh", "--steps=5"],
        &["bash", "run.sh", "--steps=5"],
        &["python3", "launch.py", "--steps=5"],
        &["bash", "-c", PIPELINE],
        &["sh", "-c", "cd . && python3 sig.py --steps=5; echo done"],
        &["bash", "-c", TRAP],
        &["timeout", "600", "nohup", "python3", "sig.py", "--steps=5"],
        &["python3", "workers.py", "--workers=0"],
        &["python3", "workers.py", "--workers=2"],
    ];
    COMMANDS.map(|command| saves(command, 1.0, 8)).into_iter().collect::<JoinSet<_>>().join_all().await;
}

/// The first attempt completes its next checkpoint, and the second one starts from that.
async fn completes(launcher: &[&str], after_it: &str) {
    let world = trial().await;
    let script = format!("{} python3 {SCRIPT} --habit=zip --ready=2 --hold=3 {after_it}", launcher.join(" "));
    let (command, holding) = (["bash", "-c", &script], world.path("holding"));
    let runner = world.spawn(&[("HOLDING", holding.to_str().unwrap())], &command);
    until("the training trains", || holding.exists()).await;
    let started = Instant::now();
    let first = world.interrupt(runner, End::Notice(40)).await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    assert!(started.elapsed() < Duration::from_secs(25), "the notice is not used up: {}", first.stderr);
    assert!(first.stderr.contains("checkpoint epoch_3.pt is complete"), "{launcher:?} {}", first.stderr);
    let second = world.next(3, &[], &command).await;
    assert_eq!((after(&second.stdout, "after_epoch="), second.code), (Some("3"), Some(0)), "{}", second.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_without_a_handler_completes_its_next_checkpoint() {
    completes(&[], "| cat").await;
}

/// Without being passed over, uv ends a training without a handler, and Open MPI ends every training.
#[tokio::test(flavor = "multi_thread")]
async fn launchers_from_packages_are_passed_over() {
    let Some(python) = spotsweep_needs::opted_in("SPOTSWEEP_PACKAGES_PYTHON") else { return };
    let program = |name: &str| Path::new(&python).with_file_name(name).display().to_string();
    let (uv, mpirun) = (program("uv"), program("mpirun"));
    let launchers: [&[&str]; 2] =
        [&[&uv, "run", "--no-project", "--offline"], &[&mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "1"]];
    for launcher in launchers {
        saves(&[launcher, &["python3", "sig.py", "--steps=5"]].concat(), 1.0, 8).await;
        completes(launcher, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_with_pytorchs_data_loader_saves() {
    let Some(python) = spotsweep_needs::opted_in("SPOTSWEEP_TORCH_PYTHON") else { return };
    let torchrun = [&python, "-m", "torch.distributed.run", "--nproc_per_node=1", "loader.py"];
    for command in [&[python.as_str(), "loader.py"] as &[&str], &torchrun] {
        saves(command, 5.0, 60).await;
    }
}
