//! A fake AWS for cold starts: a DynamoDB that is empty, or has one sweep.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use spotsweep_tests::tls::{Identity, TlsListener};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct FakeAws {
    /// The value of AWS_ENDPOINT_URL.
    pub(super) endpoint: String,
    seen: Arc<Seen>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    stored: Mutex<Option<Value>>,
    calls: Mutex<Vec<String>>,
}

impl FakeAws {
    /// Serves over TLS if there is an identity, else over plain HTTP.
    pub(super) async fn serve(identity: Option<&Identity>) -> Self {
        let seen = Arc::new(Seen::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a bound port has an address");
        let (scheme, serving) = match identity {
            Some(identity) => {
                let listener = TlsListener::over(listener, identity).expect("a bound port has an address");
                ("https", tokio::spawn(async move { drop(axum::serve(listener, router).await) }))
            }
            None => {
                let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
                ("http", tokio::spawn(async move { drop(axum::serve(listener, router).await) }))
            }
        };
        Self { endpoint: format!("{scheme}://{address}"), seen, serving }
    }

    /// Sets what GetItem returns from now on, as DynamoDB's JSON; `None` returns nothing.
    pub(super) fn store(&self, item: Option<Value>) {
        *self.seen.stored.lock().unwrap_or_else(PoisonError::into_inner) = item;
    }

    /// Returns the calls since the last time, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for FakeAws {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(seen): State<Arc<Seen>>, headers: HeaderMap, _body: String) -> Response<Body> {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or("no DynamoDB call");
    let action = target.rsplit('.').next().unwrap_or(target);
    seen.calls.lock().unwrap_or_else(PoisonError::into_inner).push(action.to_owned());
    let found = match action {
        "Query" => json!({ "Items": [], "Count": 0, "ScannedCount": 0 }),
        "GetItem" => {
            let stored = seen.stored.lock().unwrap_or_else(PoisonError::into_inner).clone();
            stored.map_or_else(|| json!({}), |item| json!({ "Item": item }))
        }
        _other => {
            let refused = Response::builder().status(StatusCode::BAD_REQUEST).body(Body::empty());
            return refused.expect("no headers");
        }
    };
    Response::builder()
        .header("content-type", "application/x-amz-json-1.0")
        .body(Body::from(found.to_string()))
        .expect("well-formed headers")
}

/// Returns a value as DynamoDB's JSON.
pub(super) fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "NULL": true }),
        Value::Bool(value) => json!({ "BOOL": value }),
        Value::Number(value) => json!({ "N": value.to_string() }),
        Value::String(value) => json!({ "S": value }),
        Value::Array(values) => json!({ "L": values.iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), attribute(value)));
            json!({ "M": fields.collect::<serde_json::Map<_, _>>() })
        }
    }
}
