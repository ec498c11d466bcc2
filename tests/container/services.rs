//! The services around a job, with their own addresses and names: the instance's metadata, the ECS agent's credentials,
//! and Lambda and S3 over TLS with the names of their regional endpoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use serde_json::{Value, json};
use spotsweep_tests::tls::{Identity, TlsListener};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::network::{AGENT, METADATA, Network, PUBLIC};

/// The instance's region, which only the metadata service returns.
const REGION: &str = "eu-central-1";
/// Path of the task's credentials at the ECS agent.
pub(crate) const CREDENTIALS: &str = "/v2/credentials/9c1b7a52-2f6e-4f43-8f0a-5a8b6d3c2e11";
/// Path at which the ECS agent describes the container.
pub(crate) const CONTAINER: &str = "/v4/0f1e2d3c-4b5a-4978-8675-a4b3c2d1e0f9";
const TASK_ARN: &str = "arn:aws:ecs:eu-central-1:123456789012:task/spotsweep_Batch_1/0f1e2d3c4b5a49788675a4b3c2d1e0f9";
const TOKEN: &str = "a-token-of-IMDSv2";
/// Key ids of the task's role, and of the credentials that `trial-claim` issues.
const TASK: &str = "AKIDOFTHETASK";
const ISSUED: &str = "AKIDOFTHETRIAL";
const BUCKET: &str = "a-bucket";
const OUTPUTS: &str = "results/s-1/trials/0/";

/// The requests so far, and the answers to them.
#[derive(Default)]
pub(crate) struct Seen {
    /// Requests to `trial-claim`.
    pub(crate) invocations: Vec<Value>,
    /// The objects in the bucket, by key.
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// Requests that a service has refused, and why.
    pub(crate) refused: Vec<String>,
    /// The announced interruption of the instance.
    interruption: Option<String>,
}

struct Server {
    /// The trial's parameters, as in `trials.jsonl`.
    parameters: String,
    /// Id of the trial's volume.
    volume: String,
    seen: Mutex<Seen>,
    /// The kind of request to `trial-claim` that is not answered now.
    held: watch::Sender<Option<&'static str>>,
    /// What the grant has the runner prepare.
    preparation: Mutex<Option<Value>>,
}

/// The running services. Dropping this stops them.
pub(crate) struct Services {
    server: Arc<Server>,
    serving: Vec<JoinHandle<()>>,
    /// A bundle of certificates with which they are trusted.
    pub(crate) roots: PathBuf,
}

impl Drop for Services {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

impl Services {
    /// Starts the services for a trial with these parameters.
    pub(crate) fn start(network: &Network, folder: &Path, volume: &str, parameters: &Value) -> Self {
        let parameters = json!({ "index": 0, "parameters": parameters }).to_string();
        let server = Arc::new(Server {
            parameters,
            volume: volume.to_owned(),
            seen: Mutex::default(),
            held: watch::Sender::new(None),
            preparation: Mutex::new(None),
        });
        let identity = Identity::make(folder, &hosts().each_ref().map(String::as_str));
        let listen = |address, port| TcpListener::from_std(network.listen(address, port)).unwrap();
        let public = TlsListener::over(listen(PUBLIC, 443), &identity).unwrap();
        let (metadata, agent) = (listen(METADATA, 80), listen(AGENT, 80));
        let state = || Arc::clone(&server);
        let routers = (
            Router::new().fallback(ask_metadata).with_state(state()),
            Router::new().fallback(ask_agent).with_state(state()),
            Router::new().fallback(ask_aws).with_state(state()),
        );
        let serving = vec![
            tokio::spawn(async move { axum::serve(metadata, routers.0).await.unwrap() }),
            tokio::spawn(async move { axum::serve(agent, routers.1).await.unwrap() }),
            tokio::spawn(async move { axum::serve(public, routers.2).await.unwrap() }),
        ];
        Self { server, serving, roots: identity.roots }
    }

    /// Lines for a container's `/etc/hosts`, in place of DNS.
    pub(crate) fn host_lines() -> String {
        hosts().map(|host| format!("{PUBLIC} {host}\n")).concat()
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.server.seen.lock().unwrap()
    }

    /// The requests of one kind to `trial-claim`.
    pub(crate) fn invocations(&self, kind: &str) -> Vec<Value> {
        self.seen().invocations.iter().filter(|call| call["request"] == kind).cloned().collect()
    }

    /// Leaves requests of this kind unanswered, until this is called again.
    pub(crate) fn hold(&self, kind: Option<&'static str>) {
        self.server.held.send_replace(kind);
    }

    /// Has the grant name what the runner prepares.
    pub(crate) fn prepare(&self, preparation: Value) {
        *self.server.preparation.lock().unwrap() = Some(preparation);
    }

    /// Makes the metadata service announce the instance's end in so many seconds. `None` stands for another instance
    /// without a notice.
    pub(crate) fn announce(&self, seconds: Option<i64>) {
        let at = seconds.map(|seconds| jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds));
        self.seen().interruption =
            at.map(|at| json!({ "action": "terminate", "time": format!("{at:.0}") }).to_string());
    }

    /// An object below the trial's prefix, as text.
    pub(crate) fn output(&self, name: &str) -> Option<String> {
        let bytes = self.seen().objects.get(&format!("{OUTPUTS}{name}")).cloned();
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }
}

/// The regional endpoints, as the SDK derives them. S3 has a name for each bucket.
fn hosts() -> [String; 2] {
    [format!("lambda.{REGION}.amazonaws.com"), format!("{BUCKET}.s3.{REGION}.amazonaws.com")]
}

