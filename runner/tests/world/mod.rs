//! Emulates Lambda Invoke, S3 and IMDS in one server, as far as the runner uses them, and records the requests.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use self::server::answer;

pub(crate) const LINES: &str =
    "{\"index\":6,\"parameters\":{}}\n{\"index\":7,\"parameters\":{\"lr\":0.1,\"name\":\"a b\"}}\n";

/// The claim token of the sweep.
pub(crate) const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// The access key id of the trial's own credentials.
pub(crate) const ISSUED: &str = "ISSUED";

/// How `trial-claim` answers the n-th (from 0) request of a kind.
pub(crate) type Invoke = fn(kind: &str, nth: usize) -> Answer;
/// The status with which S3 answers a method on a key.
pub(crate) type Store = fn(method: &Method, key: &str) -> StatusCode;

pub(crate) enum Answer {
    Json(Value),
    FunctionError(Value),
    Status(u16),
    /// The signature's time differs from AWS's own.
    Refused {
        ahead_seconds: i64,
    },
}

/// What the server has received and stores.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) invocations: Vec<Value>,
    /// The times with which invocations were signed.
    pub(crate) signed_at: Vec<String>,
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// The CRC64NVME of objects, in base64.
    checksums: BTreeMap<String, &'static str>,
    /// The objects whose next answer has another first byte.
    damaged: BTreeSet<String>,
    /// Every S3 request as `METHOD key?query`.
    pub(crate) requests: Vec<String>,
    parts: BTreeMap<u32, Vec<u8>>,
    /// Parameter Store's values by name.
    secrets: BTreeMap<String, String>,
    /// Secrets Manager's answers by name.
    managed: BTreeMap<String, Value>,
    /// The metadata service's answers by path, in addition to the instance and its zone.
    metadata: BTreeMap<String, String>,
    /// How many of its next requests the metadata service does not answer.
    misses: u32,
}

struct Server {
    invoke: Invoke,
    store: Store,
    seen: Mutex<Seen>,
}

/// A server, a root folder and a folder for temporary files; removed when dropped.
pub(crate) struct World {
    server: Arc<Server>,
    address: String,
    serving: JoinHandle<()>,
    folder: TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) fn granted() -> Answer {
    let first_byte = LINES.find('\n').unwrap() + 1;
    Answer::Json(json!({"granted": {
        "parameters": {"bucket": "b", "key": "results/s-1/trials.jsonl", "first_byte": first_byte, "last_byte": LINES.len() - 1},
        "outputs": {"bucket": "b", "prefix": "results/s-1/trials/7/"},
    }}))
}

/// Accepts everything, and issues credentials for an hour.
fn accepted(kind: &str) -> Answer {
    let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let access =
        json!({"access_key_id": ISSUED, "secret_access_key": "s", "session_token": "t", "expires_at": expires_at});
    Answer::Json(if kind == "access" { json!({"access": access}) } else { json!({"accepted": {}}) })
}

/// Grants and accepts everything.
pub(crate) fn kind(kind: &str, _nth: usize) -> Answer {
    if kind == "claim" { granted() } else { accepted(kind) }
}

/// The volume of every granted workspace.
pub(crate) const VOLUME: &str = "vol-0abc";

/// The ECS task of the runner's container.
pub(crate) const TASK: &str = "arn:aws:ecs:us-east-1:123456789012:task/Batch_a/0f1e";

/// A grant with an attached workspace.
pub(crate) fn granted_workspace(blank: bool) -> Answer {
    let Answer::Json(mut grant) = granted() else { unreachable!() };
    grant["granted"]["workspace"] = json!({"volume": VOLUME, "device": "/dev/sdf", "blank": blank});
    Answer::Json(grant)
}

/// Grants everything with a workspace, and accepts everything.
pub(crate) fn generous(kind: &str, _nth: usize) -> Answer {
    if kind == "claim" { granted_workspace(true) } else { accepted(kind) }
}

/// Grants everything with what an attempt prepares, as `code` of a grant has it, and accepts everything.
pub(crate) fn preparing(preparation: Value, kind: &str, nth: usize) -> Answer {
    match (kind, generous(kind, nth)) {
        ("claim", Answer::Json(mut grant)) => {
            grant["granted"]["code"] = preparation;
            Answer::Json(grant)
        }
        (_, other) => other,
    }
}

pub(crate) const INTERRUPTION: &str = "/latest/meta-data/spot/instance-action";
pub(crate) const REBALANCE: &str = "/latest/meta-data/events/recommendations/rebalance";

/// An interruption notice in EC2's format.
pub(crate) fn in_seconds(seconds: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    json!({"action": "terminate", "time": format!("{at:.0}")}).to_string()
}

pub(crate) fn well(_method: &Method, _key: &str) -> StatusCode {
    StatusCode::OK
}

