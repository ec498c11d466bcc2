//! One folder for each run of the local stack, with data, logs and the trials' files. Its lock shows whether the run is
//! alive, so no stored pid is trusted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use spotsweep_protocol::failure::{Context, Failure};

/// Number of failed runs whose folders are kept for their logs.
const KEPT_FAILED_RUNS: usize = 3;

/// Name of the folder that contains the folders of the runs.
const RUNS: &str = "runs";

/// What is removed if only the logs are kept.
const LARGE: [&str; 6] =
    ["functions", "ministack", "jobs/attempts", "jobs/volumes", "jobs/snapshots", "jobs/instances"];

/// The folder of a live run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Makes a new folder under `<local>/runs`, and removes the oldest folders of dead runs.
    ///
    /// # Errors
    /// A folder or the lock cannot be made.
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

    /// A folder inside the run's folder. It is made if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }

    /// Removes everything except the logs.
    pub fn keep_logs(self) {
        for large in large(&self.path) {
            // A later run clears what is left.
            let _ = fs::remove_dir_all(large);
        }
    }

    /// Removes the folder of a run whose logs are not needed.
    pub fn remove(self) {
        // A later run removes what is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of dead runs, except for the newest few. Names start with the time.
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

/// Takes the lock of a run that is not alive. While it is held, no other process clears the folder.
pub(crate) fn lock_of_dead(run: &Path) -> Option<File> {
    File::open(run.join("lock")).ok().filter(|lock| lock.try_lock().is_ok())
}

/// The folders of all runs, dead or alive.
pub(crate) fn runs(local: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(local.join(RUNS)).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// Everything in a run's folder except the logs.
pub(crate) fn large(run: &Path) -> impl Iterator<Item = PathBuf> {
    LARGE.iter().map(|large| run.join(large)).filter(|large| large.exists())
}

/// The last lines of a log, for an error message.
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