async fn ask_metadata(
    State(server): State<Arc<Server>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    if (&method, uri.path()) == (&Method::PUT, "/latest/api/token") {
        return reply(200, &[("x-aws-ec2-metadata-token-ttl-seconds", "21600")], TOKEN);
    }
    if headers.get("x-aws-ec2-metadata-token").is_none_or(|token| token != TOKEN) {
        // The launch template requires version 2 of the service.
        return server.refuse(401, format!("{method} {uri} without a token"));
    }
    let said = match uri.path().strip_prefix("/latest/meta-data/") {
        Some("instance-id") => Some("i-0abc".to_owned()),
        Some("instance-type") => Some("g5.xlarge".to_owned()),
        Some("instance-life-cycle") => Some("spot".to_owned()),
        Some("placement/availability-zone") => Some(format!("{REGION}a")),
        Some("placement/region") => Some(REGION.to_owned()),
        Some("spot/instance-action") => server.seen.lock().unwrap().interruption.clone(),
        _ => None,
    };
    said.map_or_else(|| reply(404, &[], "404 - Not Found"), |said| reply(200, &[], said))
}

async fn ask_agent(State(server): State<Arc<Server>>, method: Method, uri: Uri) -> Response<Body> {
    if (&method, uri.path()) == (&Method::GET, CONTAINER) {
        let task = TASK_ARN.split_once('/').unwrap().1;
        let labels = json!({
            "com.amazonaws.ecs.cluster": task.split_once('/').unwrap().0, "com.amazonaws.ecs.container-name": "default",
            "com.amazonaws.ecs.task-arn": TASK_ARN,
        });
        return reply(
            200,
            &[("content-type", "application/json")],
            json!({ "Name": "default", "Labels": labels }).to_string(),
        );
    }
    if (&method, uri.path()) != (&Method::GET, CREDENTIALS) {
        return server.refuse(404, format!("{method} {uri} of the ECS agent"));
    }
    let credentials = json!({
        "RoleArn": "arn:aws:iam::123456789012:role/spotsweep-job", "AccessKeyId": TASK, "SecretAccessKey": "secret",
        "Token": "token", "Expiration": in_an_hour(),
    });
    reply(200, &[("content-type", "application/json")], credentials.to_string())
}

async fn ask_aws(
    State(server): State<Arc<Server>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let [lambda, bucket] = hosts();
    let (key, service) = if of("host") == lambda { (TASK, "lambda") } else { (ISSUED, "s3") };
    let signature = format!("Credential={key}/");
    let scope = format!("/{REGION}/{service}/aws4_request");
    if !(of("authorization").contains(&signature) && of("authorization").contains(&scope)) {
        return server.refuse(403, format!("{method} {uri} of {} signed with {}", of("host"), of("authorization")));
    }
    if of("host") == lambda && uri.path() == "/2015-03-31/functions/trial-claim/invocations" {
        return server.invoke(serde_json::from_slice(&body).unwrap()).await;
    }
    let (wanted, place) = (of("host") == bucket, uri.path().trim_start_matches('/'));
    match method {
        Method::GET if wanted && place == "results/s-1/trials.jsonl" => reply(206, &[], server.parameters.clone()),
        Method::GET if wanted && place.contains("data/") => match server.seen.lock().unwrap().objects.get(place) {
            Some(object) => reply(200, &[("etag", "\"e\"")], object.clone()),
            None => reply(404, &[], ""),
        },
        Method::PUT if wanted && place.starts_with(OUTPUTS) => {
            let is_framed = of("content-encoding") == "aws-chunked";
            let content = if is_framed { unframed(&body) } else { body.to_vec() };
            server.seen.lock().unwrap().objects.insert(place.to_owned(), content);
            reply(200, &[("etag", "\"e\"")], "")
        }
        _ => server.refuse(404, format!("{method} {uri} of {}", of("host"))),
    }
}

impl Server {
    fn refuse(&self, status: u16, why: String) -> Response<Body> {
        self.seen.lock().unwrap().refused.push(why);
        reply(status, &[], "")
    }

    /// `trial-claim` for a trial with an empty new volume. It grants and accepts everything.
    async fn invoke(&self, request: Value) -> Response<Body> {
        let kind = request["request"].as_str().unwrap().to_owned();
        let is_known = request["task"] == json!({ "arn": TASK_ARN, "container": "default" });
        let is_blank = {
            let mut seen = self.seen.lock().unwrap();
            seen.invocations.push(request);
            !seen.invocations.iter().any(|call| call["request"] == "mounted")
        };
        // The sender belongs to this server, which lives as long as this request.
        let _ = self.held.subscribe().wait_for(|held| *held != Some(kind.as_str())).await;
        let answer = match kind.as_str() {
            "claim" => json!({ "granted": {
                "parameters": { "bucket": BUCKET, "key": "results/s-1/trials.jsonl", "first_byte": 0, "last_byte": self.parameters.len() - 1 },
                "outputs": { "bucket": BUCKET, "prefix": OUTPUTS },
                "workspace": { "volume": self.volume, "device": "/dev/sdf", "blank": is_blank },
                // This is how ECS describes the task.
                "gpus": is_known.then_some(["GPU-own"]),
                "code": *self.preparation.lock().unwrap(),
            } }),
            "access" => json!({ "access": {
                "access_key_id": ISSUED, "secret_access_key": "s", "session_token": "t", "expires_at": in_an_hour(),
            } }),
            _ => json!({ "accepted": {} }),
        };
        reply(200, &[], answer.to_string())
    }
}

fn in_an_hour() -> String {
    format!("{:.0}", jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1))
}

fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// The content of a body in chunks, each `<size in hex>[;…]\r\n<bytes>\r\n`, with a checksum at the end.
fn unframed(mut body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let end = body.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let size = std::str::from_utf8(&body[..end]).unwrap().split(';').next().unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return content;
        }
        content.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
}
