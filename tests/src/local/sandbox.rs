//! Runs a function's real binary as Lambda does: as a process that asks a Runtime API for its events. Its AWS calls
//! pass through the same port, and the process can be killed at each of them.

use std::fs::File;
use std::future::pending;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::aws::{CREDENTIAL, REGION};
use super::proxy::{self, Call, Proxy};
use super::runtime_api::{Moment as RuntimeMoment, RuntimeApi};
use super::usage::Usage;

/// A function, and the endpoints that it reaches.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The function's binary.
    pub binary: PathBuf,
    /// The variables that the template sets.
    pub variables: Vec<(String, String)>,
    /// The endpoint of all services except Batch.
    pub endpoint: String,
    /// Batch.
    pub batch: String,
    /// The file for the function's output.
    pub log: PathBuf,
}

/// Where an invocation is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// Number of the AWS call, from 0.
    pub call: usize,
    /// Whether the process is killed before or after the call.
    pub moment: Moment,
}

/// One side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The service has not received the call.
    Before,
    /// The service has answered, but the function has not received the answer.
    After,
}

/// What an invocation has done.
#[derive(Debug)]
pub struct Invocation {
    /// Names of the AWS calls that reached the service, in order.
    pub calls: Vec<String>,
    /// The same calls with their bytes and times.
    pub traffic: Vec<Call>,
    /// How the invocation ended.
    pub outcome: Outcome,
    /// When the function got the event.
    pub began: Instant,
    /// When the function's response came.
    pub ended: Instant,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The function has answered with this response.
    Answered(Value),
    /// The function has answered with this error.
    Failed(Value),
    /// The process was killed at this call, as the test wanted.
    Killed(String),
}

/// A function's process, from its start until it is killed.
#[derive(Debug)]
pub struct Warm {
    /// When it was started.
    pub began: Instant,
    api: RuntimeApi,
    killed: mpsc::UnboundedReceiver<(String, Instant)>,
    port: Arc<Port>,
    process: Child,
}

/// The AWS endpoints as the process reaches them.
#[derive(Debug)]
struct Port {
    kill: Option<Kill>,
    proxy: Proxy,
    asked: Mutex<usize>,
    killed: mpsc::UnboundedSender<(String, Instant)>,
}

impl Sandbox {
    /// Runs a new process for one event. It has ended when this returns.
    ///
    /// # Panics
    /// Panics if the process ends by itself or does not answer in time.
    pub async fn invoke(&self, event: &Value, kill: Option<Kill>) -> Invocation {
        let mut warm = self.start(kill).await;
        let invocation = warm.invoke(event).await;
        warm.stop().await;
        invocation
    }

    /// Starts a process that waits for events.
    ///
    /// # Panics
    /// Panics if it cannot be started.
    pub async fn start(&self, kill: Option<Kill>) -> Warm {
        let (sender, killed) = mpsc::unbounded_channel();
        let proxy = Proxy::new(&self.endpoint, &self.batch);
        let port = Arc::new(Port { kill, proxy, asked: Mutex::default(), killed: sender });
        let api = RuntimeApi::serve(Router::new().fallback(forward).with_state(Arc::clone(&port))).await;
        let began = Instant::now();
        let process = self.command(&api.address).spawn().expect("the function can be started");
        Warm { began, api, killed, port, process }
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
    /// Sends an event to the process, and waits for the response.
    ///
    /// # Panics
    /// Panics if the process ends by itself or does not answer in time.
    pub async fn invoke(&mut self, event: &Value) -> Invocation {
        self.api.send(event);
        let mut handed = self.began;
        let (outcome, ended) = loop {
            let moment = tokio::select! {
                moment = self.api.moment() => moment,
                Some((at_call, at)) = self.killed.recv() => break (Outcome::Killed(at_call), at),
                status = self.process.wait() => unreachable!("the function ended: {status:?}"),
            };
            match moment {
                RuntimeMoment::Asked(_) => {}
                RuntimeMoment::Sent(at) => handed = at,
                RuntimeMoment::Answered(at, answer) => break (Outcome::Answered(answer), at),
                RuntimeMoment::Failed(at, error) => break (Outcome::Failed(error), at),
            }
        };
        let traffic = self.port.proxy.take();
        Invocation {
            calls: traffic.iter().map(|call| call.name.clone()).collect(),
            traffic,
            outcome,
            began: handed,
            ended,
        }
    }

    /// What the process has used so far.
    ///
    /// # Panics
    /// Panics if the process has ended.
    pub fn usage(&self) -> Usage {
        Usage::of(self.process.id().expect("the process is not reaped yet"))
    }

    /// Kills the process, and waits until the kernel has reaped it. On AWS, Lambda would freeze it after an answer.
    ///
    /// # Panics
    /// Panics if the process does not belong to this test.
    pub async fn stop(mut self) {
        self.process.kill().await.expect("the process is ours");
    }
}

async fn forward(State(port): State<Arc<Port>>, request: Request) -> Response<Body> {
    let name = proxy::name(&request);
    let call = {
        let mut asked = port.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked += 1;
        *asked - 1
    };
    port.point(Kill { call, moment: Moment::Before }, &name).await;
    let answer = port.proxy.pass(request).await;
    port.point(Kill { call, moment: Moment::After }, &name).await;
    answer
}

impl Port {
    /// A process that is to be killed here gets no answer.
    async fn point(&self, here: Kill, name: &str) {
        if self.kill == Some(here) {
            // Sending fails only if the test does not wait for the process any more.
            let _ = self.killed.send((format!("{:?} {name}", here.moment), Instant::now()));
            pending::<()>().await;
        }
    }
}
