//! Trainings with the real libraries, written as in their documentation: interrupted, and started again.
//!
//! Opt-in: `SPOTSWEEP_PACKAGES_PYTHON` names a Python with the packages of `requirements.txt`.

mod mlflow;
mod scripts;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use spotsweep_needs::opted_in;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::attempts::{End, after, trial};
use crate::world::{World, until};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packages");
/// Limits how many trainings run at the same time, because each one uses two cores at its start.
static PLACES: Semaphore = Semaphore::const_new(3);

#[derive(Debug, Clone, Copy)]
struct Case {
    /// The program and its arguments.
    words: &'static [&'static str],
    /// The text before the number in a checkpoint's name. Without it the checkpoint is one file, and the line
    /// `epoch=<number> score=<number>` follows each of its versions.
    name: Option<&'static str>,
    /// A checkpoint: its number, the file that is written last, and the first file of the next checkpoint.
    number: i64,
    last: &'static str,
    next: &'static str,
    /// Whether the training saves a later checkpoint after a notice.
    goes_further: bool,
    whens: &'static [When],
}

/// When the first attempt is interrupted.
#[derive(Debug, Clone, Copy)]
enum When {
    /// By a notice, a second after a checkpoint.
    Noticed,
    /// Without a notice, a second after a checkpoint.
    LostBetween,
    /// Without a notice, while the next checkpoint is written.
    LostWithin,
}

/// The largest number of a checkpoint that was not quarantined.
fn newest(names: &[String], aside: &[String], start: &str) -> Option<i64> {
    let kept = names.iter().filter(|name| !aside.contains(name));
    let number = |name: &String| name.split_once(start)?.1.split(['.', '-']).next()?.parse().ok();
    kept.filter_map(number).max()
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Size and time of the last change of a file.
fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let found = fs::metadata(path).ok()?;
    Some((found.len(), found.modified().unwrap()))
}

