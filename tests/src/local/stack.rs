//! `spotsweep local` for one test, beside whatever stack the developer has running.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use aws_config::SdkConfig;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::aws::{config, eventually};
use super::binaries::Binaries;

/// It takes some seconds.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// It takes about a second.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// A running local stack. Dropping it kills it.
#[derive(Debug)]
pub struct Stack {
    /// S3, DynamoDB, EventBridge, Lambda and SQS.
    pub endpoint: String,
    /// Batch and EC2.
    pub emulator: String,
    /// The control plane's bucket.
    pub bucket: String,
    /// The control plane's table.
    pub table: String,
    /// The binaries that it runs; a build in the meantime does not change them.
    pub binaries: PathBuf,
    host: Child,
    folder: PathBuf,
    _lock: File,
}

/// What `spotsweep local` tells about itself.
#[derive(Deserialize)]
struct State {
    endpoint: String,
    emulator: String,
    bucket: String,
    table: String,
}

impl Stack {
    /// Builds what is missing and starts it. A second stack of the same name waits for the first.
    ///
    /// The command keeps its state beside its binary, so the test gets links to the binaries in a
    /// folder of its own; the Python environment is the one that `spotsweep local` uses too.
    ///
    /// # Panics
    /// Where it does not start.
    pub async fn start(name: &str) -> Self {
        let binaries = tokio::task::spawn_blocking(Binaries::build).await.expect("the binaries can be built");
        let tests = binaries.target().join("local-tests");
        fs::create_dir_all(&tests).expect("the target folder is writable");
        let lock = File::create(tests.join(format!("{name}.lock"))).expect("the target folder is writable");
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = lock.expect("the wait is not cut off").expect("the folder can be locked");
        let folder = tests.join(name);
        let (host, state) = match host(binaries, &folder).await {
            Ok(started) => started,
            Err(_) => {
                make_environment(&binaries.get("spotsweep"), binaries.folder());
                host(binaries, &folder).await.unwrap_or_else(|log| unreachable!("no local stack: {log}"))
            }
        };
        let State { endpoint, emulator, bucket, table } = state;
        let binaries = folder.join(binaries.profile());
        Self { endpoint, emulator, bucket, table, binaries, host, folder, _lock: lock }
    }

    /// A folder for what a test writes. It stays where the test fails.
    ///
    /// # Panics
    /// Where it can't be made.
    pub fn subfolder(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).expect("the target folder is writable");
        path
    }

    /// How to reach everything but Batch and EC2.
    pub fn config(&self) -> SdkConfig {
        config(&self.endpoint)
    }

    /// Stops it as Ctrl-C does.
    ///
    /// # Panics
    /// Where it does not stop by itself.
    pub async fn stop(mut self) {
        let pid = self.host.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("the host lives");
        kill_process(pid, Signal::TERM).expect("the host is ours");
        let ended = timeout(STOP_DEADLINE, self.host.wait()).await.expect("the local stack stops");
        assert!(ended.expect("the host can be followed").success(), "see {}", self.folder.display());
        fs::remove_dir_all(&self.folder).expect("the folder is ours");
    }
}

/// Starts the stack's host in a fresh folder; or says what it has logged.
async fn host(binaries: &Binaries, folder: &Path) -> Result<(Child, State), String> {
    // What a killed test has left; absent is the usual case.
    let _ = fs::remove_dir_all(folder);
    let linked = link(binaries, folder).expect("the target folder takes links");
    let log = folder.join("serve.log");
    let output = File::create(&log).expect("the log can be written");
    let mut host = Command::new(linked.join("spotsweep"))
        .args(["local", "serve", "--binaries"])
        .arg(&linked)
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("the log can be written twice"))
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .expect("the command can be started");
    let state_file = folder.join("local/state.json");
    let started = eventually("the local stack starts or ends", START_DEADLINE, async || {
        match host.try_wait().expect("the command can be followed") {
            Some(status) => Some(Err(format!("{status}: {}", fs::read_to_string(&log).unwrap_or_default()))),
            None => fs::read(&state_file).ok().map(Ok),
        }
    })
    .await;
    Ok((host, serde_json::from_slice(&started?).expect("the state is what this test knows")))
}

/// Lets `spotsweep local` make the Python environment: it does so where it starts.
fn make_environment(command: &Path, binaries: &Path) {
    let local = |action: &str| {
        let mut local = std::process::Command::new(command);
        local.args(["local", action]).stdout(Stdio::null());
        if action == "up" {
            local.arg("--binaries").arg(binaries);
        }
        local.status()
    };
    if local("env").is_ok_and(|status| status.success()) {
        return; // A developer's stack runs here, and is not ours to stop.
    }
    for action in ["up", "down"] {
        let status = local(action).expect("the command can be started");
        assert!(status.success(), "spotsweep local {action}: {status}");
    }
}

/// Links the binaries into `<folder>/<profile>` and the Python environment into `<folder>/local`;
/// returns the former.
fn link(binaries: &Binaries, folder: &Path) -> std::io::Result<PathBuf> {
    let beside = folder.join(binaries.profile());
    fs::create_dir_all(&beside)?;
    for entry in fs::read_dir(binaries.folder())? {
        let path = entry?.path();
        // Programs have no extension: cargo's own files beside them do.
        if path.is_file() && path.extension().is_none() {
            fs::hard_link(&path, beside.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let (local, shared) = (folder.join("local"), binaries.target().join("local"));
    fs::create_dir_all(&local)?;
    for name in ["venv", "venv.lock"] {
        symlink(shared.join(name), local.join(name))?;
    }
    Ok(beside)
}
