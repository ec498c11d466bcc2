//! The whole local stack. Its parts are started in order, and stopped in reverse order.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::SdkConfig;
use jiff::Timestamp;
use serde_json::Value;
use spotsweep_emulator::{Config, Emulator, Volumes};
use spotsweep_world::World;
use tokio::time::timeout;

use crate::batch::{self, QUEUE, ZONES};
use crate::build::build;
use crate::deploy::Package;
use crate::installation::Installation;
use crate::job_role::JOB_CREDENTIAL;
use crate::leftovers::Leftovers;
use crate::ministack::Ministack;
use crate::package::link;
use crate::run_folder::RunFolder;
use crate::sdk::{self, LOCAL_REGION};
use crate::venv::Venv;
use spotsweep_protocol::failure::{Context, Failure};

/// Time from a notice to the reclaim. On AWS it is two minutes.
pub const NOTICE: Duration = Duration::from_millis(2_000);

/// The job definition of sweeps that name none, if the command line names no other one.
const USUAL_DEFINITION: &str = "train";

/// How the local stack is made.
#[derive(Debug, Clone, clap::Args)]
pub struct StackOptions {
    /// Job definition of sweeps that name none: train runs train.py, train-seed runs train_seed.py
    #[arg(long, value_name = "NAME", default_value = USUAL_DEFINITION, value_parser = ["train", "train-seed"])]
    pub job_definition: String,
    /// Take the functions and the runner from DIR instead of building them
    #[arg(long, value_name = "DIR")]
    pub binaries: Option<PathBuf>,
    /// Make volumes real: ext4 on loop devices, mounted (needs root); else they are folders
    #[arg(long)]
    pub block_devices: bool,
    /// Let instances boot for 1 to 6 s and pull their image for 0.5 to 10.5 s, as many minutes as on AWS
    #[arg(long)]
    pub slow_starts: bool,
    /// vCPUs of all instances together, one for each trial [default: the machine's cores]
    #[arg(long, value_name = "N")]
    pub max_vcpus: Option<NonZero<u16>>,
    /// Whether trainings may use all cores, and the runner seals and stops with the times that it has on AWS.
    #[arg(skip)]
    pub as_on_aws: bool,
    /// Patterns of secrets that sweeps may read, besides [`SECRETS`](crate::deploy::SECRETS).
    #[arg(skip)]
    pub secrets: Vec<String>,
}

impl StackOptions {
    /// The options that differ from their defaults, as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.job_definition != USUAL_DEFINITION {
            words.push(format!("--job-definition={}", self.job_definition));
        }
        words.extend(self.block_devices.then(|| "--block-devices".to_owned()));
        words.extend(self.slow_starts.then(|| "--slow-starts".to_owned()));
        words.extend(self.max_vcpus.map(|most| format!("--max-vcpus={most}")));
        words
    }
}

/// Killing jobs takes no time, and a job that does not end must not keep the other parts from stopping.
const EMULATOR_STOP_DEADLINE: Duration = Duration::from_secs(10);

/// The emulator's folder within the run's.
const JOBS: &str = "jobs";
/// The program that starts every job.
const RUNNER: &str = "spotsweep-runner";
/// The program that makes a container for every job.
const CONTAINER: &str = "spotsweep-container";

/// A running local stack.
pub struct Stack {
    run: RunFolder,
    emulator: Emulator,
    ministack: Ministack,
    config: SdkConfig,
    table: String,
    code: PathBuf,
}

/// What happens to a run's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    /// The run has failed, and its logs are needed.
    Keep,
    /// The run has not failed.
    Remove,
}

/// The built binaries and the Python environment from which a stack is started.
#[derive(Debug)]
pub struct Ready {
    installation: Installation,
    venv: Venv,
    binaries: PathBuf,
}

impl Ready {
    /// Builds the binaries, and installs the Python environment if it is missing, both at once.
    ///
    /// # Errors
    /// The build or the installation fails.
    pub async fn make(installation: Installation, options: &StackOptions) -> Result<Self, Failure> {
        let binaries = async {
            match &options.binaries {
                Some(folder) => folder.canonicalize().context(|| format!("cannot find {}", folder.display())),
                None => build(&installation).await,
            }
        };
        let (venv, binaries) = tokio::try_join!(Venv::ensure(&installation), binaries)?;
        Ok(Self { installation, venv, binaries })
    }

    /// The folder that holds the functions and the runner.
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }
}

impl Stack {
    /// Starts the stack. Dropping the future before its end stops what has been started.
    ///
    /// # Errors
    /// A part does not start, or a resource is missing after the deployment.
    pub async fn start(ready: &Ready, code: &Path, options: &StackOptions) -> Result<Self, Failure> {
        let Ready { installation, venv, binaries } = ready;
        let code = code.canonicalize().context(|| format!("cannot find the code folder {}", code.display()))?;
        let run = RunFolder::create(&installation.local())?;
        let emulator = Emulator::serve(emulator_config(ready, &code, &run, options)?)
            .await
            .context(|| "cannot start the emulator of Batch and EC2")?;
        let batch_endpoint = emulator.endpoint();
        let (ministack, package) = tokio::try_join!(
            Ministack::start(venv, &run, &batch_endpoint),
            Package::make(installation, binaries, &run)
        )?;
        let (config, batch_config) = (sdk::local(ministack.endpoint()), sdk::local(&batch_endpoint));
        let (table, ()) = tokio::try_join!(
            package.deploy(&config, QUEUE, &options.job_definition, &options.secrets),
            batch::register(&batch_config, &code, ministack.endpoint(), options.max_vcpus),
        )?;
        emulator.deliver_to(ministack.endpoint());
        Ok(Self { run, emulator, ministack, config, table, code })
    }

