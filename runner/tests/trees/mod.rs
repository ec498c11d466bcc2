//! Users' own process trees: which processes get the stop signal, and for which ones the runner waits.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::attempts::{End, after, trial};
use crate::habits::SCRIPT;
use crate::world::{Outcome, until};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees/scripts");

/// Sets the signals as in a container, because the tests themselves may run in the background of a shell.
const DEFAULT: &[&str] = &["env", "--default-signal=INT,QUIT"];

/// Interrupts the command once its metric `score` has this value, `notice` seconds before the instance's end. Then a
/// second attempt goes on with the same volume.
async fn interrupted(command: &[&str], score: f64, notice: i64) -> (Outcome, Outcome) {
    let world = trial().await;
    let command = [DEFAULT, &["-C", SCRIPTS], command].concat();
    let runner = world.spawn(&[], &command);
    until("the training trains", || world.has_score(score)).await;
    let first = world.interrupt(runner, End::Notice(notice)).await;
    (first, world.next(3, &[], &command).await)
}

/// Checks that the first attempt saves, and that the second one starts from that checkpoint.
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
    const POLLS: &str = "python3 sig.py --steps=5 & while kill -0 $!; do sleep 0.2; done; wait $!";
    const ITS_LOG: &str = "log=$(mktemp); python3 sig.py --steps=5 >$log & tail -f --pid=$! $log; wait $!";
    // The server is taken for the training, and does not end before the training.
    const SERVER_LAST: &str = "python3 sig.py --steps=14 & training=$!
        python3 -c 'import signal, time; signal.signal(15, print); print(\"serves\", flush=True); time.sleep(60)' &
        wait $training";
    const COMMANDS: [&[&str]; 17] = [
        &["python3", "sig.py", "--steps=5"],
        &["sh", "run.sh", "--steps=5"],
        &["bash", "run.sh", "--steps=5"],
        &["python3", "launch.py", "wait", "--steps=5"],
        &["python3", "launch.py", "poll", "--steps=5"],
        &["python3", "launch.py", "stream", "--steps=5"],
        &["python3", "launch.py", "asyncio", "--steps=5"],
        &["python3", "launch.py", "thread", "--steps=5"],
        &["python3", "launch.py", "poll a shell", "--steps=5"],
        &["bash", "-c", PIPELINE],
        &["sh", "-c", "cd . && python3 sig.py --steps=5; echo done"],
        &["bash", "-c", TRAP],
        &["sh", "-c", POLLS],
        &["sh", "-c", ITS_LOG],
        &["timeout", "600", "nohup", "python3", "sig.py", "--steps=5"],
        &["python3", "workers.py", "--workers=0"],
        &["python3", "workers.py", "--workers=2"],
    ];
    let mut trials: JoinSet<_> = COMMANDS.map(|command| saves(command, 1.0, 8)).into_iter().collect();
    trials.spawn(saves(&["sh", "-c", SERVER_LAST], 1.0, 16));
    trials.join_all().await;
}

/// Without its helper, the training cannot save.
#[tokio::test(flavor = "multi_thread")]
async fn a_training_saves_before_its_helper_ends() {
    const BOTH_IN_BACKGROUND: &str =
        "path=$(mktemp -u); python3 helper.py $path & while [ ! -S $path ]; do sleep 0.05; done
        python3 asks.py --steps=5 --path=$path & wait $!";
    const COMMANDS: [&[&str]; 4] = [
        &["sh", "served.sh", "asks.py", "--steps=5"],
        &["bash", "served.sh", "asks.py", "--steps=5"],
        &["python3", "served.py", "asks.py", "--steps=5"],
        &["bash", "-c", BOTH_IN_BACKGROUND],
    ];
    let mut trials: JoinSet<_> = COMMANDS.map(|command| saves(command, 1.0, 8)).into_iter().collect();
    // The save takes longer than half of the grace.
    trials.spawn(saves(&["sh", "served.sh", "asks.py", "--steps=5", "--save=7"], 1.0, 16));
    trials.join_all().await;
}

/// A helper of a shell or of the training handles the signal, but does not get it while the training runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_changes_nothing_for_a_training_without_a_handler() {
    let helper = format!("python3 {SCRIPTS}/helper.py $(mktemp -u) &");
    let after_it = "; code=$?; kill $!; exit $code";
    completes(&[&helper], after_it).await;
    completes(&[&helper, "exec"], "").await;

    let world = trial().await;
    let script = format!("{helper} python3 {SCRIPT} '--habit=new files' --ready=2 {after_it}");
    let holding = world.path("holding");
    let runner = world.spawn(&[("HOLDING", holding.to_str().unwrap())], &[DEFAULT, &["sh", "-c", &script]].concat());
    until("the training trains", || holding.exists()).await;
    let first = world.interrupt(runner, End::Notice(40)).await;
    assert_eq!((after(&first.stdout, "score="), first.code), (Some("5"), Some(0)), "{}", first.stderr);
}

/// Checks that the first attempt completes its next checkpoint, and that the second one starts from it.
async fn completes(launcher: &[&str], after_it: &str) {
    let world = trial().await;
    let script = format!("{} python3 {SCRIPT} --habit=zip --ready=2 --hold=3 {after_it}", launcher.join(" "));
    let (command, holding) = ([DEFAULT, &["bash", "-c", &script]].concat(), world.path("holding"));
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

/// If they got the signal, uv would end a training without a handler, and Open MPI would end every training.
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
