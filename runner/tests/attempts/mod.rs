//! Attempts of one trial on one volume: the first is interrupted, and the next ones go on from its checkpoints.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::world::{INTERRUPTION, Outcome, World, generous, in_seconds, well};

/// How the first attempt ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// EC2 gives a notice, this many seconds before it takes the instance.
    Notice(i64),
    /// The instance is lost without a notice.
    Lost,
}

/// Starts a trial whose volume is attached.
pub(crate) async fn trial() -> World {
    let world = World::start(generous, well).await;
    fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
    world
}

impl World {
    /// Whether a report has the metric `score` with this value or a larger one.
    pub(crate) fn has_score(&self, score: f64) -> bool {
        let reports = self.invocations("report");
        reports.iter().any(|report| report["metrics"]["score"]["last"].as_f64() >= Some(score))
    }

    /// Interrupts the attempt that `runner` runs.
    pub(crate) async fn interrupt(&self, runner: Child, end: End) -> Outcome {
        match end {
            End::Notice(seconds) => self.announce(INTERRUPTION, &in_seconds(seconds)),
            End::Lost => lose(i32::try_from(runner.id().unwrap()).unwrap()),
        }
        let outcome = self.outcome(runner).await;
        self.announce(INTERRUPTION, "404 - Not Found");
        outcome
    }

    /// Runs the next attempt with the same paths.
    pub(crate) async fn next(&self, attempt: u32, extra: &[(&str, &str)], command: &[&str]) -> Outcome {
        self.run(&[extra, &[("AWS_BATCH_JOB_ATTEMPT", &attempt.to_string())]].concat(), command).await
    }

    /// The names of the files and folders in the runner's quarantine.
    pub(crate) fn aside(&self) -> Vec<String> {
        let folder = self.path("volume/.spotsweep/torn");
        let mut names: Vec<_> = entries(&folder).iter().flat_map(|attempt| entries(&folder.join(attempt))).collect();
        names.sort();
        names
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Kills a process and all processes below it at once.
fn lose(root: i32) {
    let mut family = vec![root];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let tasks = format!("/proc/{parent}/task");
        for task in entries(Path::new(&tasks)) {
            let children = fs::read_to_string(format!("{tasks}/{task}/children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        next += 1;
    }
    for pid in family {
        // Fails only if the process has ended with its parent.
        let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
}

/// The word after `start` in the last line that contains `start`.
pub(crate) fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let rest = text.lines().rev().find_map(|line| line.split_once(start))?.1;
    rest.split(' ').next()
}
