//! The emulator's HTTP interface on one port: Batch, EC2, ECS, FIS, CloudWatch Logs, the price list, Service Quotas,
//! IMDS, and its own small API.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{any, delete, get, post};
use axum::{Router, middleware};
use http_body::Frame;

use record::Recorder;

use crate::driver::Core;

mod batch;
mod ec2;
mod ecs;
mod fis;
mod imds;
mod logs;
mod own;
mod pricing;
mod quotas;
pub(crate) mod record;
mod xml;

pub(crate) fn router(core: Arc<Core>, recorder: Option<Recorder>) -> Router {
    let router = Router::new()
        .route("/", post(root))
        .route("/v1/{action}", post(batch::call))
        .route("/experimentTemplates", post(fis::create_template))
        .route("/experimentTemplates/{id}", delete(fis::delete_template))
        .route("/experiments", post(fis::start))
        .route("/experiments/{id}", get(fis::show).delete(fis::stop))
        .route("/actions/{id}", get(fis::action))
        .route("/imds/{instance}/{*path}", any(imds::call))
        .route("/ecs/v4/{cluster}/{task}", get(ecs::container))
        .route("/_emulator/state", get(own::state))
        .route("/_emulator/calls", get(own::calls))
        .route("/_emulator/faults", post(own::plant_fault))
        .route("/_emulator/trouble", post(own::set_trouble))
        .route("/_emulator/reclaim", post(own::reclaim))
        .route("/_emulator/reclaim-zone", post(own::reclaim_zone))
        .route("/_emulator/rebalance", post(own::rebalance))
        .route("/_emulator/zone-capacity", post(own::zone_capacity))
        .layer(middleware::map_response_with_state(Arc::clone(&core), with_request_id))
        .with_state(Arc::clone(&core));
    match recorder {
        None => router,
        Some(recorder) => router.layer(middleware::from_fn_with_state((core, Arc::new(recorder)), record::exchange)),
    }
}

/// Adds a request id to every answer, as AWS does. EC2's bodies have it too.
async fn with_request_id(State(core): State<Arc<Core>>, mut response: Response) -> Response {
    if let Ok(id) = HeaderValue::from_str(&core.request_id()) {
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
    }
    response
}

const REQUEST_ID: &str = "x-amzn-requestid";

/// Dispatches a POST to `/` to EC2, ECS, CloudWatch Logs, the price list or Service Quotas. Only EC2 does not name its
/// action in a header.
async fn root(State(core): State<Arc<Core>>, headers: HeaderMap, body: Bytes) -> Answer {
    match headers.get("x-amz-target").map(|target| String::from_utf8_lossy(target.as_bytes())) {
        Some(target) if target.starts_with(logs::VERSION) => logs::call(&core, &target, &body),
        Some(target) if target == pricing::GET_PRODUCTS => pricing::call(&core, &body),
        Some(target) if target == quotas::GET => quotas::call(&core, &body),
        Some(target) => ecs::call(&core, &target, &body),
        None => ec2::call(&core, &body),
    }
}

fn answer(status: u16, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns a response without an answer: a body that fails before its first byte makes the server close the connection.
fn dropped() -> Response {
    struct Broken;
    impl http_body::Body for Broken {
        type Data = Bytes;
        type Error = io::Error;
        fn poll_frame(
            self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
        }
    }
    Response::new(Body::new(Broken))
}

/// The result of a handler, in which every problem is an answer.
type Answer = Result<Response, Infallible>;
