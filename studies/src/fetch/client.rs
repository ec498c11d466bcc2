//! The programs that fetch a data set.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::answers::SWEEP;
use super::objects::{BUCKET, PREFIX};
use super::{Link, Usage};

/// A program, and how it is used.
#[derive(Debug, Clone)]
pub struct Client {
    /// What it is.
    pub kind: Kind,
    /// Its path or name.
    pub program: PathBuf,
}

/// What a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `spotsweep-runner` with a training that does nothing.
    Runner,
    /// `aws s3 sync` with its own number of requests at once, or another one.
    Aws(Option<u32>),
    /// `s5cmd sync`.
    S5cmd,
}

impl Client {
    /// Its name in the table.
    pub fn name(&self) -> String {
        match self.kind {
            Kind::Runner => "runner".to_owned(),
            Kind::Aws(None) => "`aws s3 sync`".to_owned(),
            Kind::Aws(Some(requests)) => format!("… with {requests} requests"),
            Kind::S5cmd => "`s5cmd sync`".to_owned(),
        }
    }

    /// Fetches the data set into a folder, or finds that all is there. Without `has_data` the trial reads no data set;
    /// only the runner knows that case.
    ///
    /// # Errors
    /// If the program cannot be started or fails.
    pub fn fetch(&self, (link, port): (&Link, u16), folder: &Path, has_data: bool) -> io::Result<Usage> {
        let endpoint = format!("http://{}:{port}", link.server());
        let own = std::env::current_exe()?;
        let mut command = Command::new(own);
        command.arg("watch").arg("--").args(link.prefix()).env_clear();
        let variables = ["PATH", "LANG"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(variables).envs([
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ]);
        command.env("HOME", folder).env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &endpoint);
        let source = format!("s3://{BUCKET}/{PREFIX}");
        match self.kind {
            Kind::Runner => self.run_runner(&mut command, folder, has_data)?,
            Kind::Aws(requests) => {
                let config = folder.join("config");
                let line = requests.map(|requests| format!("  max_concurrent_requests = {requests}\n"));
                let content = format!("[default]\ns3 =\n  addressing_style = path\n{}", line.unwrap_or_default());
                fs::write(&config, content)?;
                command.env("AWS_CONFIG_FILE", config);
                command.arg(&self.program).args(["s3", "sync", "--only-show-errors", &source]).arg(folder.join("data"));
            }
            Kind::S5cmd => {
                let source = format!("{source}*");
                command.arg(&self.program).args(["--log", "error", "--endpoint-url", &endpoint, "sync", &source]);
                command.arg(format!("{}/", folder.join("data").display()));
            }
        }
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let problem = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{} fails: {}", self.name(), problem.trim())));
        }
        serde_json::from_slice(&output.stdout).map_err(io::Error::other)
    }

    /// Adds what AWS Batch and the job definition set (`runner/tests/world`).
    fn run_runner(&self, command: &mut Command, folder: &Path, has_data: bool) -> io::Result<()> {
        let root = folder.join("root");
        // A container starts with a file system of its own.
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(root.join("tmp"))?;
        let variables = [
            ("AWS_BATCH_JOB_ID", "job"),
            ("AWS_BATCH_JOB_ATTEMPT", "1"),
            ("SPOTSWEEP_SWEEP", if has_data { SWEEP } else { "without-data" }),
            ("SPOTSWEEP_FIRST_INDEX", "0"),
            ("SPOTSWEEP_CLAIM_FUNCTION", "trial-claim"),
            ("SPOTSWEEP_CLAIM_TOKEN", "00112233445566778899aabbccddeeff"),
        ];
        command.envs(variables);
        command
            .env("TMPDIR", root.join("tmp"))
            .env("SPOTSWEEP_ROOT", &root)
            .env("SPOTSWEEP_DATA", folder.join("cache"));
        // The runner mounts the set, in a namespace of its own where it may do that.
        if nix::unistd::geteuid().is_root() {
            command.args(["unshare", "--mount"]);
        }
        command.arg(&self.program).args(["--", "true"]);
        Ok(())
    }
}
