//! Removes what a killed stack has left: runners and trainings that still run, devices, and a folder of data.
//!
//! A run is dead when no process holds its lock. A process belongs to the run if it has a variable that names a folder
//! of the run, or if its program or its root lies there. A shell whose working folder is in the run does not belong to
//! it.

mod devices;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};
use spotsweep_emulator::Process;
use tokio::time::{Instant, sleep};

use self::devices::{count, take_away, thaw};
use crate::run_folder::{large, lock_of_dead, runs};
use spotsweep_protocol::failure::{Context, Failure};

/// Variables that jobs and ministack have, and that ministack's functions inherit. Each names a folder of the run.
const MARKS: [&[u8]; 2] = [b"SPOTSWEEP_DEV=", b"STATE_DIR="];
/// How long to wait until killed processes, their mounts and their devices are gone.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
/// The unit in which stat(2) counts blocks.
const STAT_BLOCK: u64 = 512;

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Number of processes that were killed.
    pub processes: usize,
    /// Number of loop devices and mounts that were removed.
    pub devices: usize,
    /// Bytes on disk that were freed.
    pub bytes: u64,
}

impl Cleared {
    /// Whether there was nothing to remove.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Kills what dead runs under the stack's folder have left running, and removes their data. Their logs stay.
///
/// # Errors
/// A process does not end, or a device or folder cannot be removed.
pub async fn clear(local: &Path) -> Result<Cleared, Failure> {
    let mut cleared = Cleared::default();
    for run in runs(local) {
        let Some(_lock) = lock_of_dead(&run) else { continue };
        // The paths in /proc contain no links.
        let run = run.canonicalize().context(|| format!("cannot find {}", run.display()))?;
        cleared.devices += count(&run);
        cleared.processes += end_processes(&run).await?;
        take_away(&run).await?;
        let cannot_remove = || format!("cannot remove what a killed stack has left in {}", run.display());
        for large in large(&run) {
            cleared.bytes += bytes_under(&large);
            fs::remove_dir_all(&large).context(cannot_remove)?;
        }
    }
    Ok(cleared)
}

/// Kills the processes until none is left. Returns how many there were.
async fn end_processes(run: &Path) -> Result<usize, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut ended = BTreeSet::new();
    loop {
        let left = processes_of(run);
        if left.is_empty() {
            return Ok(ended.len());
        }
        if Instant::now() > deadline {
            let pids = left.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(", ");
            return Err(Failure::new(format!(
                "processes of a stack that was killed do not end: {pids}; see {}",
                run.display()
            )));
        }
        // A process that waits for a frozen file system cannot be killed.
        thaw(run, &left);
        for process in left {
            kill(&process);
            ended.insert((process.pid, process.started));
        }
        sleep(POLL).await;
    }
}

