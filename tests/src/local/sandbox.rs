//! One invocation of a function's real binary, as Lambda makes it: a process that asks a Runtime
//! API for its event. Its AWS calls pass through the same port, where each is a point to die at.

use std::fs::File;
use std::future::pending;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::routing::{get, post};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::aws::{CREDENTIAL, REGION, http_client};

/// The functions' own timeout (infra/control-plane.yaml).
const TIMEOUT: Duration = Duration::from_secs(60);

/// A function and what it reaches.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The function's binary.
    pub binary: PathBuf,
    /// Its variables, as the template sets them.
    pub variables: Vec<(String, String)>,
    /// Everything but Batch.
    pub endpoint: String,
    /// Batch.
    pub batch: String,
    /// Where its output goes.
    pub log: PathBuf,
}

/// Where an invocation is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// At which of its AWS calls, from 0.
    pub call: usize,
    /// On which side of it.
    pub moment: Moment,
}

/// The side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The service has not seen the call.
    Before,
    /// The service has answered, the function has not seen the answer.
    After,
}

/// What an invocation did.
#[derive(Debug)]
pub struct Invocation {
    /// Its AWS calls that reached the service, in order.
    pub calls: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With this response.
    Answered(Value),
    /// With this error.
    Failed(Value),
    /// Killed where it was to be, at this call.
    Killed(String),
}

/// All that the process can reach.
struct Port {
    event: Mutex<Option<Value>>,
    kill: Option<Kill>,
    endpoint: String,
    batch: String,
    client: Client<HttpConnector, Body>,
    asked: Mutex<usize>,
    calls: Mutex<Vec<String>>,
    ended: mpsc::UnboundedSender<Outcome>,
}

impl Sandbox {
    /// Runs a fresh process on one event. It is dead when this returns.
    ///
    /// # Panics
    /// Where the process ends by itself or does not answer in time.
    pub async fn invoke(&self, event: &Value, kill: Option<Kill>) -> Invocation {
        let (ended, mut outcomes) = mpsc::unbounded_channel();
        let port = Arc::new(Port {
            event: Mutex::new(Some(event.clone())),
            kill,
            endpoint: self.endpoint.clone(),
            batch: self.batch.clone(),
            client: http_client(),
            asked: Mutex::default(),
            calls: Mutex::default(),
            ended,
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a bound port has an address").to_string();
        let router = router(Arc::clone(&port));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        let mut process = self.command(&address).spawn().expect("the function can be started");
        let outcome = tokio::select! {
            outcome = timeout(TIMEOUT, outcomes.recv()) => outcome.expect("the function answers in time"),
            status = process.wait() => unreachable!("{} ended: {status:?}", self.binary.display()),
        };
        // SIGKILL, and wait until the kernel has reaped it. After an answer Lambda would freeze it.
        process.kill().await.expect("the process is ours");
        serving.abort();
        let calls = std::mem::take(&mut *lock(&port.calls));
        Invocation { calls, outcome: outcome.expect("the port holds the sender") }
    }

    fn command(&self, address: &str) -> Command {
        let url = format!("http://{address}");
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .env("AWS_LAMBDA_FUNCTION_NAME", self.binary.file_name().unwrap_or_default())
            .envs([("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"), ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")])
            .envs(["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BATCH"].map(|name| (name, &url)))
            .envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, CREDENTIAL)))
            .env("AWS_REGION", REGION)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("the log can be written twice"))
            .stdout(log)
            .kill_on_drop(true);
        command
    }
}

/// Lambda's Runtime API (docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html); whatever else is
/// asked for is an AWS call.
fn router(port: Arc<Port>) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(error))
        .fallback(forward)
        .with_state(port)
}

async fn next(State(port): State<Arc<Port>>) -> Response<Body> {
    let event = lock(&port.event).take();
    let Some(event) = event else {
        return pending().await;
    };
    let deadline = jiff::Timestamp::now() + TIMEOUT;
    Response::builder()
        .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        .header("lambda-runtime-deadline-ms", deadline.as_millisecond())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:under-test")
        .header("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700")
        .body(Body::from(event.to_string()))
        .expect("well-formed headers")
}

async fn response(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    port.end(Outcome::Answered(serde_json::from_str(&body).unwrap_or(Value::String(body))))
}

async fn error(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    port.end(Outcome::Failed(serde_json::from_str(&body).unwrap_or(Value::String(body))))
}

async fn forward(State(port): State<Arc<Port>>, request: Request) -> Response<Body> {
    let name = name(&request);
    let call = {
        let mut asked = lock(&port.asked);
        *asked += 1;
        *asked - 1
    };
    port.point(Kill { call, moment: Moment::Before }, &name).await;
    let answer = port.send(request).await;
    lock(&port.calls).push(name.clone());
    port.point(Kill { call, moment: Moment::After }, &name).await;
    answer
}

impl Port {
    fn end(&self, outcome: Outcome) -> StatusCode {
        // Refused only when the invocation has ended already.
        let _ = self.ended.send(outcome);
        StatusCode::ACCEPTED
    }

    /// Where the process is to die, it never hears again.
    async fn point(&self, here: Kill, name: &str) {
        if self.kill == Some(here) {
            self.end(Outcome::Killed(format!("{:?} {name}", here.moment)));
            pending::<()>().await;
        }
    }

    async fn send(&self, request: Request) -> Response<Body> {
        let (mut head, body) = request.into_parts();
        let base = if head.uri.path().starts_with("/v1/") { &self.batch } else { &self.endpoint };
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = format!("{base}{path}").parse::<Uri>().expect("a path that came is well-formed");
        let body = to_bytes(body, usize::MAX).await.expect("the function sends what it began to send");
        let answer = self.client.request(Request::from_parts(head, Body::from(body))).await;
        let (head, body) = answer.expect("the service answers").into_parts();
        // Whole, so that the service is done before the function can be killed after it.
        let body = to_bytes(Body::new(body), usize::MAX).await.expect("the whole answer arrives");
        Response::from_parts(head, Body::from(body))
    }
}

/// `DynamoDB_20120810.GetItem`, `PUT /bucket/key`, `POST /v1/submitjob`.
fn name(request: &Request) -> String {
    let target = |headers: &HeaderMap| headers.get("x-amz-target")?.to_str().ok().map(str::to_owned);
    target(request.headers()).unwrap_or_else(|| format!("{} {}", request.method(), request.uri().path()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
