//! Lambda's Runtime API (docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html), which records times.

use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::Arc;
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
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::aws::PATIENCE;

/// Timeout of the functions (infra/control-plane.yaml).
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Serves events to one function, in the order in which they are sent, until it is dropped.
#[derive(Debug)]
pub struct RuntimeApi {
    /// The value of AWS_LAMBDA_RUNTIME_API, `127.0.0.1:<port>`.
    pub address: String,
    events: mpsc::UnboundedSender<Value>,
    moments: mpsc::UnboundedReceiver<Moment>,
    serving: JoinHandle<()>,
}

/// What happens at the Runtime API, and when.
#[derive(Debug)]
pub enum Moment {
    /// The function asks for an event. There may be none.
    Asked(Instant),
    /// An event is sent to the function.
    Sent(Instant),
    /// The function has answered an event.
    Answered(Instant, Value),
    /// The function could not start, or an event failed.
    Failed(Instant, Value),
}

#[derive(Debug)]
struct Port {
    events: Mutex<mpsc::UnboundedReceiver<Value>>,
    moments: mpsc::UnboundedSender<Moment>,
}

impl RuntimeApi {
    /// Listens on a free port. Requests for other things go to `aws`.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn serve(aws: Router) -> Self {
        let (sender, moments) = mpsc::unbounded_channel();
        let (events, waiting) = mpsc::unbounded_channel();
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(error))
            .with_state(Arc::new(Port { events: waiting.into(), moments: sender }))
            .fallback_service(aws);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a bound port has an address").to_string();
        // If this fails, answers are later, but not wrong.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        // The server ends with the program or with this handle.
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { address, events, moments, serving }
    }

    /// Queues an event for the function. A function that asks for an event when there is none waits, as it does on
    /// Lambda.
    pub fn send(&self, event: &Value) {
        self.events.send(event.clone()).expect("the port holds the receiver");
    }

    /// Waits for the next thing that happens.
    ///
    /// # Panics
    /// Panics if nothing happens within [`PATIENCE`].
    pub async fn moment(&mut self) -> Moment {
        let moment = timeout(PATIENCE, self.moments.recv()).await;
        moment.expect("the function goes on in time").expect("the port holds the sender")
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Port {
    fn report(&self, moment: Moment) -> StatusCode {
        // Sending fails only if the test does not wait for the function any more.
        let _ = self.moments.send(moment);
        StatusCode::ACCEPTED
    }
}

async fn next(State(port): State<Arc<Port>>) -> Response<Body> {
    port.report(Moment::Asked(Instant::now()));
    let Some(event) = port.events.lock().await.recv().await else {
        return pending().await;
    };
    port.report(Moment::Sent(Instant::now()));
    Response::builder()
        .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
        .header("lambda-runtime-deadline-ms", (Timestamp::now() + TIMEOUT).as_millisecond())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:000000000000:function:under-test")
        .header("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700")
        .header("content-type", "application/json")
        .body(Body::from(event.to_string()))
        .expect("well-formed headers")
}

async fn response(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    port.report(Moment::Answered(Instant::now(), read(body)))
}

async fn error(State(port): State<Arc<Port>>, body: String) -> StatusCode {
    port.report(Moment::Failed(Instant::now(), read(body)))
}

fn read(body: String) -> Value {
    serde_json::from_str(&body).unwrap_or(Value::String(body))
}