/// How the runner ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) async fn start(invoke: Invoke, store: Store) -> Self {
        let server = Arc::new(Server { invoke, store, seen: Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&server));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        std::fs::create_dir_all(folder.path().join("dev/disk/by-id")).unwrap();
        Self { server, address, serving, folder }
    }

    /// Starts a server, with an attached volume for the workspace.
    pub(crate) async fn with_volume(invoke: Invoke) -> Self {
        let world = Self::start(invoke, well).await;
        std::fs::create_dir_all(world.path("volume")).unwrap();
        world.attach(&world.path("volume"));
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the runner with the environment of trial 7, the second child of a part that begins at 6. An empty value
    /// removes a variable.
    pub(crate) fn spawn(&self, extra: &[(&str, &str)], command: &[&str]) -> Child {
        self.runner(env!("CARGO_BIN_EXE_spotsweep-runner"), &[], extra, command).spawn().unwrap()
    }

    /// Like [`Self::spawn`], but the command can be changed before it starts.
    pub(crate) fn runner(
        &self,
        program: impl AsRef<OsStr>,
        arguments: &[&str],
        extra: &[(&str, &str)],
        command: &[&str],
    ) -> Command {
        let own = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", self.path("tmp").display().to_string()),
            ("TMPDIR", self.path("tmp").display().to_string()),
            ("AWS_ENDPOINT_URL", self.address.clone()),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", self.address.clone()),
            ("ECS_CONTAINER_METADATA_URI_V4", format!("{}/v4/0f1e", self.address)),
        ];
        let given = [
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_BATCH_JOB_ID", "0f:1"),
            ("AWS_BATCH_JOB_ARRAY_INDEX", "1"),
            ("AWS_BATCH_JOB_ATTEMPT", "2"),
            ("SPOTSWEEP_SWEEP", "s-1"),
            ("SPOTSWEEP_FIRST_INDEX", "6"),
            ("SPOTSWEEP_CLAIM_FUNCTION", "trial-claim"),
            ("SPOTSWEEP_CLAIM_TOKEN", TOKEN),
            ("SPOTSWEEP_REPORT_SECONDS", "0.1"),
            ("SPOTSWEEP_UPLOAD_SECONDS", "0.1"),
            ("SPOTSWEEP_PATIENCE_SECONDS", "3"),
            ("SPOTSWEEP_SEAL_SECONDS", "0.1"),
            ("SPOTSWEEP_IMDS_POLL_SECONDS", "0.1"),
        ];
        let mut runner = Command::new(program);
        runner
            .args(arguments)
            .arg("--")
            .args(command)
            .env_clear()
            .envs(own)
            .env("SPOTSWEEP_ROOT", self.folder.path())
            .env("SPOTSWEEP_DEV", self.path("dev"))
            .envs(given)
            .envs(extra.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        runner
    }

    /// Makes the volume appear as a folder.
    pub(crate) fn attach(&self, target: &Path) {
        let link = self.path("dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0abc");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, link).unwrap();
    }

    /// Sets an answer of the metadata service.
    pub(crate) fn announce(&self, path: &str, text: &str) {
        self.server.seen.lock().unwrap().metadata.insert(path.to_owned(), text.to_owned());
    }

    /// Makes the metadata service leave its next requests unanswered.
    pub(crate) fn miss(&self, answers: u32) {
        self.server.seen.lock().unwrap().misses = answers;
    }

    pub(crate) async fn run(&self, extra: &[(&str, &str)], command: &[&str]) -> Outcome {
        self.outcome(self.spawn(extra, command)).await
    }

    pub(crate) async fn outcome(&self, runner: Child) -> Outcome {
        let output = runner.wait_with_output();
        let output = tokio::time::timeout(Duration::from_secs(120), output).await.unwrap().unwrap();
        Outcome {
            code: output.status.code(),
            // A progress bar may be cut off within a character.
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Waits until `is_so` is true, also on a slow machine; fails if the runner ends before that.
    pub(crate) async fn until_done(&self, mut runner: Child, what: &str, mut is_so: impl FnMut() -> bool) -> Child {
        // The runner ends by itself before that, unless it hangs.
        for _ in 0..12_000 {
            if is_so() {
                return runner;
            }
            let has_ended = runner.try_wait().unwrap().is_some();
            if has_ended && !is_so() {
                let outcome = self.outcome(runner).await;
                panic!("ended before {what}: {outcome:?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the runner hangs before {what}");
    }

    /// Reads what the server has received.
    pub(crate) fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.server.seen.lock().unwrap())
    }

    /// The invocations of one kind.
    pub(crate) fn invocations(&self, kind: &str) -> Vec<Value> {
        self.seen(|seen| seen.invocations.iter().filter(|call| call["request"] == kind).cloned().collect())
    }

    /// Puts an object into the bucket.
    pub(crate) fn put(&self, key: &str, bytes: Vec<u8>) {
        self.server.seen.lock().unwrap().objects.insert(key.to_owned(), bytes);
    }

    /// Sends the checksum with an object, and damages its next answer.
    pub(crate) fn damage(&self, key: &str, checksum: &'static str) {
        let mut seen = self.server.seen.lock().unwrap();
        seen.checksums.insert(key.to_owned(), checksum);
        seen.damaged.insert(key.to_owned());
    }

    /// Keeps a secret in Secrets Manager, or an error for it: the members of GetSecretValue's answer.
    pub(crate) fn manage(&self, name: &str, answer: Value) {
        self.server.seen.lock().unwrap().managed.insert(name.to_owned(), answer);
    }

    /// Puts values into Parameter Store.
    pub(crate) fn keep(&self, secrets: BTreeMap<String, String>) {
        self.server.seen.lock().unwrap().secrets.extend(secrets);
    }

    /// Removes an object from the bucket.
    pub(crate) fn take(&self, key: &str) -> Option<Vec<u8>> {
        self.server.seen.lock().unwrap().objects.remove(key)
    }

    /// An object below the trial's prefix.
    pub(crate) fn output(&self, name: &str) -> Option<Vec<u8>> {
        self.seen(|seen| seen.objects.get(&format!("results/s-1/trials/7/{name}")).cloned())
    }
}

/// Waits for something that the runner or its child is expected to do.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never happened: {what}");
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
