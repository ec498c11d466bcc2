//! Runs containers as child processes, each in its own process group and with its own root folder.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::Pid;
use tokio::process::{Child, Command};

use super::groups::Groups;
use super::volumes::Disk;
use crate::Config;
use crate::container::{HOME, Setup};
use spotsweep_world::{AttemptKey, Start};

/// The folder of containers' output within the work folder.
pub(super) const LOGS: &str = "logs";

/// The settings that all containers share.
pub(crate) struct Host {
    work_dir: PathBuf,
    entrypoint: Vec<String>,
    images: Option<PathBuf>,
    job_env: Vec<(String, String)>,
    endpoint: String,
    disk: Disk,
    /// The program that puts a process into a container.
    container: Option<PathBuf>,
    /// The UUIDs of this machine's GPUs. Every container gets all of them.
    gpus: Option<String>,
    pub(super) groups: Groups,
}

impl Host {
    pub(crate) fn new(config: Config, endpoint: &str, disk: Disk, groups: Groups) -> Self {
        Host {
            work_dir: config.work_dir,
            entrypoint: config.entrypoint,
            images: config.images,
            job_env: config.job_env,
            endpoint: endpoint.to_owned(),
            disk,
            container: config.container,
            gpus: gpus_of_this_machine(),
            groups,
        }
    }

