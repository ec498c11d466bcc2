//! One trial's volume and the services around it, for several containers one after the other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use spotsweep_protocol::secret::TOKEN_VARIABLE;
use spotsweep_tests::local::Binaries;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::container::{Bind, Container, Start};
use crate::gpus::Gpus;
use crate::image::image;
use crate::network::Network;
use crate::services::{CONTAINER, CREDENTIALS, Services};
use crate::volume::Volume;

/// The training's command as a W&B config has it. Some tests have another one.
const COMMAND: &[&str] = &["python3", "/train.py", "${args}"];
/// The words before the command where the instance has fetched the runner.
const FETCHED: &[&str] = &["/opt/spotsweep/spotsweep-runner", "--"];
/// Times that are shorter than on AWS.
const PAUSES: [(&str, &str); 3] =
    [("SPOTSWEEP_REPORT_SECONDS", "0.1"), ("SPOTSWEEP_SEAL_SECONDS", "0.2"), ("SPOTSWEEP_IMDS_POLL_SECONDS", "0.1")];

/// A trial with its surroundings. Dropping this removes its parts in this order.
pub(crate) struct Scene {
    pub(crate) volume: Volume,
    pub(crate) services: Services,
    pub(crate) gpus: Gpus,
    pub(crate) command: &'static [&'static str],
    /// Variables of the containers that are added to a job's, or replace them.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The image's entrypoint.
    pub(crate) entrypoint: &'static [&'static str],
    /// Files of the image that the containers do not have.
    pub(crate) without: &'static [&'static str],
    /// Whether jobs mount the instance's runner.
    is_fetched: bool,
    network: Network,
    name: String,
    image: PathBuf,
    folder: TempDir,
}

impl Scene {
    /// Makes a trial with these parameters. `None` if this machine cannot run containers.
    pub(crate) fn make(parameters: &Value) -> Option<Self> {
        Some(Self::of(image()?.to_owned(), None, parameters))
    }

