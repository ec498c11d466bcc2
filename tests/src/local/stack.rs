//! Runs `spotsweep local` for one test. A stack that the developer has started is not touched.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use aws_config::SdkConfig;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::aws::{CREDENTIAL, PATIENCE, REGION, config, eventually};
use super::binaries::Binaries;
use super::usage::Usage;

/// A running local stack. Dropping it kills it.
#[derive(Debug)]
pub struct Stack {
    /// URL of S3, DynamoDB, EventBridge, Lambda and SQS.
    pub endpoint: String,
    /// URL of Batch and EC2.
    pub emulator: String,
    /// The control plane's bucket.
    pub bucket: String,
    /// The control plane's table.
    pub table: String,
    /// The log of the functions and of ministack.
    pub functions_log: PathBuf,
    /// The folder of the binaries of which the stack runs copies.
    pub binaries: PathBuf,
    host: Child,
    folder: PathBuf,
    _lock: Option<File>,
}

/// What `spotsweep local` prints about itself.
#[derive(Deserialize)]
struct State {
    endpoint: String,
    emulator: String,
    bucket: String,
    table: String,
    functions_log: PathBuf,
}

impl Stack {
    /// Builds what is missing, and starts the stack. A second stack of the same name waits for the first one.
    ///
    /// # Panics
    /// Panics if the stack does not start.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// Starts the stack with options of `spotsweep local up`.
    ///
    /// # Panics
    /// Panics if the stack does not start.
    pub async fn start_with(name: &str, options: &[&str]) -> Self {
        let binaries = tokio::task::spawn_blocking(Binaries::build).await.expect("the binaries can be built");
        let tests = binaries.target().join("local-tests");
        fs::create_dir_all(&tests).expect("the target folder is writable");
        let lock = File::create(tests.join(format!("{name}.lock"))).expect("the target folder is writable");
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = lock.expect("the wait is not cut off").expect("the folder can be locked");
        Self { _lock: Some(lock), ..Self::start_in(&tests.join(name), binaries.folder(), options).await }
    }

    /// Starts the stack with existing binaries, in a folder that no other test uses. Its content is removed first.
    ///
    /// # Panics
    /// Panics if the stack does not start.
    pub async fn start_in(folder: &Path, binaries: &Path, options: &[&str]) -> Self {
        let (host, State { endpoint, emulator, bucket, table, functions_log }) = host(binaries, folder, options).await;
        let (binaries, folder) = (binaries.to_owned(), folder.to_owned());
        Self { endpoint, emulator, bucket, table, functions_log, binaries, host, folder, _lock: None }
    }

    /// Makes a folder for the files of a test. If the test fails, the folder stays.
    ///
    /// # Panics
    /// Panics if the folder cannot be made.
    pub fn subfolder(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).expect("the target folder is writable");
        path
    }

    /// The configuration of clients for all services except Batch and EC2.
    pub fn config(&self) -> SdkConfig {
        config(&self.endpoint)
    }

    /// Runs a command of the same binary as its user would, with an environment that leads to this stack.
    ///
    /// # Panics
    /// Panics if the command cannot be started.
    pub async fn command(&self, arguments: &[&str]) -> Output {
        self.prepared(arguments).output().await.expect("the command can be started")
    }

    /// Prepares a command without starting it.
    pub fn prepared(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binaries.join("spotsweep"));
        command.args(arguments).env("SPOTSWEEP_LOCAL", &self.folder).env("AWS_ENDPOINT_URL", &self.endpoint);
        command.envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, CREDENTIAL)));
        command.env("AWS_REGION", REGION);
        for name in ["SPOTSWEEP_BUCKET", "SPOTSWEEP_TABLE", "SPOTSWEEP_STACK", "AWS_PROFILE", "AWS_SESSION_TOKEN"] {
            command.env_remove(name);
        }
        command
    }

    /// What the host has used so far.
    ///
    /// # Panics
    /// Panics if the host has ended.
    pub fn usage(&self) -> Usage {
        Usage::of(self.host.id().expect("the host lives"))
    }

    /// Kills the host with SIGKILL, as the kernel does when memory is short.
    ///
    /// # Panics
    /// Panics if there is no host.
    pub async fn kill(&mut self) {
        let pid = fs::read_to_string(self.folder.join("host.pid")).expect("there is a host");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("the host has written its pid");
        kill_process(pid, Signal::KILL).expect("the host is ours");
        let is_gone = async || File::open(self.folder.join("host.pid")).ok()?.try_lock().ok();
        eventually("the host is gone", is_gone).await;
    }

    /// Starts another host in the same folder with `spotsweep local up`, and returns its output.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn up(&mut self, arguments: &[&str]) -> String {
        let binaries = self.binaries.display().to_string();
        let up = self.command(&[&["local", "up", "--binaries", &binaries], arguments].concat()).await;
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        assert!(up.status.success(), "{said}");
        let state = fs::read(self.folder.join("state.json")).expect("the stack is announced");
        let state = serde_json::from_slice(&state).expect("the state is what this test knows");
        State {
            endpoint: self.endpoint,
            emulator: self.emulator,
            bucket: self.bucket,
            table: self.table,
            functions_log: self.functions_log,
        } = state;
        said
    }

    /// The folder of all runs of the stack.
    pub fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// Stops the stack with `spotsweep local down`, and returns how long that takes.
    ///
    /// # Panics
    /// Panics if the stack does not stop, or leaves a program running.
    pub async fn down(mut self) -> Duration {
        let begun = Instant::now();
        let down = self.command(&["local", "down", "--yes"]).await;
        let taken = begun.elapsed();
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        self.host.wait().await.expect("the host can be followed");
        assert_eq!(programs_of(&self.folder), Vec::<String>::new());
        fs::remove_dir_all(&self.folder).expect("the folder is ours");
        taken
    }

    /// Stops the stack as Ctrl-C does.
    ///
    /// # Panics
    /// Panics if it does not stop.
    pub async fn stop(self) {
        let pid = self.host.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("the host lives");
        kill_process(pid, Signal::TERM).expect("the host is ours");
        self.gone().await;
    }

    /// Waits for the end of the host, which a command has stopped.
    pub async fn gone(mut self) {
        let ended = timeout(PATIENCE, self.host.wait()).await.expect("the local stack stops");
        assert!(ended.expect("the host can be followed").success(), "see {}", self.folder.display());
        fs::remove_dir_all(&self.folder).expect("the folder is ours");
    }
}

/// Command lines of the programs that run from a folder.
fn programs_of(folder: &Path) -> Vec<String> {
    let programs = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = programs.filter_map(|program| fs::read(program.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&*folder.to_string_lossy())).collect()
}

/// Starts the stack's host with its state in an empty folder.
async fn host(binaries: &Path, folder: &Path, options: &[&str]) -> (Child, State) {
    // Usually there is none. A killed test may have left one.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("the target folder is writable");
    let log = folder.join("host.log");
    let output = File::create(&log).expect("the log can be written");
    let mut host = Command::new(binaries.join("spotsweep"))
        .args(["local", "serve", "--binaries"])
        .arg(binaries)
        .args(options)
        .env("SPOTSWEEP_LOCAL", folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("the log can be written twice"))
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
        .expect("the command can be started");
    let state_file = folder.join("state.json");
    let state = eventually("the local stack starts", async || {
        if let Some(status) = host.try_wait().expect("the command can be followed") {
            unreachable!("no local stack, {status}: {}", fs::read_to_string(&log).unwrap_or_default());
        }
        fs::read(&state_file).ok()
    })
    .await;
    (host, serde_json::from_slice(&state).expect("the state is what this test knows"))
}