    /// Starts a container.
    ///
    /// # Errors
    /// Returns the container's reason, in the words of the ECS agent.
    pub(super) fn start(&self, start: &Start) -> Result<Child, String> {
        let root = self.root(start)?;
        let log = self.work_dir.join(LOGS).join(&start.log_stream);
        let image = image_folder(&start.image)?.or_else(|| self.images.clone());
        let (devices, data) = (self.disk.devices(&start.instance), self.disk.data(&start.instance));
        let command: Vec<&String> = self.entrypoint.iter().chain(&start.command).collect();
        let Some((program, _)) = command.split_first() else {
            return Err("CannotStartContainerError: no command specified".to_owned());
        };
        let cannot = |what: &str, path: &Path, error: io::Error| {
            format!("CannotStartContainerError: {what} {}: {error}", path.display())
        };
        let block_devices = self.disk.block_devices(&start.instance);
        for folder in [&root, &devices, &data].into_iter().chain(&block_devices) {
            fs::create_dir_all(folder).map_err(|error| cannot("mkdir", folder, error))?;
        }
        let words = self
            .container_words(&root, image.as_deref(), block_devices)
            .map_err(|error| cannot("mkdir", &root, error))?;
        let mut words = words.iter().map(OsString::as_os_str).chain(command.iter().map(|word| word.as_ref()));
        let open = || {
            fs::create_dir_all(log.parent().unwrap_or(&self.work_dir))?;
            let log = fs::File::options().create(true).append(true).open(&log)?;
            Ok((log.try_clone()?, log))
        };
        let own_folder =
            self.container.as_ref().map_or(("SPOTSWEEP_ROOT", root.as_path()), |_| ("HOME", Path::new(HOME)));
        let mounts_data = start.environment.iter().any(|(name, _)| name == "SPOTSWEEP_DATA");
        let (stdout, stderr) = open().map_err(|error| cannot("open", &log, error))?;
        let child = Command::new(words.next().unwrap_or_default())
            .args(words)
            .env_clear()
            .envs(self.job_env.iter().map(|(name, value)| (name, value)))
            .env(own_folder.0, own_folder.1)
            .envs(self.gpus.as_ref().map(|gpus| ("NVIDIA_VISIBLE_DEVICES", gpus)))
            .envs(start.environment.iter().map(|(name, value)| (name, value)))
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("{}/imds/{}", self.endpoint, start.instance))
            .env("ECS_CONTAINER_METADATA_URI_V4", format!("{}/ecs/v4/{}", self.endpoint, task_path(&start.task)))
            .env("SPOTSWEEP_DEV", &devices)
            .envs(mounts_data.then_some(("SPOTSWEEP_DATA", &data)))
            .current_dir(image.as_ref().unwrap_or(&root))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| cannot("exec", Path::new(program), error))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            self.groups.add(start.attempt.clone(), pid, &start.instance, &root);
        }
        Ok(child)
    }

    /// Makes the container's empty root folder. The attempts of a trial have the same path, as in containers, because a
    /// training's pointer files may have absolute paths.
    fn root(&self, start: &Start) -> Result<PathBuf, String> {
        let attempts = self.work_dir.join("attempts");
        let shared = trial(start).map(|trial| attempts.join(trial)).filter(|root| !self.groups.has_root(root));
        let root = shared.unwrap_or_else(|| attempts.join(folder(&start.attempt)));
        for folder in [&root, &changes(&root)] {
            // Links to volumes are removed, but not their targets.
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(format!("CannotStartContainerError: rm {}: {error}", folder.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(root)
    }

    /// Returns the words before a command that make it run in a container.
    fn container_words(
        &self,
        root: &Path,
        image: Option<&Path>,
        block_devices: Option<PathBuf>,
    ) -> io::Result<Vec<OsString>> {
        let Some(program) = &self.container else { return Ok(Vec::new()) };
        let image = image.map(Path::canonicalize).transpose()?;
        let (root, changes, work_dir) = (root.to_owned(), changes(root), self.work_dir.clone());
        let setup = Setup { root, changes, work_dir, block_devices, image };
        fs::create_dir_all(&setup.changes)?;
        Ok(vec![program.into(), serde_json::to_string(&setup)?.into()])
    }
}

/// Returns the folder for a container's changes outside of its root.
fn changes(root: &Path) -> PathBuf {
    root.with_extension("changes")
}

/// Checks that this machine can make containers, by making one.
///
/// # Errors
/// Returns the program's output.
pub(crate) async fn check(container: &Path, work_dir: &Path) -> Result<(), String> {
    let root = work_dir.join("probe");
    let changes = changes(&root);
    let setup = Setup { changes, root, work_dir: work_dir.to_owned(), block_devices: None, image: None };
    let words = serde_json::to_string(&setup).map_err(|error| error.to_string())?;
    let made = [&setup.root, &setup.changes].into_iter().try_for_each(fs::create_dir_all);
    made.map_err(|error| format!("cannot make {}: {error}", setup.root.display()))?;
    let probe = Command::new(container).arg(words).arg("true").stdin(Stdio::null()).kill_on_drop(true).output().await;
    let probe = probe.map_err(|error| format!("cannot start {}: {error}", container.display()))?;
    // What cannot be removed is removed with the folder around it.
    let _ = fs::remove_dir_all(&setup.root).and_then(|()| fs::remove_dir_all(&setup.changes));
    if probe.status.success() {
        return Ok(());
    }
    Err(format!("{} ({})", String::from_utf8_lossy(&probe.stderr).trim(), probe.status))
}

/// Returns the UUIDs in the list of NVIDIA's driver, if there is one
/// (<https://github.com/NVIDIA/open-gpu-kernel-modules/blob/main/kernel-open/nvidia/nv-procfs.c>).
fn gpus_of_this_machine() -> Option<String> {
    let described = fs::read_dir("/proc/driver/nvidia/gpus").ok()?.flatten();
    let texts = described.filter_map(|gpu| fs::read_to_string(gpu.path().join("information")).ok());
    let uuid = |text: String| Some(text.lines().find_map(|line| line.strip_prefix("GPU UUID:"))?.trim().to_owned());
    let uuids: Vec<String> = texts.filter_map(uuid).collect();
    (!uuids.is_empty()).then(|| uuids.join(","))
}

/// Returns `<cluster>/<id>` of `arn:aws:ecs:<region>:<account>:task/<cluster>/<id>`.
fn task_path(arn: &str) -> &str {
    arn.split_once(":task/").map_or(arn, |(_, path)| path)
}

/// Returns `<job id>-<index>-<attempt>`, with index 0 for a plain job.
fn folder(key: &AttemptKey) -> String {
    let (job, index) = key.job.split_once(':').unwrap_or((&key.job, "0"));
    format!("{job}-{index}-{}", key.attempt)
}

/// Returns `<sweep>-<trial's index>` of a container that runs a trial.
fn trial(start: &Start) -> Option<String> {
    let number = |name: &str| start.number(name).unwrap_or(0);
    let sweep = start.variable("SPOTSWEEP_SWEEP").filter(|sweep| !sweep.is_empty() && !sweep.contains(['/', '.']))?;
    Some(format!("{sweep}-{}", number("SPOTSWEEP_FIRST_INDEX") + number("AWS_BATCH_JOB_ARRAY_INDEX")))
}

/// Returns the folder of an image `file:///folder`.
fn image_folder(image: &str) -> Result<Option<PathBuf>, String> {
    match image.strip_prefix("file://").map(PathBuf::from) {
        Some(folder) if !folder.is_dir() => {
            Err(format!("CannotPullContainerError: pull image manifest: {image} is no folder on this machine"))
        }
        found => Ok(found),
    }
}

/// Returns the exit code as a shell and Docker do: 128 + n for signal n.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
