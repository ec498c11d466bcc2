//! Containers as child processes: each in its own process group, with its own root folder.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::Config;
use crate::world::{AttemptKey, Start};

/// The process groups that are running.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(Arc<Mutex<HashMap<AttemptKey, Pid>>>);

impl Groups {
    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptKey, Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to everything that an attempt has started.
    pub(super) fn signal(&self, attempt: &AttemptKey, signal: Signal) {
        if let Some(group) = self.lock().get(attempt) {
            send(*group, signal);
        }
    }

    /// The container's main process has ended: so does everything it left behind.
    pub(super) fn end(&self, attempt: &AttemptKey) {
        if let Some(group) = self.lock().remove(attempt) {
            send(group, Signal::KILL);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn kill_all(&self) {
        for group in self.lock().values() {
            send(*group, Signal::KILL);
        }
    }
}

fn send(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // No such process: it has ended by itself.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(?group, ?signal, %error, "a job cannot be signalled"),
    }
}

/// What every container starts from.
pub(super) struct Host {
    work_dir: PathBuf,
    entrypoint: Vec<String>,
    job_env: Vec<(String, String)>,
    endpoint: String,
    pub(super) groups: Groups,
}

impl Host {
    pub(super) fn new(config: Config, endpoint: &str, groups: Groups) -> Self {
        Host {
            work_dir: config.work_dir,
            entrypoint: config.entrypoint,
            job_env: config.job_env,
            endpoint: endpoint.to_owned(),
            groups,
        }
    }

    /// Starts a container.
    ///
    /// # Errors
    /// The container's reason, in the words of the ECS agent.
    pub(super) fn start(&self, start: &Start) -> Result<Child, String> {
        let root = self.work_dir.join("attempts").join(folder(&start.attempt));
        let log = self.work_dir.join("logs").join(&start.log_stream);
        let cwd = image_folder(&start.image)?.unwrap_or_else(|| root.clone());
        let mut words = self.entrypoint.iter().chain(&start.command);
        let Some(program) = words.next() else {
            return Err("CannotStartContainerError: no command specified".to_owned());
        };
        let cannot = |what: &str, path: &Path, error: std::io::Error| {
            format!("CannotStartContainerError: {what} {}: {error}", path.display())
        };
        std::fs::create_dir_all(&root).map_err(|error| cannot("mkdir", &root, error))?;
        let open = || {
            std::fs::create_dir_all(log.parent().unwrap_or(&self.work_dir))?;
            let log = std::fs::File::options().create(true).append(true).open(&log)?;
            Ok((log.try_clone()?, log))
        };
        let (stdout, stderr) = open().map_err(|error| cannot("open", &log, error))?;
        let child = Command::new(program)
            .args(words)
            .env_clear()
            .envs(self.job_env.iter().map(|(name, value)| (name, value)))
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("{}/imds/{}", self.endpoint, start.instance))
            .env("SPOTSWEEP_ROOT", &root)
            .current_dir(cwd)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| cannot("exec", Path::new(program), error))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            self.groups.lock().insert(start.attempt.clone(), pid);
        }
        Ok(child)
    }
}

/// `<job id>-<index>-<attempt>`; index 0 for a plain job.
fn folder(key: &AttemptKey) -> String {
    let (job, index) = key.job.split_once(':').unwrap_or((&key.job, "0"));
    format!("{job}-{index}-{}", key.attempt)
}

/// An image `file:///folder` is that folder; any other image is an empty one.
fn image_folder(image: &str) -> Result<Option<PathBuf>, String> {
    match image.strip_prefix("file://").map(PathBuf::from) {
        Some(folder) if !folder.is_dir() => {
            Err(format!("CannotPullContainerError: pull image manifest: {image} is no folder on this machine"))
        }
        found => Ok(found),
    }
}

/// As a shell and Docker count: 128 + n for signal n.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