    /// Makes a trial in an `image`, on an instance that has fetched a `runner`, if there is one.
    pub(crate) fn of(image: PathBuf, runner: Option<&Path>, parameters: &Value) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("spotsweep-{}-{number}", std::process::id());
        let folder = tempfile::Builder::new().prefix(&name).tempdir_in(image.parent().unwrap()).unwrap();
        fs::create_dir(folder.path().join("probe")).unwrap();
        let network = Network::make(&name).unwrap();
        network.boot(folder.path(), runner);
        let volume = Volume::create(folder.path(), format!("vol-{:08x}{number:02x}", std::process::id()));
        let services = Services::start(&network, folder.path(), &volume.id, parameters);
        let gpus = Gpus::make(folder.path(), 1000 + std::process::id() % 4096 * 64 + number * 2);
        Self {
            volume,
            services,
            gpus,
            command: COMMAND,
            variables: Vec::new(),
            entrypoint: if runner.is_some() { &[] } else { &["spotsweep-runner", "--"] },
            without: &[],
            is_fetched: runner.is_some(),
            network,
            name,
            image,
            folder,
        }
    }

    /// Another trial's volume.
    pub(crate) fn other_volume(&self) -> Volume {
        let folder = self.folder.path().join("other");
        fs::create_dir(&folder).unwrap();
        Volume::create(&folder, format!("{}0", self.volume.id))
    }

    /// Starts the container of an attempt, with more binds than a job has.
    pub(crate) fn start(&self, attempt: u32, more: &[Bind<'_>]) -> Container {
        let hosts = self.file("hosts", &format!("127.0.0.1 localhost\n{}", Services::host_lines()));
        let runner = Binaries::build().get("spotsweep-runner");
        let [training, shell] =
            ["train.py", "train.sh"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("container").join(name));
        let probe = self.folder.path().join("probe");
        let mut binds: Vec<Bind<'_>> = vec![
            (&hosts, "/etc/hosts"),
            (&self.services.roots, "/etc/ssl/certs/ca-certificates.crt"),
            (&training, "/train.py"),
            (&shell, "/train.sh"),
            (&probe, "/probe"),
        ];
        binds.push((self.volume.list(), "/sys/class/block"));
        if self.entrypoint.first() == Some(&"spotsweep-runner") {
            binds.push((&runner, "/usr/local/bin/spotsweep-runner"));
        }
        binds.extend(more);
        Container::start(&Start {
            id: format!("{}-{attempt}", self.name),
            folder: self.folder.path().join(format!("attempt-{attempt}")),
            image: &self.image,
            network: &self.network,
            driver: &self.gpus.driver,
            environment: [environment(attempt), self.variables.clone()].concat(),
            binds,
            of_instance: self.is_fetched.then(|| self.folder.path().join("instance/opt/spotsweep")),
            without: self.without,
            command: &[self.entrypoint, if self.is_fetched { FETCHED } else { &[] }, self.command].concat(),
        })
    }

    /// Runs the next attempt on another instance, and asserts that it goes on after `step` and ends.
    pub(crate) async fn finish(&mut self, attempt: u32, step: u64) {
        self.services.hold(None);
        self.services.announce(None);
        self.volume.attach();
        let ended = self.start(attempt, &[]).outcome().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let start = format!("starting after step {step}");
        assert!(ended.stdout.lines().any(|line| line == start), "{start}{}{}", ended.stdout, ended.stderr);
        // Each of the thirty steps has added its number once.
        let model = self.services.output("model.json");
        assert_eq!(model.as_deref(), Some(r#"{"step": 30, "sum": 465}"#), "{}", ended.stderr);
        assert_eq!(self.services.invocations("end")[0]["exit_code"], 0);
        assert_eq!(self.services.seen().refused, [] as [String; 0]);
        self.assert_nothing_is_left();
        self.volume.detach().await.unwrap();
        self.volume.check().unwrap();
    }

    /// Asserts that neither the volume nor anything of a container is mounted on this machine.
    pub(crate) fn assert_nothing_is_left(&self) {
        let device = self.volume.device_number();
        let folder = self.folder.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let left = |line: &&str| line.contains(folder) || device.as_ref().is_some_and(|device| line.contains(device));
        assert_eq!(mounts.lines().filter(left).collect::<Vec<_>>(), [] as [&str; 0]);
    }

    /// Whether the control plane has a report of so many steps.
    pub(crate) fn has_trained(&self, steps: u64) -> bool {
        self.reports(|report| report["metrics"]["sum"]["step"].as_f64() == Some(steps as f64))
    }

    pub(crate) fn has_sealed(&self, checkpoint: &str) -> bool {
        self.reports(|report| report["seal"]["newest"] == checkpoint)
    }

    pub(crate) fn has_saved(&self) -> bool {
        self.reports(|report| report["metrics"]["saved"]["last"] == 1.0)
    }

    fn reports(&self, is_so: impl Fn(&Value) -> bool) -> bool {
        self.services.invocations("report").iter().any(is_so)
    }

    /// Kinds of the requests to `trial-claim`, except for reports.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let seen = self.services.seen();
        let kinds = seen.invocations.iter().map(|call| call["request"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "report").collect()
    }

    /// Writes a program for containers.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Path of a file in a folder that the containers share with the test.
    pub(crate) fn probe(&self, name: &str) -> PathBuf {
        self.folder.path().join("probe").join(name)
    }
}

/// The variables of Docker, the ECS agent, AWS Batch, the job definition and `sweep-upload`. None names a region or an
/// endpoint.
fn environment(attempt: u32) -> Vec<(&'static str, String)> {
    let metadata = format!("http://169.254.170.2{CONTAINER}");
    let mut environment: Vec<_> = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOSTNAME", "ip-10-0-1-23"),
        ("HOME", "/root"),
        // This is the value of today's image. The agent's own value is not visible (fact 57).
        ("NVIDIA_VISIBLE_DEVICES", "void"),
        ("AWS_EXECUTION_ENV", "AWS_ECS_EC2"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", CREDENTIALS),
        ("ECS_CONTAINER_METADATA_URI_V4", metadata.as_str()),
        ("ECS_AGENT_URI", metadata.as_str()),
        ("AWS_BATCH_JOB_ID", "0f4b6d9e-6d55-4b2b-9f0a-2f4a1e7c9d10:0"),
        ("AWS_BATCH_JOB_ARRAY_INDEX", "0"),
        ("AWS_BATCH_JOB_ARRAY_SIZE", "2"),
        ("AWS_BATCH_CE_NAME", "spotsweep-spot"),
        ("AWS_BATCH_JQ_NAME", "spotsweep-spot"),
        ("SPOTSWEEP_DEV", "/host/dev"),
        ("SPOTSWEEP_USER", "1000:1000"),
        ("SPOTSWEEP_SWEEP", "s-1"),
        ("SPOTSWEEP_BUCKET", "a-bucket"),
        ("SPOTSWEEP_KEY", "sweeps/s.yaml"),
        ("SPOTSWEEP_FIRST_INDEX", "0"),
        ("SPOTSWEEP_CLAIM_FUNCTION", "trial-claim"),
        (TOKEN_VARIABLE, "00112233445566778899aabbccddeeff"),
    ]
    .into_iter()
    .chain(PAUSES)
    .map(|(name, value)| (name, value.to_owned()))
    .collect();
    environment.push(("AWS_BATCH_JOB_ATTEMPT", attempt.to_string()));
    environment
}

/// Waits for something that the container is about to do.
pub(crate) async fn until(what: &str, container: &Container, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        assert!(container.is_running(), "{what}: the container has ended: {}", container.log());
        sleep(Duration::from_millis(25)).await;
    }
    panic!("never happened: {what}: {}", container.log());
}