/// Kills the process if its number still belongs to it. A process that has the number now was started later.
fn kill(process: &Process) {
    let now = Process::read(Path::new(&format!("/proc/{}/stat", process.pid)));
    let is_same = now.is_some_and(|now| now.started == process.started);
    if let Some(pid) = Pid::from_raw(process.pid).filter(|_| is_same) {
        // An error means that the process has just ended.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes with the run's variables, their descendants, and the processes in the same groups.
fn processes_of(run: &Path) -> Vec<Process> {
    let all: Vec<Process> = Process::all().into_iter().filter(|process| !process.is_dead()).collect();
    let is_own = |process: &&Process| process.pid == getpid().as_raw_nonzero().get();
    let own_group = getpgrp().as_raw_nonzero().get();
    let mut found: BTreeSet<i32> = all.iter().filter(|one| is_marked(one.pid, run)).map(|one| one.pid).collect();
    loop {
        let groups: BTreeSet<i32> = all.iter().filter(|one| found.contains(&one.pid)).map(|one| one.group).collect();
        let more = all
            .iter()
            .filter(|one| found.contains(&one.parent) || (groups.contains(&one.group) && one.group != own_group));
        let more: Vec<i32> = more.map(|one| one.pid).filter(|pid| !found.contains(pid)).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    all.iter().filter(|one| found.contains(&one.pid) && !is_own(one)).copied().collect()
}

fn is_marked(pid: i32, run: &Path) -> bool {
    let of_process = Path::new("/proc").join(pid.to_string());
    let is_program = fs::read_link(of_process.join("exe")).is_ok_and(|program| program.starts_with(run));
    let named = |variable: &[u8]| {
        let folder = MARKS.iter().find_map(|mark| variable.strip_prefix(*mark))?;
        Some(Path::new(OsStr::from_bytes(folder)).starts_with(run))
    };
    let variables = fs::read(of_process.join("environ")).unwrap_or_default();
    is_program
        || variables.split(|byte| *byte == 0).any(|variable| named(variable) == Some(true))
        || is_contained(&of_process, run)
}

/// Whether the process has a folder of the run as its root, as every process in a container of the run has. The root
/// stays the same if the process drops its variables and its parent ends.
fn is_contained(of_process: &Path, run: &Path) -> bool {
    let mounts = fs::read_to_string(of_process.join("mountinfo")).unwrap_or_default();
    // In proc_pid_mountinfo(5) the fourth field is the mounted part of the file system, and the fifth is the mount
    // point. A run's name has the time and the process that made it, so no other folder has the same name.
    let mut roots = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let mounted = fields.next()?;
        (fields.next()? == "/").then_some(Path::new(mounted))
    });
    roots.any(|root| root.iter().any(|part| Some(part) == run.file_name()))
}

/// Counts the bytes on disk. Links are not followed.
fn bytes_under(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    let within = if found.is_dir() { fs::read_dir(path).ok() } else { None };
    let within = within.into_iter().flatten().filter_map(Result::ok).map(|entry| bytes_under(&entry.path()));
    within.sum::<u64>() + found.blocks() * STAT_BLOCK
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::*;

    fn dead_run(local: &Path) -> std::path::PathBuf {
        let run = local.join("runs/0000000000001-1");
        fs::create_dir_all(run.join("jobs/attempts/a")).unwrap();
        fs::create_dir_all(run.join("jobs/logs")).unwrap();
        fs::write(run.join("jobs/attempts/a/model"), [1; 10_000]).unwrap();
        File::create(run.join("lock")).unwrap();
        run.canonicalize().unwrap()
    }

    fn sleeper(arguments: &str, devices: Option<&Path>, folder: &Path) -> std::process::Child {
        let mut command = Command::new("sh");
        command.args(["-c", arguments]).current_dir(folder);
        command.envs(devices.map(|devices| ("SPOTSWEEP_DEV", devices))).spawn().unwrap()
    }

    #[tokio::test]
    async fn processes_of_a_dead_run_end_and_no_others() {
        let local = tempfile::tempdir().unwrap();
        let run = dead_run(local.path());
        let devices = run.join("jobs/instances/i-1/dev");
        // If it were killed before it has started its second process, only one process would be found.
        let both = local.path().join("both");
        let script = format!("env -i sleep 600 & touch {}; exec sleep 600", both.display());
        let mut training = sleeper(&script, Some(&devices), &run);
        let mut other_run = sleeper("exec sleep 600", Some(&run.with_file_name("0000000000001-12")), &run);
        let mut shell = sleeper("exec sleep 600", None, &run);
        while !both.exists() {
            sleep(POLL).await;
        }
        let cleared = clear(local.path()).await.unwrap();
        assert_eq!((cleared.processes, cleared.devices), (2, 0), "the training, and what has not its variables");
        assert!(cleared.bytes >= 10_000, "{cleared:?}");
        assert!(!training.wait().unwrap().success());
        for other in [&mut other_run, &mut shell] {
            assert_eq!(other.try_wait().unwrap(), None, "it is not the run's");
            other.kill().unwrap();
            other.wait().unwrap();
        }
        assert!(run.join("jobs/logs").exists() && !run.join("jobs/attempts").exists());
        assert!(clear(local.path()).await.unwrap().is_empty(), "nothing is left");
    }

    #[tokio::test]
    async fn a_live_run_is_left_alone() {
        let local = tempfile::tempdir().unwrap();
        let run = dead_run(local.path());
        let lock = File::open(run.join("lock")).unwrap();
        lock.lock().unwrap();
        let mut training = sleeper("exec sleep 600", Some(&run.join("jobs/instances/i-1/dev")), &run);
        assert!(clear(local.path()).await.unwrap().is_empty());
        assert_eq!(training.try_wait().unwrap(), None);
        assert!(run.join("jobs/attempts/a/model").exists());
        training.kill().unwrap();
        training.wait().unwrap();
    }
}
