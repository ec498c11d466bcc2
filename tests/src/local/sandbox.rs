//! A function's real binary as Lambda runs it: a process that asks a Runtime API for its events. Its
//! AWS calls pass through the same port, where each is a point to die at.

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
    api: RuntimeApi,
    killed: mpsc::UnboundedReceiver<(String, Instant)>,
    port: Arc<Port>,
    process: Child,
}

/// AWS, as the process reaches it.
#[derive(Debug)]
struct Port {
    kill: Option<Kill>,
    proxy: Proxy,
    asked: Mutex<usize>,
    killed: mpsc::UnboundedSender<(String, Instant)>,
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
    /// Hands it an event and waits for its response.
    ///
    /// # Panics
    /// Where the process ends by itself or does not answer in time.
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
    /// Where the process is to die, it gets no answer any more.
    async fn point(&self, here: Kill, name: &str) {
        if self.kill == Some(here) {
            // Refused only when the process is not waited for any more.
            let _ = self.killed.send((format!("{:?} {name}", here.moment), Instant::now()));
            pending::<()>().await;
        }
    }
}
