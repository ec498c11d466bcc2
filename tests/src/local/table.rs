//! The control plane's table in memory, with DynamoDB's own protocol. It answers the requests that the store makes, and
//! counts the units that DynamoDB would bill. It refuses every other request.

mod rows;
mod units;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_config::SdkConfig;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use serde_json::{Value, json};
use spotsweep_protocol::ids::SweepId;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::aws::config;
use rows::{Refusal, Rows};
pub use units::Units;

/// A table on a port of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Table {
    endpoint: String,
    state: Arc<Mutex<Metered>>,
    serving: JoinHandle<()>,
}

/// The rows, and the units that requests have used.
#[derive(Debug, Default)]
struct Metered {
    rows: Rows,
    units: Units,
    loses_answer: bool,
}

impl Table {
    /// Starts an empty table, which accepts every table name.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn serve() -> Self {
        let state = Arc::<Mutex<Metered>>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("a bound port has an address"));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener serves") });
        Self { endpoint, state, serving }
    }

    /// URL of the table.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The configuration of its clients.
    pub fn config(&self) -> SdkConfig {
        config(&self.endpoint)
    }

    /// Executes the next request, but answers it with an error.
    pub fn lose_answer(&self) {
        lock(&self.state).loses_answer = true;
    }

    /// Gives each further trial of the sweep copies of the first trials' peer rows, in turn. Decisions about other
    /// trials read these rows.
    ///
    /// # Panics
    /// Panics if the first trials have no rows.
    pub fn repeat_peers(&self, sweep: &SweepId, written: u32, trials: u32) {
        lock(&self.state).rows.repeat(&format!("SWEEP#{sweep}"), "PEER#", written, trials);
    }

    /// The units that were used since the last time that this was called.
    pub fn take(&self) -> Units {
        std::mem::take(&mut lock(&self.state).units)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(state): State<Arc<Mutex<Metered>>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let action = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut state = lock(&state);
    let Metered { rows, units, loses_answer } = &mut *state;
    units.calls += 1.0;
    units.sent += body.len() as f64;
    let answered = match action.rsplit('.').next().unwrap_or_default() {
        "GetItem" => rows.get(&request, units),
        "Query" => rows.query(&request, units),
        "PutItem" => rows.put(&request, units),
        _other => Err(Refusal::unknown(action)),
    };
    let (status, body) = match answered {
        Ok(_) if std::mem::take(loses_answer) => {
            (500, json!({ "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError" }))
        }
        Ok(answer) => (200, answer),
        Err(Refusal { code, message }) => {
            (400, json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message }))
        }
    };
    let body = body.to_string();
    units.received += body.len() as f64;
    let head = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    head.body(Body::from(body)).expect("well-formed headers")
}

fn lock(state: &Mutex<Metered>) -> MutexGuard<'_, Metered> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
