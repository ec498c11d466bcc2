//! A program whose AWS calls pass through a proxy.

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, copy, sink};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::aws::{CREDENTIAL, REGION};
use super::proxy::{Call, Proxy};
use super::usage::Usage;

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Observed {
    /// When the program was started.
    pub began: Instant,
    process: Child,
    output: Option<BufReader<ChildStdout>>,
    proxy: Arc<Proxy>,
    serving: JoinHandle<()>,
}

impl Observed {
    /// Starts the program with variables that lead its calls to the proxy, which passes them on to Batch's endpoint or
    /// that of the other services.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    pub async fn start(mut command: Command, endpoint: &str, batch: &str) -> Self {
        let proxy = Arc::new(Proxy::new(endpoint, batch));
        let pass = async |State(proxy): State<Arc<Proxy>>, request: Request| proxy.pass(request).await;
        let router = Router::new().fallback(pass).with_state(Arc::clone(&proxy));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound port has an address"));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener serves") });
        command
            .envs(["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BATCH"].map(|name| (name, &url)))
            .envs(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, CREDENTIAL)))
            .envs(["AWS_REGION", "AWS_DEFAULT_REGION"].map(|name| (name, REGION)))
            .env_remove("AWS_PROFILE")
            .env_remove("AWS_SESSION_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let began = Instant::now();
        let mut process = command.spawn().expect("the program can be started");
        let output = process.stdout.take().map(BufReader::new);
        Self { began, process, output, proxy, serving }
    }

    /// The next line of the program's output. `None` if there will be none.
    ///
    /// # Panics
    /// Panics if the line is no text, or the output is discarded.
    pub async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let output = self.output.as_mut().expect("its output is read here");
        let read = output.read_line(&mut line).await.expect("it writes text");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads and discards the output from now on.
    pub fn discard_output(&mut self) {
        if let Some(mut output) = self.output.take() {
            tokio::spawn(async move { copy(&mut output, &mut sink()).await });
        }
    }

    /// The program's AWS calls since the last time that this was called.
    pub fn calls(&self) -> Vec<Call> {
        self.proxy.take()
    }

    /// What the program has used so far.
    ///
    /// # Panics
    /// Panics if the program has been waited for.
    pub fn usage(&self) -> Usage {
        Usage::of(self.process.id().expect("the process is not reaped yet"))
    }

    /// Waits until the program ends by itself with success. Returns its output and calls since they were last read, and
    /// what it has used.
    ///
    /// # Panics
    /// Panics if the program fails or cannot be followed, or its output is discarded.
    pub async fn end(mut self) -> (Vec<u8>, Vec<Call>, Usage) {
        let mut output = Vec::new();
        let reader = self.output.as_mut().expect("its output is read here");
        reader.read_to_end(&mut output).await.expect("its output can be read");
        let pid =
            self.process.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("the process is not reaped yet");
        // The usage can be read until the process is reaped.
        let ended = move || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        tokio::task::spawn_blocking(ended).await.expect("the wait is not cut off").expect("it is our child");
        let usage = self.usage();
        let status = self.process.wait().await.expect("it is our child");
        assert!(status.success(), "the program ends well: {status}");
        (output, self.calls(), usage)
    }

    /// Kills the program.
    ///
    /// # Panics
    /// Panics if the process does not belong to this test.
    pub async fn kill(mut self) {
        self.process.kill().await.expect("it is our child");
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
