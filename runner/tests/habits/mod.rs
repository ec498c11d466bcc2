//! What happens to a training, depending on how it saves its checkpoints. Each row of a table is one trial, and one row
//! of the table in docs/habits.md.

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::attempts::{End, after, trial};
use crate::world::until;

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/habits/habit.py");
/// Limits how many trials run at the same time.
static PLACES: Semaphore = Semaphore::const_new(8);
/// Rare reports and uploads, because the tests here do not check them.
const QUIET: [(&str, &str); 2] = [("SPOTSWEEP_REPORT_SECONDS", "60"), ("SPOTSWEEP_UPLOAD_SECONDS", "60")];
/// The same, with rare seals as well.
const SELDOM: [(&str, &str); 3] = [QUIET[0], QUIET[1], ("SPOTSWEEP_SEAL_SECONDS", "600")];

/// The habit, more options, how the first attempt ends, the epoch after which the last attempt starts, the quarantined
/// files, and the number of attempts.
type Row = (&'static str, &'static [&'static str], End, &'static str, &'static [&'static str], u32);

/// Runs a row; returns what is not as expected.
async fn wrong((habit, options, end, after_epoch, aside, attempts): Row, settings: &[(&str, &str)]) -> Option<String> {
    let world = trial().await;
    let command = [&["python3", SCRIPT, "--habit", habit], options].concat();
    let holding = world.path("holding");
    let extra = [settings, &[("HOLDING", holding.to_str().unwrap())]].concat();
    let runner = world.spawn(&extra, &command);
    until("the training trains", || holding.exists()).await;
    let first = world.interrupt(runner, end).await;
    let mut last = world.next(3, settings, &command).await;
    let mut ran = 2;
    while last.code == Some(75) && ran < 4 {
        ran += 1;
        last = world.next(ran + 1, settings, &command).await;
    }
    let found = (after(&last.stdout, "after_epoch="), after(&last.stdout, "score="), last.code, ran);
    let is_right = found == (Some(after_epoch), Some("5"), Some(0), attempts) && world.aside() == aside;
    let logs = || format!("{}\n{}\n{}\n{}", first.stdout, first.stderr, last.stdout, last.stderr);
    (!is_right).then(|| format!("{habit} {options:?} {end:?}: {found:?}, aside {:?}\n{}", world.aside(), logs()))
}

async fn check(rows: impl IntoIterator<Item = Row>) {
    check_with(rows, &QUIET).await;
}