    /// The configuration of clients for its S3, DynamoDB, Lambda and EventBridge.
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// The URL of its S3, DynamoDB, Lambda and EventBridge.
    pub fn endpoint(&self) -> &str {
        self.ministack.endpoint()
    }

    /// The URL of its Batch and EC2.
    pub fn emulator_endpoint(&self) -> String {
        self.emulator.endpoint()
    }

    /// Instances, jobs and calls, from the emulator.
    pub fn snapshot(&self) -> Value {
        self.emulator.snapshot()
    }

    /// Applies a function to the emulator's World, such as a reclaim or a zone's capacity.
    pub fn with_world<R>(&self, act: impl FnOnce(&mut World, Timestamp) -> R) -> R {
        self.emulator.with_world(act)
    }

    /// Volumes, snapshots and attachments that still exist.
    pub fn leftovers(&self) -> Leftovers {
        Leftovers::find(&self.snapshot(), &self.run.path().join(JOBS))
    }

    /// The control plane's table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The folder that trials run in.
    pub fn code(&self) -> &Path {
        &self.code
    }

    /// The log of ministack and the functions.
    pub fn functions_log(&self) -> &Path {
        self.ministack.log()
    }

    /// The folder of attempts, volumes and logs.
    pub fn jobs(&self) -> PathBuf {
        self.run.path().join(JOBS)
    }

    /// The jobs' output.
    pub fn jobs_logs(&self) -> PathBuf {
        self.run.path().join(JOBS).join("logs")
    }

    /// Fails if a part of the stack has ended by itself.
    ///
    /// # Errors
    /// The error names the part.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.ministack.check()
    }

    /// Stops all parts in reverse order of their start.
    pub async fn stop(self, logs: Logs) {
        // Jobs that have not ended by the deadline are left running, because nothing more can be done.
        let _ = timeout(EMULATOR_STOP_DEADLINE, self.emulator.shutdown()).await;
        self.ministack.stop().await;
        match logs {
            Logs::Keep => self.run.keep_logs(),
            Logs::Remove => self.run.remove(),
        }
    }
}

/// Links a built program into the run's folder, so that a later build does not change it.
fn linked(program: &str, binaries: &Path, run: &RunFolder) -> Result<PathBuf, Failure> {
    let (built, name) = (binaries.join(program), run.path().join(program));
    link(&built, &name).context(|| format!("cannot link {}; is it built?", built.display()))?;
    Ok(name)
}

fn emulator_config(ready: &Ready, code: &Path, run: &RunFolder, options: &StackOptions) -> Result<Config, Failure> {
    let Ready { venv, binaries, .. } = ready;
    let mut config = Config::new(run.subfolder(JOBS)?);
    config.entrypoint = vec![linked(RUNNER, binaries, run)?.display().to_string(), "--".to_owned()];
    // No image is pulled here.
    config.images = Some(code.to_owned());
    config.container = Some(linked(CONTAINER, binaries, run)?);
    let path = std::env::var("PATH").unwrap_or_default();
    let variables = [
        ("PATH", format!("{}:{path}", venv.bin().display())),
        ("LANG", "C.UTF-8".to_owned()),
        ("AWS_ACCESS_KEY_ID", JOB_CREDENTIAL.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", JOB_CREDENTIAL.to_owned()),
        ("AWS_SESSION_TOKEN", JOB_CREDENTIAL.to_owned()),
        ("AWS_REGION", LOCAL_REGION.to_owned()),
        ("AWS_DEFAULT_REGION", LOCAL_REGION.to_owned()),
        ("SPOTSWEEP_REPORT_SECONDS", "1".to_owned()),
        ("SPOTSWEEP_IMDS_POLL_SECONDS", "0.2".to_owned()),
    ];
    // The demo's settings favour speed over cost. As many trials run at once as there are cores, so each must use one
    // core only.
    let of_demo = [
        ("SPOTSWEEP_SEAL_SECONDS", "1"),
        ("SPOTSWEEP_STOP_SECONDS", "4"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
    ];
    let of_demo = of_demo.into_iter().filter(|_| !options.as_on_aws).map(|(name, value)| (name, value.to_owned()));
    config.timings.notice = NOTICE;
    if options.slow_starts {
        config.timings = config.timings.with_slow_starts();
    }
    config.region = LOCAL_REGION.to_owned();
    config.zones = ZONES.map(String::from).into();
    config.volumes = if options.block_devices { Volumes::BlockDevices } else { Volumes::Directories };
    config.job_env = variables.into_iter().chain(of_demo).map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(config)
}
