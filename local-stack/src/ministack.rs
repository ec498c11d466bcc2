//! Runs ministack as a child process, on a port of its own, with its data in the run's folder.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::group::Group;
use crate::job_role::{JOB_CREDENTIAL, JOB_ROLE};
use crate::run_folder::{RunFolder, tail};
use crate::sdk::{LOCAL_CREDENTIAL, LOCAL_REGION};
use crate::venv::Venv;
use spotsweep_protocol::failure::{Context, Failure};

/// The program that starts ministack. It ends with its whole process group when this process closes the pipe to its
/// standard input. So even a SIGKILL of this process leaves no other one running.
const PROGRAM: &str = include_str!("ministack.py");
/// Is put in front of [`PROGRAM`] if the variable [`RECORD`] names a folder.
const RECORDER: &str = include_str!("record.py");
/// The variable that names the folder in which all requests are recorded, the emulator's too
/// (`emulator/server/src/http/record.rs`).
const RECORD: &str = "SPOTSWEEP_RECORD";
/// The services that the emulator serves.
const EMULATED: [&str; 5] = [
    "AWS_ENDPOINT_URL_BATCH",
    "AWS_ENDPOINT_URL_EC2",
    "AWS_ENDPOINT_URL_ECS",
    "AWS_ENDPOINT_URL_FIS",
    "AWS_ENDPOINT_URL_PRICING",
];
/// ministack starts in 0.4 s, but on a loaded machine it needs more time.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How often to start ministack: another program can take the free port before ministack binds it.
const START_ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Ministack {
    group: Group,
    endpoint: String,
    log: PathBuf,
}

impl Ministack {
    /// Starts ministack and waits until it answers. Its functions inherit the endpoint `emulator` for Batch, EC2 and
    /// ECS.
    pub(crate) async fn start(venv: &Venv, run: &RunFolder, emulator: &str) -> Result<Self, Failure> {
        let data = run.subfolder("ministack")?;
        let log = run.path().join("ministack.log");
        let mut attempt = 1;
        loop {
            let mut ministack = spawn(venv, &data, &log, emulator)?;
            match ministack.ready().await {
                Ok(()) => return Ok(ministack),
                Err(failure) if attempt == START_ATTEMPTS => return Err(failure),
                Err(_) => attempt += 1,
            }
        }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The log of ministack, which also has the functions' output.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Fails if ministack has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.group.ended().context(|| "cannot follow ministack")? {
            None => Ok(()),
            Some(status) => Err(Failure::new(format!("ministack ended ({status}); {}", tail(&self.log, 15)))),
        }
    }

    /// Kills ministack and the functions that it runs. Nothing has to be saved, because its data is in memory.
    pub(crate) async fn stop(self) {
        self.group.kill().await;
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        let address = self.endpoint.trim_start_matches("http://").to_owned();
        let deadline = Instant::now() + START_DEADLINE;
        while Instant::now() < deadline {
            self.check()?;
            if timeout(Duration::from_secs(1), answers(&address))
                .await
                .is_ok_and(|answer| answer.is_ok_and(|ready| ready))
            {
                return Ok(());
            }
            sleep(Duration::from_millis(25)).await;
        }
        let seconds = START_DEADLINE.as_secs();
        Err(Failure::new(format!("ministack did not answer within {seconds} s; {}", tail(&self.log, 15))))
    }
}

fn spawn(venv: &Venv, data: &Path, log: &Path, emulator: &str) -> Result<Ministack, Failure> {
    let port = free_port().context(|| "cannot find a free port for ministack")?;
    let endpoint = format!("http://127.0.0.1:{port}");
    let output = File::create(log).context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone().context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(venv.python());
    let record = std::env::var_os(RECORD).filter(|folder| !folder.is_empty());
    let record = record.map(|folder| std::path::absolute(&folder).unwrap_or_else(|_| folder.into()));
    let recorder = record.as_ref().map_or("", |_| RECORDER);
    // Of the caller's environment only PATH is passed on, so that no profile, endpoint or proxy has an effect.
    command
        .args(["-c", &format!("{recorder}{PROGRAM}")])
        .current_dir(data)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(["HOME", "TMPDIR", "STATE_DIR", "S3_DATA_DIR"].map(|name| (name, data)))
        .env("GATEWAY_PORT", port.to_string())
        .env("BIND_HOST", "127.0.0.1")
        .env("IOT_MTLS_ENABLED", "0")
        // With this, functions and jobs are allowed what their roles allow. Commands and tests sign as `test`, which is
        // allowed everything.
        .env("AUTH", "true")
        .envs([("JOB_ROLE", JOB_ROLE), ("JOB_CREDENTIAL", JOB_CREDENTIAL)])
        .env("PYTHONUNBUFFERED", "1")
        .env("AWS_ENDPOINT_URL", &endpoint)
        .envs(EMULATED.map(|name| (name, emulator)))
        .envs(record.map(|folder| (RECORD, folder)))
        .envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, LOCAL_CREDENTIAL)))
        .envs(["AWS_REGION", "AWS_DEFAULT_REGION", "MINISTACK_REGION"].map(|name| (name, LOCAL_REGION)))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors);
    let group = Group::start(&mut command).context(|| "cannot start ministack")?;
    Ok(Ministack { group, endpoint, log: log.to_owned() })
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(listener.local_addr()?.port())
}

/// Whether the readiness page answers with status 200.
async fn answers(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /_ministack/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    Ok(&status[..] == b"HTTP/1.1 200")
}
