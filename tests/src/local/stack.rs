//! `spotsweep local` for one test, beside whatever stack the developer has running.

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
    /// S3, DynamoDB, EventBridge, Lambda and SQS.
    pub endpoint: String,
    /// Batch and EC2.
    pub emulator: String,
    /// The control plane's bucket.
    pub bucket: String,
    /// The control plane's table.
    pub table: String,
    /// The functions' output, and ministack's own.
    pub functions_log: PathBuf,
    /// The binaries that it runs copies of.
    pub binaries: PathBuf,
    host: Child,
    folder: PathBuf,
    _lock: Option<File>,
}

/// What `spotsweep local` tells about itself.
#[derive(Deserialize)]
struct State {
    endpoint: String,
    emulator: String,
    bucket: String,
    table: String,
    functions_log: PathBuf,
}

impl Stack {
    /// Builds what is missing and starts it. A second stack of the same name waits for the first.
    ///
    /// # Panics
    /// Where it does not start.
    pub async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// The same with options of `spotsweep local up`.
    ///
    /// # Panics
    /// Where it does not start.
    pub async fn start_with(name: &str, options: &[&str]) -> Self {
        let binaries = tokio::task::spawn_blocking(Binaries::build).await.expect("the binaries can be built");
        let tests = binaries.target().join("local-tests");
        fs::create_dir_all(&tests).expect("the target folder is writable");
        let lock = File::create(tests.join(format!("{name}.lock"))).expect("the target folder is writable");
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
        let lock = lock.expect("the wait is not cut off").expect("the folder can be locked");
        Self { _lock: Some(lock), ..Self::start_in(&tests.join(name), binaries.folder(), options).await }
    }

    /// Starts it with binaries that are there, in a folder that no other test uses; what that holds is removed.
    ///
    /// # Panics
    /// Where it does not start.
    pub async fn start_in(folder: &Path, binaries: &Path, options: &[&str]) -> Self {
        let (host, State { endpoint, emulator, bucket, table, functions_log }) = host(binaries, folder, options).await;
        let (binaries, folder) = (binaries.to_owned(), folder.to_owned());
        Self { endpoint, emulator, bucket, table, functions_log, binaries, host, folder, _lock: None }
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

    /// Runs a command of the same binary as its user would, with an environment that leads to this stack.
    ///
    /// # Panics
    /// Where it can't be started.
    pub async fn command(&self, arguments: &[&str]) -> Output {
        self.prepared(arguments).output().await.expect("the command can be started")
    }

    /// The same, yet to be started.
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

    /// What its host has used so far.
    ///
    /// # Panics
    /// Where it has ended.
    pub fn usage(&self) -> Usage {
        Usage::of(self.host.id().expect("the host lives"))
    }

    /// Kills its host with SIGKILL, as the kernel does where memory is short.
    ///
    /// # Panics
    /// Where there is no host.
    pub async fn kill(&mut self) {
        let pid = fs::read_to_string(self.folder.join("host.pid")).expect("there is a host");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("the host has written its pid");
        kill_process(pid, Signal::KILL).expect("the host is ours");
        let is_gone = async || File::open(self.folder.join("host.pid")).ok()?.try_lock().ok();
        eventually("the host is gone", is_gone).await;
    }

    /// Starts another host in the same folder, with `spotsweep local up`; what that says.
    ///
    /// # Panics
    /// Where it does not start.
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

    /// The folder of all its runs.
    pub fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// Stops it with `spotsweep local down`, and says how long that takes.
    ///
    /// # Panics
    /// Where it does not stop by itself, or leaves a program behind.
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

    /// Stops it as Ctrl-C does.
    ///
    /// # Panics
    /// Where it does not stop by itself.
    pub async fn stop(self) {
        let pid = self.host.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("the host lives");
        kill_process(pid, Signal::TERM).expect("the host is ours");
        self.gone().await;
    }

    /// The host ends, because a command has stopped it.
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

/// Starts the stack's host with its state in a fresh folder.
async fn host(binaries: &Path, folder: &Path, options: &[&str]) -> (Child, State) {
    // What a killed test has left; absent is the usual case.
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