impl Case {
    /// Waits for the moment of the interruption.
    async fn until(&self, when: When, world: &World, folder: &Path) {
        let is_there = || match self.name {
            Some(_) => folder.join(self.last).exists(),
            None => world.has_score(2.0),
        };
        until("a checkpoint", is_there).await;
        // The checkpoint may still be incomplete.
        sleep(Duration::from_secs(1)).await;
        let (path, started) = (folder.join(self.next), Instant::now());
        let before = stamp(&path);
        while matches!(when, When::LostWithin) && stamp(&path) == before {
            assert!(started.elapsed() < Duration::from_secs(60), "{self:?} writes no other checkpoint");
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether a training that started after `started` lost no more than it may. The last output of the first attempt
    /// was `said`, and its newest checkpoint was `newest`.
    fn is_right(&self, when: When, started: i64, said: Option<i64>, newest: Option<i64>) -> bool {
        let is_newest = match self.name {
            Some(_) => newest == Some(started),
            // The line may be lost with the instance.
            None => said.is_some_and(|said| started == said || started == said + 1),
        };
        match when {
            When::Noticed => is_newest && (started > self.number || !self.goes_further),
            When::LostBetween => is_newest && started >= self.number,
            // The checkpoint that was being written may have a name too.
            When::LostWithin => started >= self.number,
        }
    }
}

/// Prints a row: when, the newest checkpoint by name and by output, the start of the last attempt, the quarantine, the
/// attempts' ends. Returns a failure with the logs.
async fn run(python: &str, case: Case, when: When) -> Option<String> {
    let _place = PLACES.acquire().await.unwrap();
    let (world, start) = (trial().await, Instant::now());
    let own = ["env", "-C", SCRIPTS, "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", python];
    let command = [&own, case.words].concat();
    let runner = world.spawn(&[], &command);
    let folder = world.path("volume/checkpoints");
    case.until(when, &world, &folder).await;
    let end = if matches!(when, When::Noticed) { End::Notice(12) } else { End::Lost };
    let first = world.interrupt(runner, end).await;
    let there = names(&folder);
    let mut last = world.next(3, &[], &command).await;
    let mut attempts = 2;
    while last.code == Some(75) && attempts < 4 {
        attempts += 1;
        last = world.next(attempts + 1, &[], &command).await;
    }
    let number = |text, start| after(text, start)?.parse::<i64>().ok();
    let (started, said, ended) =
        (number(&last.stdout, "START after="), number(&first.stdout, "epoch="), number(&last.stdout, "END at="));
    let (aside, words) = (world.aside(), case.words.join(" "));
    let newest = case.name.and_then(|name| newest(&there, &aside, name));
    let row = format!(
        "{words} | {when:?} | {newest:?}, {said:?} | {started:?} | {aside:?} | {attempts}, {ended:?}, {:?} | {} s",
        last.code,
        start.elapsed().as_secs()
    );
    eprintln!("{row}");
    let starts_right = started.is_some_and(|started| case.is_right(when, started, said, newest));
    let is_right = starts_right && ended.is_some() && last.code == Some(0);
    let logs = format!("{row}\n{}\n{}\n{}\n{}", first.stdout, first.stderr, last.stdout, last.stderr);
    (!is_right).then_some(logs)
}

const ALL: &[When] = &[When::Noticed, When::LostBetween, When::LostWithin];
const NOTICED: &[When] = &[When::Noticed];

const TRAINER: Case = Case {
    words: &["trainer.py"],
    name: Some("checkpoint-"),
    number: 40,
    last: "checkpoint-40/trainer_state.json",
    next: "checkpoint-60",
    goes_further: true,
    whens: ALL,
};
const ACCELERATE: Case = Case {
    words: &["accelerated.py"],
    name: Some("epoch_"),
    number: 1,
    last: "epoch_1/random_states_0.pkl",
    next: "epoch_2",
    ..TRAINER
};
/// It handles the signal: it ends at the next batch, and saves only if it is configured to.
const LIGHTNING: Case = Case {
    words: &["pl.py"],
    name: Some("step="),
    last: "step=40.ckpt",
    next: "step=60.ckpt",
    goes_further: false,
    whens: ALL,
    ..TRAINER
};

const fn files(words: &'static [&'static str], name: &'static str, last: &'static str, next: &'static str) -> Case {
    Case { words, name: Some(name), number: 2, last, next, goes_further: true, whens: ALL }
}

const fn in_place(words: &'static [&'static str], file: &'static str) -> Case {
    Case { words, name: None, number: 2, last: file, next: file, goes_further: true, whens: ALL }
}

const CASES: [Case; 13] = [
    TRAINER,
    Case { words: &["trainer.py", "--jit"], whens: NOTICED, ..TRAINER },
    Case { words: &["-m", "torch.distributed.run", "--nproc_per_node=1", "trainer.py"], ..TRAINER },
    ACCELERATE,
    Case { words: &["-m", "accelerate.commands.launch", "--cpu", "accelerated.py"], ..ACCELERATE },
    LIGHTNING,
    Case { words: &["pl.py", "--link"], ..LIGHTNING },
    Case { words: &["pl.py", "--exception"], goes_further: true, whens: NOTICED, ..LIGHTNING },
    in_place(&["keras_fit.py", "backup"], "backup/latest.weights.h5"),
    files(&["keras_fit.py", "model"], "cp-", "cp-0002.keras", "cp-0003.keras"),
    files(&["keras_fit.py", "weights"], "cp-", "cp-0002.weights.h5", "cp-0003.weights.h5"),
    in_place(&["arrays.py", "one-file"], "train.h5"),
    files(&["arrays.py", "files"], "epoch_", "epoch_2.h5", "epoch_3.h5"),
];

#[tokio::test(flavor = "multi_thread")]
async fn libraries_start_from_their_newest_checkpoint() {
    let Some(python) = opted_in("SPOTSWEEP_PACKAGES_PYTHON") else { return };
    let mut trials = JoinSet::new();
    for (case, when) in CASES.iter().flat_map(|case| case.whens.iter().map(move |when| (*case, *when))) {
        let python = python.clone();
        trials.spawn(async move { run(&python, case, when).await });
    }
    let wrong: Vec<_> = trials.join_all().await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
