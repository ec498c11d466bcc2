//! One start of a function, ours or the peer's: a process with the environment of Lambda.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use axum::Router;
use serde_json::Value;
use spotsweep_protocol::functions::CLAIM;
use spotsweep_tests::local::{RuntimeApi, RuntimeMoment as Moment};
use tokio::process::{Child, Command};

use super::cpu_share::CpuShare;
use super::function::Function;

/// The memory of Lambda's smallest functions.
pub(super) const SMALLEST_MB: f64 = 128.0;

/// The program to start, and what it can reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    pub(super) function: &'a Function,
    /// The implementation: ours, or the peer in Python.
    pub(super) kind: Kind<'a>,
    pub(super) endpoint: &'a str,
    /// The file of the certificates that it trusts.
    pub(super) roots: &'a Path,
    /// The CPU share of a 128 MB function; `None` is all of the CPU.
    pub(super) share: Option<&'a CpuShare>,
    /// The file of its output.
    pub(super) log: &'a Path,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// The binary in this folder.
    Ours(&'a Path),
    Peer {
        /// The Python interpreter, with the AWS SDK and Lambda's runtime client.
        python: &'a Path,
        /// The folder of the script.
        folder: &'a Path,
        /// The services for which it makes clients, if not for all that the function may reach.
        clients: Option<&'a str>,
    },
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.kind {
            Kind::Ours(_) => "our",
            Kind::Peer { .. } => "the peer's",
        };
        write!(f, "{whose} {}", self.function.name)
    }
}

/// The measurements of one start.
#[derive(Debug)]
pub(super) struct Started {
    /// Milliseconds from the start of the process until it asked for its first event.
    pub(super) init_ms: f64,
    /// Milliseconds from the start of the process until its first answer.
    pub(super) answer_ms: f64,
    /// The peak of its RAM until then, in MB.
    pub(super) rss_mb: f64,
    pub(super) answer: Value,
}

impl Program<'_> {
    /// Starts the program with the function's event, waits for its answer, and kills it.
    ///
    /// # Panics
    /// If it fails; its output has the reason.
    pub(super) async fn start(&self) -> Started {
        let mut api = RuntimeApi::serve(Router::new()).await;
        api.send(&self.function.event);
        let mut command = self.command(&api.address);
        let begun = Instant::now();
        let mut process = command.spawn().expect("the program can be started");
        let mut init = None;
        loop {
            let moment = tokio::select! {
                moment = api.moment() => moment,
                status = process.wait() => unreachable!("{self} ended ({status:?}), see {}", self.log.display()),
            };
            match moment {
                Moment::Asked(at) => drop(init.get_or_insert(at)),
                Moment::Sent(_) => {}
                Moment::Failed(_, error) => unreachable!("{self} failed: {error}"),
                Moment::Answered(at, answer) => {
                    let rss_mb = high_water_mark_mb(&process);
                    process.kill().await.expect("the process is ours");
                    let ms = |at: Instant| at.duration_since(begun).as_secs_f64() * 1e3;
                    let init_ms = init.map(ms).expect("who answers has asked");
                    return Started { init_ms, answer_ms: ms(at), rss_mb, answer };
                }
            }
        }
    }

    fn command(&self, address: &str) -> Command {
        let new = |program: &Path| self.share.map_or_else(|| Command::new(program), |share| share.command(program));
        let mut command = match self.kind {
            Kind::Ours(folder) => new(&folder.join(self.function.name)),
            Kind::Peer { python, folder, clients } => {
                let mut command = new(python);
                command.args(["-m", "awslambdaric", "cold_start.handler"]).current_dir(folder).env_clear();
                command.envs(clients.map(|clients| ("PEER_CLIENTS", clients)));
                command
            }
        };
        if matches!(self.kind, Kind::Ours(_)) {
            command.env_clear();
        }
        let log = File::options().create(true).append(true).open(self.log).expect("the log can be written");
        command
            .envs(LAMBDA)
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .env("AWS_LAMBDA_FUNCTION_NAME", self.function.name)
            .env("AWS_ENDPOINT_URL", self.endpoint)
            .envs(["SSL_CERT_FILE", "AWS_CA_BUNDLE"].map(|name| (name, self.roots)))
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log can be written twice"))
            .stdout(log)
            .kill_on_drop(true);
        command
    }
}

/// The environment that Lambda (docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html) and the template set.
const LAMBDA: [(&str, &str); 21] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin:/opt/bin"),
    ("LANG", "en_US.UTF-8"),
    ("TZ", ":UTC"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_DEFAULT_REGION", "us-east-1"),
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
    ("AWS_SESSION_TOKEN", "test"),
    ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
    ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
    ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
    ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
    ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/measured"),
    ("AWS_LAMBDA_LOG_STREAM_NAME", "measured"),
    ("SPOTSWEEP_TABLE", "spotsweep"),
    ("SPOTSWEEP_BUCKET", "spotsweep-local"),
    ("SPOTSWEEP_QUEUE", "spotsweep"),
    ("SPOTSWEEP_JOB_DEFINITION", "train"),
    ("SPOTSWEEP_CLAIM_FUNCTION", CLAIM),
    ("SPOTSWEEP_TRIAL_ROLE", "arn:aws:iam::000000000000:role/trial"),
    ("SPOTSWEEP_PARAMETERS", "arn:aws:ssm:us-east-1:000000000000:parameter"),
];

/// Returns `VmHWM` (proc_pid_status(5)).
fn high_water_mark_mb(process: &Child) -> f64 {
    let path = PathBuf::from(format!("/proc/{}/status", process.id().expect("the process lives")));
    let status = fs::read_to_string(path).expect("the process lives");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<f64>().ok()).expect("the kernel reports the high-water mark") * 1024.0 / 1e6
}
