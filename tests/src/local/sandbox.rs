//! A function's real binary as Lambda runs it: a process that asks a Runtime API for its events. Its
//! AWS calls pass through the same port, where each is a point to die at.

use std::fs::File;
use std::future::pending;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::aws::{CREDENTIAL, REGION};
use super::proxy::{self, Call, Proxy};
use super::usage::Usage;

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
    /// Names of its AWS calls that reached the service, in order.
    pub calls: Vec<String>,
    /// The same calls, each with its bytes and times.
    pub traffic: Vec<Call>,
    /// How it ended.
    pub outcome: Outcome,
    /// When the event was handed over.
    pub began: Instant,
    /// When the response came.
    pub ended: Instant,
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

/// A function's process, from its start until it is killed.
#[derive(Debug)]
pub struct Warm {
    /// When it was started.
    pub began: Instant,
    events: mpsc::UnboundedSender<Value>,
    outcomes: mpsc::UnboundedReceiver<(Outcome, Instant)>,
    port: Arc<Port>,
    process: Child,
    serving: JoinHandle<()>,
}

/// All that the process can reach.
#[derive(Debug)]
struct Port {
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<Value>>,
    handed: Mutex<Option<Instant>>,
    kill: Option<Kill>,
    proxy: Proxy,
    asked: Mutex<usize>,
    ended: mpsc::UnboundedSender<(Outcome, Instant)>,
}

impl Sandbox {
    /// Runs a fresh process on one event. It is dead when this returns.
    ///
    /// # Panics
    /// Where the process ends by itself or does not answer in time.
    pub async fn invoke(&self, event: &Value, kill: Option<Kill>) -> Invocation {
        let mut warm = self.start(kill).await;
        let invocation = warm.invoke(event).await;
        warm.stop().await;
        invocation
    }

    /// Starts a process that waits for events.
    ///
    /// # Panics
    /// Where it can't be started.
    pub async fn start(&self, kill: Option<Kill>) -> Warm {
        let (ended, outcomes) = mpsc::unbounded_channel();
        let (events, waiting) = mpsc::unbounded_channel();
        let port = Arc::new(Port {
            events: waiting.into(),
            handed: Mutex::default(),
            kill,
            proxy: Proxy::new(&self.endpoint, &self.batch),
            asked: Mutex::default(),
            ended,
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a bound port has an address").to_string();
        let router = router(Arc::clone(&port));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener serves") });
        let began = Instant::now();
        let process = self.command(&address).spawn().expect("the function can be started");
        Warm { began, events, outcomes, port, process, serving }
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

impl Warm {
    /// Hands it an event and waits for its response.
    ///
    /// # Panics
    /// Where the process ends by itself or does not answer in time.
    pub async fn invoke(&mut self, event: &Value) -> Invocation {
        self.events.send(event.clone()).expect("the port holds the receiver");
        let outcome = tokio::select! {
            outcome = timeout(TIMEOUT, self.outcomes.recv()) => outcome.expect("the function answers in time"),
            status = self.process.wait() => unreachable!("the function ended: {status:?}"),
        };
        let (outcome, ended) = outcome.expect("the port holds the sender");
        let handed = lock(&self.port.handed).unwrap_or(self.began);
        let traffic = self.port.proxy.take();
        Invocation {
            calls: traffic.iter().map(|call| call.name.clone()).collect(),
            traffic,
            outcome,
            began: handed,
            ended,
        }
    }

    /// What it has used so far.
    ///
    /// # Panics
    /// Where it has ended.
    pub fn usage(&self) -> Usage {
        Usage::of(self.process.id().expect("nobody has waited for it"))
    }

    /// SIGKILL, and wait until the kernel has reaped it. After an answer Lambda would freeze it.
    ///
    /// # Panics
    /// Where the process is not ours.
    pub async fn stop(mut self) {
        self.process.kill().await.expect("the process is ours");
        self.serving.abort();
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
    let Some(event) = port.events.lock().await.recv().await else {
        return pending().await;
    };
    *lock(&port.handed) = Some(Instant::now());
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
    let name = proxy::name(&request);
    let call = {
        let mut asked = lock(&port.asked);
        *asked += 1;
        *asked - 1
    };
    port.point(Kill { call, moment: Moment::Before }, &name).await;
    let answer = port.proxy.pass(request).await;
    port.point(Kill { call, moment: Moment::After }, &name).await;
    answer
}

impl Port {
    fn end(&self, outcome: Outcome) -> StatusCode {
        // Refused only when the process is not waited for any more.
        let _ = self.ended.send((outcome, Instant::now()));
        StatusCode::ACCEPTED
    }

    /// Where the process is to die, it never hears again.
    async fn point(&self, here: Kill, name: &str) {
        if self.kill == Some(here) {
            self.end(Outcome::Killed(format!("{:?} {name}", here.moment)));
            pending::<()>().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