async fn check_with(rows: impl IntoIterator<Item = Row>, settings: &'static [(&str, &str)]) {
    let mut trials = JoinSet::new();
    for row in rows {
        trials.spawn(async move {
            let _place = PLACES.acquire().await.unwrap();
            wrong(row, settings).await
        });
    }
    let wrong: Vec<_> = trials.join_all().await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files of epoch 3.
const SHARDS: [&str; 2] = ["checkpoint_3-model_part-0-shard0.pt", "checkpoint_3-model_part-0-shard1.pt"];

const HABITS: [&str; 22] = [
    "new files",
    "logs beside",
    "zip",
    "in place",
    "text model",
    "text state",
    "renamed",
    "hard link",
    "symbolic link",
    "raw array",
    "counter",
    "pointer",
    "absolute pointer",
    "mark",
    "folders",
    "number folders",
    "two numbers",
    "dates",
    "shards",
    "ranks",
    "swapped folder",
    "sqlite",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_checkpoint_is_the_start_after_a_lost_instance() {
    check(HABITS.map(|habit| (habit, &["--hold=3"] as &[_], End::Lost, "3", &[] as &[_], 2))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_handler_the_next_checkpoint_is_completed_within_the_notice() {
    // The runner then waits for two seconds of quiet, because on a busy machine a save may pause for one.
    let options: &[_] = &["--ready=2", "--hold=3"];
    check(HABITS.map(|habit| (habit, options, End::Notice(20), "3", &[] as &[_], 2))).await;
}

/// The interruption comes long before the first regular seal.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_checkpoint_is_sealed_at_once() {
    let rows: [Row; 4] = [
        ("counter", &["--cut=1:1:empty"], End::Lost, "0", &["state.json"], 2),
        ("in place", &["--cut=1:0:empty"], End::Lost, "0", &["ckpt.pkl"], 2),
        ("text state", &["--cut=1:0:empty"], End::Lost, "0", &["weights.csv"], 2),
        // Only the training can detect that rows are missing.
        ("text state", &["--cut=1:0:half"], End::Lost, "0", &["weights.csv"], 3),
    ];
    check_with(rows, &SELDOM).await;
}

/// The checkpoints follow each other so fast that the runner cannot take any of them for complete.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_handler_a_training_may_reach_its_end_within_the_notice() {
    let world = trial().await;
    let holding = world.path("holding");
    let command = ["python3", SCRIPT, "--habit=new files", "--ready=2"];
    let runner = world.spawn(&[("HOLDING", holding.to_str().unwrap())], &command);
    until("the training trains", || holding.exists()).await;
    let first = world.interrupt(runner, End::Notice(120)).await;
    assert!(first.stderr.contains("no process handles SIGTERM"), "{}", first.stderr);
    assert_eq!((after(&first.stdout, "score="), first.code), (Some("5"), Some(0)), "{}", first.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_that_saves_on_the_signal_loses_nothing() {
    let options: &[_] = &["--hold=3", "--saves-on-sigterm"];
    let habits = ["new files", "in place", "folders"];
    check(habits.map(|habit| (habit, options, End::Notice(60), "4", &[] as &[_], 2))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_cut_off_leaves_the_one_before() {
    use End::{Lost, Notice};
    let rows: [Row; 38] = [
        ("new files", &["--cut=3:0:half"], Lost, "2", &["epoch_3.pkl"], 2),
        ("zip", &["--cut=3:0:half"], Lost, "2", &["epoch_3.pt"], 2),
        // The grace is too short for the checkpoint, with and without a handler.
        ("zip", &["--cut=3:0:half"], Notice(3), "2", &["epoch_3.pt"], 2),
        ("new files", &["--hold=3", "--cut=4:0:half", "--saves-on-sigterm"], Notice(6), "3", &["epoch_4.pkl"], 2),
        ("in place", &["--cut=3:0:half"], Lost, "2", &["ckpt.pkl"], 2),
        ("in place", &["--cut=3:0:half"], Notice(3), "2", &["ckpt.pkl"], 2),
        ("logs beside", &["--cut=3:0:half"], Lost, "2", &["epoch_3.pkl"], 2),
        ("text model", &["--cut=3:0:half"], Lost, "2", &["model.txt"], 2),
        ("text model", &["--cut=3:0:half"], Notice(3), "2", &["model.txt"], 2),
        ("text state", &["--cut=3:0:empty"], Lost, "2", &["weights.csv"], 2),
        ("renamed", &["--cut=3:0:half"], Lost, "2", &[], 2),
        ("renamed", &["--cut=3:0:half"], Notice(3), "2", &[], 2),
        ("hard link", &["--cut=3:0:half"], Lost, "2", &["tmp.pth"], 2),
        ("symbolic link", &["--cut=3:0:half"], Lost, "2", &["epoch=3.ckpt"], 2),
        ("counter", &["--cut=3:1:half"], Lost, "2", &["state.json"], 2),
        ("counter", &["--cut=3:1:empty"], Lost, "2", &["state.json"], 2),
        ("pointer", &["--cut=3:0:half"], Lost, "2", &["global_step103"], 2),
        ("pointer", &["--cut=3:1:empty"], Lost, "2", &["latest"], 2),
        ("absolute pointer", &["--cut=3:0:half"], Lost, "2", &["epoch_3.pth"], 2),
        ("mark", &["--cut=3:1:before"], Lost, "2", &[], 2),
        ("folders", &["--cut=3:0:half"], Lost, "2", &["checkpoint-3"], 2),
        ("number folders", &["--cut=3:0:half"], Lost, "2", &["3"], 2),
        // A folder that is still empty.
        ("folders", &["--cut=3:0:before"], Lost, "2", &[], 2),
        ("number folders", &["--cut=3:0:before"], Lost, "2", &[], 2),
        ("counter", &["--cut=3:1:empty"], Notice(3), "2", &["state.json"], 2),
        // A complete file in an incomplete folder: only the training can detect that.
        ("folders", &["--cut=3:1:before"], Lost, "2", &["checkpoint-3"], 3),
        ("number folders", &["--cut=3:1:before"], Notice(3), "2", &["3"], 3),
        ("two numbers", &["--cut=3:1:half"], Lost, "2", &["epoch_0_step_3"], 2),
        ("two numbers", &["--cut=3:1:before"], Lost, "2", &["epoch_0_step_3"], 3),
        ("dates", &["--cut=3:1:half"], Lost, "2", &["2026-01-01_00-00-03"], 2),
        ("dates", &["--cut=3:1:before"], Lost, "2", &["2026-01-01_00-00-03"], 3),
        ("shards", &["--cut=3:1:half"], Lost, "2", &[SHARDS[0], SHARDS[1]], 2),
        ("shards", &["--cut=3:2:before"], Lost, "2", &[SHARDS[0], SHARDS[1]], 3),
        ("ranks", &["--cut=3:1:half"], Lost, "2", &["rank0", "rank1"], 2),
        ("ranks", &["--cut=3:2:before"], Lost, "2", &["rank0", "rank1"], 3),
        ("swapped folder", &["--cut=3:0:half"], Lost, "2", &["new"], 2),
        ("sqlite", &["--cut=3:0:half"], Lost, "2", &[], 2),
        // Half of the file is of epoch 2, as a comparison with the sealed version shows.
        ("raw array", &["--cut=3:0:half"], Lost, "2", &["weights.bin"], 2),
    ];
    check(rows).await;
}
