//! A proxy between a program and AWS's endpoints. It passes every call on and records it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use super::aws::http_client;

/// One AWS call that was answered.
#[derive(Debug, Clone)]
pub struct Call {
    /// The call, such as `DynamoDB_20120810.GetItem`, `PUT /bucket/key` or `POST /v1/submitjob`.
    pub name: String,
    /// Bytes of the request, head and body.
    pub sent: u64,
    /// Bytes of the answer, head and body.
    pub received: u64,
    /// When the call was sent to the service.
    pub began: Instant,
    /// When the service's answer was complete.
    pub ended: Instant,
}

/// The endpoints, and the calls that were answered.
#[derive(Debug)]
pub(super) struct Proxy {
    endpoint: String,
    batch: String,
    client: Client<HttpConnector, Body>,
    calls: Mutex<Vec<Call>>,
}

impl Proxy {
    /// Sends calls of Batch to `batch`, and all others to `endpoint`.
    pub(super) fn new(endpoint: &str, batch: &str) -> Self {
        let (endpoint, batch) = (endpoint.to_owned(), batch.to_owned());
        Self { endpoint, batch, client: http_client(), calls: Mutex::default() }
    }

    /// The calls since the last time that this was called, in the order of their answers.
    pub(super) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.lock())
    }

    /// Sends a call to its service, and records it.
    pub(super) async fn pass(&self, request: Request) -> Response<Body> {
        let name = name(&request);
        let (mut head, body) = request.into_parts();
        let base = if head.uri.path().starts_with("/v1/") { &self.batch } else { &self.endpoint };
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let line = head.method.as_str().len() + path.len() + " HTTP/1.1\r\n".len() + 1;
        head.uri = format!("{base}{path}").parse::<Uri>().expect("a path that came is well-formed");
        let body = to_bytes(body, usize::MAX).await.expect("the program sends what it began to send");
        let sent = (line + bytes_of(&head.headers) + body.len()) as u64;
        let began = Instant::now();
        let answer = self.client.request(Request::from_parts(head, Body::from(body))).await;
        let (head, body) = answer.expect("the service answers").into_parts();
        // The whole answer is read, so that the service has finished before the program can be killed after it.
        let body = to_bytes(Body::new(body), usize::MAX).await.expect("the whole answer arrives");
        let ended = Instant::now();
        let received = ("HTTP/1.1 200 OK\r\n".len() + bytes_of(&head.headers) + body.len()) as u64;
        self.lock().push(Call { name, sent, received, began, ended });
        Response::from_parts(head, Body::from(body))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time during which at least one of the calls was with its service.
pub fn service_time(calls: &[Call]) -> Duration {
    let mut spans: Vec<(Instant, Instant)> = calls.iter().map(|call| (call.began, call.ended)).collect();
    spans.sort();
    let mut covered: Option<Instant> = None;
    let mut time = Duration::ZERO;
    for (began, ended) in spans {
        let from = covered.map_or(began, |until| until.max(began));
        time += ended.saturating_duration_since(from);
        covered = Some(covered.map_or(ended, |until| until.max(ended)));
    }
    time
}

/// The name under which a call is recorded.
pub(super) fn name(request: &Request) -> String {
    let target = |headers: &HeaderMap| headers.get("x-amz-target")?.to_str().ok().map(str::to_owned);
    target(request.headers()).unwrap_or_else(|| format!("{} {}", request.method(), request.uri().path()))
}

/// Bytes of the headers as HTTP/1.1 sends them, with the empty line.
fn bytes_of(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum::<usize>() + 2
}
