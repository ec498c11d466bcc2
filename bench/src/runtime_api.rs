//! Lambda's Runtime API (docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html), with a clock.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The functions' own timeout (infra/control-plane.yaml).
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Hands out events, one after the other. Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct RuntimeApi {
    /// For AWS_LAMBDA_RUNTIME_API: `127.0.0.1:<port>`.
    pub(crate) address: String,
    moments: mpsc::UnboundedReceiver<Moment>,
    serving: JoinHandle<()>,
}

/// What a function does at its Runtime API, and when.
#[derive(Debug)]
pub(crate) enum Moment {
    /// It asks for an event, whether one is left or not.
    Asked(Instant),
    /// It has answered one.
    Answered(Instant, Value),
    /// It could not start, or an event failed.
    Failed(Value),
}

struct Port {
    events: Mutex<VecDeque<String>>,
    moments: mpsc::UnboundedSender<Moment>,
}

impl RuntimeApi {
    /// Serves these events to whoever asks. Who asks for more waits for ever, as between two events on Lambda.
    pub(crate) async fn serve<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let (sender, moments) = mpsc::unbounded_channel();
        let events = Mutex::new(events.into_iter().map(Value::to_string).collect());
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(error))
            .with_state(Arc::new(Port { events, moments: sender }));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a bound port has an address").to_string();
        // Where that fails, an answer may be late, not wrong.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        // Serving ends with the program or with this handle.
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { address, moments, serving }
    }

    /// The next thing that the function does.
    ///
    /// # Panics
    /// Where it does nothing for longer than it may live.
    pub(crate) async fn moment(&mut self) -> Moment {
        let moment = tokio::time::timeout(TIMEOUT, self.moments.recv()).await;
        moment.expect("the function goes on in time").expect("the port holds the sender")
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Port {
    fn tell(&self, moment: Moment) -> StatusCode {
        // Refused only when nobody listens any more.
        let _ = self.moments.send(moment);
        StatusCode::ACCEPTED
    }
}

async fn next(State(port): State<Arc<Port>>) -> Response<Body> {
    port.tell(Moment::Asked(Instant::now()));
    let event = port.events.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let Some(event) = event else {
        return std::future::pending().await;
    };
    Response::builder()
        .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        .header("lambda-runtime-deadline-ms", (Timestamp::now() + TIMEOUT).as_millisecond())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:measured")
        .header("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700")
        .header("content-type", "application/json")
        .body(Body::from(event))
        .expect("well-formed headers")
}

async fn response(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    let now = Instant::now();
    port.tell(Moment::Answered(now, serde_json::from_str(&body).unwrap_or(Value::String(body))))
}

async fn error(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    port.tell(Moment::Failed(serde_json::from_str(&body).unwrap_or(Value::String(body))))
}
