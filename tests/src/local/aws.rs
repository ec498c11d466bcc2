//! Clients of a local endpoint, and waiting until something is true.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::request::Builder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// Access key id and secret key that local endpoints accept.
pub(super) const CREDENTIAL: &str = "test";
pub(super) const REGION: &str = "us-east-1";

/// How long a test waits on a busy machine for what must happen. Only a failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(50);

/// The configuration for an endpoint. The caller's environment has no effect.
pub fn config(endpoint: &str) -> SdkConfig {
    let provider = tls::Provider::Rustls(CryptoMode::Ring);
    let credentials = Credentials::new(CREDENTIAL, CREDENTIAL, None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().tls_provider(provider).build_https())
        .build()
}

/// A client of S3 that puts the bucket into the path, because `bucket.127.0.0.1` is no host name.
pub fn s3(config: &SdkConfig) -> aws_sdk_s3::Client {
    aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(config).force_path_style(true).build())
}

pub(super) fn http_client() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// Calls an action of AWS's JSON protocol, such as `AmazonSQS.ReceiveMessage`, at an endpoint.
///
/// # Panics
/// Panics if the answer is not 200 with JSON.
pub async fn call_json(endpoint: &str, action: &str, request: &Value) -> Value {
    let (service, version) = match action.split_once('.').map(|(service, _)| service) {
        Some("AmazonSQS") => ("sqs", "1.0"),
        Some("DynamoDB_20120810") => ("dynamodb", "1.0"),
        Some("AWSEvents") => ("events", "1.1"),
        Some("Logs_20140328") => ("logs", "1.1"),
        // An action of the emulator itself.
        _none => ("emulator", "1.0"),
    };
    let head = Request::post(endpoint).header("content-type", format!("application/x-amz-json-{version}"));
    // Signs as the user that is allowed everything. ministack checks only the signatures of others.
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={CREDENTIAL}/20261121/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    let head = head.header("authorization", authorization).header("x-amz-target", action);
    answer_json(head, Body::from(request.to_string())).await
}

/// Reads a JSON page, such as one of the emulator.
///
/// # Panics
/// Panics if the answer is not 200 with JSON.
pub async fn get_json(url: &str) -> Value {
    answer_json(Request::get(url), Body::empty()).await
}

async fn answer_json(head: Builder, body: Body) -> Value {
    let request = head.body(body).expect("a well-formed request");
    let response = http_client().request(request).await.expect("the endpoint answers");
    let status = response.status();
    let bytes = to_bytes(Body::new(response.into_body()), usize::MAX).await.expect("the whole answer arrives");
    assert!(status.is_success(), "{status} {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).expect("the answer is JSON")
}

/// Calls `look` until it returns something.
///
/// # Panics
/// Panics after [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "not within {} s: {what}", PATIENCE.as_secs());
        sleep(POLL).await;
    }
}
