//! One folder per run of the local stack: data, logs, the trials' files. Its lock tells whether
//! the run is alive, so no pid is ever trusted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use spotsweep_protocol::failure::{Context, Failure};

/// Folders of failed runs that are kept for a look at their logs.
const KEPT_FAILED_RUNS: usize = 3;

/// The folders of runs within that of the local stack.
const RUNS: &str = "runs";

/// What is removed where only the logs are kept.
const LARGE: [&str; 6] =
    ["functions", "ministack", "jobs/attempts", "jobs/volumes", "jobs/snapshots", "jobs/instances"];

/// A live run's folder.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes a new one under `<local>/runs`, and removes the oldest of dead runs.
    pub fn create(local: &Path) -> Result<Self, Failure> {
        let runs = local.join(RUNS);
        fs::create_dir_all(&runs).context(|| format!("cannot create {}", runs.display()))?;
        prune(&runs)?;
        let stamp = jiff::Timestamp::now().as_millisecond();
        let path = runs.join(format!("{stamp}-{}", std::process::id()));
        fs::create_dir(&path).context(|| format!("cannot create {}", path.display()))?;
        let lock = File::create(path.join("lock")).context(|| format!("cannot write to {}", path.display()))?;
        lock.try_lock().context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside, made if need be.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }

    /// Removes all that is large; the logs stay.
    pub fn keep_logs(self) {
        for large in large(&self.path) {
            // Left-overs are cleared by a later run.
            let _ = fs::remove_dir_all(large);
        }
    }

    /// Removes the folder of a run that has nothing left to tell.
    pub fn remove(self) {
        // Left-overs are pruned by a later run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of dead runs, the newest few excepted. Names start with the time.
fn prune(runs: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(runs).context(|| format!("cannot read {}", runs.display()))?;
    let mut dead: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|run| is_dead(run)).collect();
    dead.sort();
    dead.truncate(dead.len().saturating_sub(KEPT_FAILED_RUNS));
    for run in dead {
        fs::remove_dir_all(&run).context(|| format!("cannot remove {}", run.display()))?;
    }
    Ok(())
}

fn is_dead(run: &Path) -> bool {
    lock_of_dead(run).is_some()
}

/// The lock of a run that is not alive: while it is held, no other process clears the folder.
pub(crate) fn lock_of_dead(run: &Path) -> Option<File> {
    File::open(run.join("lock")).ok().filter(|lock| lock.try_lock().is_ok())
}

/// The folders of all runs, dead or alive.
pub(crate) fn runs(local: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(local.join(RUNS)).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// What there is in a run's folder but logs.
pub(crate) fn large(run: &Path) -> impl Iterator<Item = PathBuf> {
    LARGE.iter().map(|large| run.join(large)).filter(|large| large.exists())
}

/// The last lines of a log, for a failure message.
pub fn tail(log: &Path, lines: usize) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    let shown = &all[all.len().saturating_sub(lines)..];
    if shown.is_empty() {
        return format!("its log {} is empty", log.display());
    }
    format!("the end of its log {}:\n    {}", log.display(), shown.join("\n    "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn dead_runs_go_and_live_ones_stay() {
        let local = tempfile::tempdir().unwrap();
        let live = RunFolder::create(local.path()).unwrap();
        for name in ["0000000000001-1", "0000000000002-1", "0000000000003-1", "0000000000004-1"] {
            let run = local.path().join("runs").join(name);
            fs::create_dir(&run).unwrap();
            File::create(run.join("lock")).unwrap();
        }
        prune(&local.path().join("runs")).unwrap();
        assert!(live.path().is_dir(), "a live run was removed");
        assert!(!local.path().join("runs/0000000000001-1").exists(), "the oldest dead run was kept");
        assert!(local.path().join("runs/0000000000002-1").exists(), "a recent failed run was removed");
    }
}
