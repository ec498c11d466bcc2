//! The answers of the server.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{Answer, INTERRUPTION, ISSUED, LINES, REBALANCE, Server, TASK};

pub(super) async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let path = head.uri.path();
    if path.starts_with("/latest/") && server.misses() {
        return reply(503, &[], "busy");
    }
    match path {
        "/latest/api/token" => reply(200, &[("x-aws-ec2-metadata-token-ttl-seconds", "60")], "token"),
        "/latest/meta-data/instance-id" => reply(200, &[], "i-0abc"),
        "/latest/meta-data/placement/availability-zone" => reply(200, &[], "us-east-1a"),
        INTERRUPTION | REBALANCE => match server.seen.lock().unwrap().metadata.get(path) {
            Some(text) => reply(200, &[], text.clone()),
            None => reply(404, &[], "404 - Not Found"),
        },
        "/latest/meta-data/placement/region" => reply(200, &[], "us-west-2"),
        path if path.starts_with("/latest/") => reply(404, &[], "404 - Not Found"),
        // The answer of the ECS developer guide, "Task metadata version 4 response examples".
        "/v4/0f1e" => {
            let labels = json!({"com.amazonaws.ecs.task-arn": TASK, "com.amazonaws.ecs.container-name": "default"});
            reply(200, &[], json!({"DockerId": "ea32", "Name": "default", "Labels": labels}).to_string())
        }
        "/2015-03-31/functions/trial-claim/invocations" => {
            let signed_at = head.headers["x-amz-date"].to_str().unwrap().to_owned();
            server.seen.lock().unwrap().signed_at.push(signed_at);
            server.invoke(serde_json::from_slice(&body).unwrap())
        }
        "/" => {
            issued(&head.headers);
            let request = serde_json::from_slice(&body).unwrap();
            match head.headers["x-amz-target"].to_str().unwrap() {
                "AmazonSSM.GetParameter" => server.parameter(&request),
                "secretsmanager.GetSecretValue" => server.managed_secret(&request),
                other => panic!("{other} is not asked of any service"),
            }
        }
        path => {
            let key = path.strip_prefix("/b/").unwrap();
            server.object(&head.method, key, head.uri.query().unwrap_or_default(), &head.headers, &body)
        }
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// Asserts that a request is signed with the trial's own credentials.
fn issued(headers: &HeaderMap) {
    let signed = headers["authorization"].to_str().unwrap();
    assert!(signed.contains(&format!("Credential={ISSUED}/")), "not the trial's own credentials: {signed}");
}

impl Server {
    fn misses(&self) -> bool {
        let mut seen = self.seen.lock().unwrap();
        let misses = seen.misses > 0;
        seen.misses = seen.misses.saturating_sub(1);
        misses
    }

    fn invoke(&self, request: Value) -> Response<Body> {
        let mut seen = self.seen.lock().unwrap();
        let kind = request["request"].as_str().unwrap().to_owned();
        let nth = seen.invocations.iter().filter(|call| call["request"] == kind.as_str()).count();
        seen.invocations.push(request);
        match (self.invoke)(&kind, nth) {
            Answer::Json(value) => reply(200, &[], value.to_string()),
            Answer::FunctionError(value) => reply(200, &[("x-amz-function-error", "Unhandled")], value.to_string()),
            Answer::Status(status) => reply(status, &[], "{}"),
            Answer::Refused { ahead_seconds } => {
                let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(ahead_seconds);
                let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap();
                let code = ("x-amzn-errortype", "InvalidSignatureException");
                reply(403, &[("date", &date), code], r#"{"message": "Signature expired"}"#)
            }
        }
    }

    /// The shapes of <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html>.
    fn managed_secret(&self, request: &Value) -> Response<Body> {
        let name = request["SecretId"].as_str().unwrap();
        assert_eq!(request, &json!({"SecretId": name}), "the current version");
        let mut seen = self.seen.lock().unwrap();
        seen.requests.push(format!("GetSecretValue {name}"));
        match seen.managed.get(name) {
            Some(answer) => reply(if answer.get("__type").is_some() { 400 } else { 200 }, &[], answer.to_string()),
            None => reply(400, &[], r#"{"__type": "ResourceNotFoundException"}"#),
        }
    }

    fn parameter(&self, request: &Value) -> Response<Body> {
        assert_eq!(request["WithDecryption"], true);
        let name = request["Name"].as_str().unwrap();
        match self.seen.lock().unwrap().secrets.get(name) {
            Some(value) => {
                let parameter = json!({"Name": name, "Type": "SecureString", "Value": value});
                reply(200, &[], json!({"Parameter": parameter}).to_string())
            }
            None => reply(400, &[], r#"{"__type": "ParameterNotFound"}"#),
        }
    }

    fn object(&self, method: &Method, key: &str, query: &str, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        let mut seen = self.seen.lock().unwrap();
        seen.requests.push(format!("{method} {key}?{query}"));
        issued(headers);
        let status = (self.store)(method, key);
        if status != StatusCode::OK {
            return reply(status.as_u16(), &[], "<Error><Code>Broken</Code><Message>on purpose</Message></Error>");
        }
        // Every object has the same ETag.
        if headers.get("if-match").is_some_and(|etag| etag != "\"e\"") {
            return reply(412, &[], "<Error><Code>PreconditionFailed</Code><Message>changed</Message></Error>");
        }
        if *method == Method::GET && !headers.contains_key("range") {
            let is_damaged = seen.damaged.remove(key);
            let checksum = seen.checksums.get(key).map(|checksum| ("x-amz-checksum-crc64nvme", *checksum));
            let headers: Vec<_> = checksum.into_iter().chain([("etag", "\"e\"")]).collect();
            return match seen.objects.get(key).cloned() {
                Some(mut bytes) => {
                    bytes.iter_mut().take(usize::from(is_damaged)).for_each(|byte| *byte ^= 1);
                    reply(200, &headers, bytes)
                }
                // S3's answer for a missing key if the caller may not list keys.
                None => reply(403, &[], "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
            };
        }
        if *method == Method::GET {
            let range = headers["range"].to_str().unwrap().strip_prefix("bytes=").unwrap();
            let (first, last) = range.split_once('-').unwrap();
            let object = seen.objects.get(key).map_or(LINES.as_bytes(), Vec::as_slice);
            let bytes = &object[first.parse().unwrap()..=last.parse().unwrap()];
            return reply(206, &[("etag", "\"e\"")], bytes.to_vec());
        }
        let part = query.split('&').find_map(|pair| pair.strip_prefix("partNumber="));
        if let Some(part) = part {
            seen.parts.insert(part.parse().unwrap(), plain(headers, body));
            return reply(200, &[("etag", "\"e\"")], "");
        }
        if *method == Method::PUT {
            seen.objects.insert(key.to_owned(), plain(headers, body));
            return reply(200, &[("etag", "\"e\"")], "");
        }
        if *method == Method::DELETE {
            seen.parts.clear();
            return reply(204, &[], "");
        }
        if query.contains("uploadId=") {
            let parts = std::mem::take(&mut seen.parts);
            seen.objects.insert(key.to_owned(), parts.into_values().flatten().collect());
            return reply(200, &[], "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>");
        }
        let created = "<InitiateMultipartUploadResult><UploadId>u-1</UploadId></InitiateMultipartUploadResult>";
        reply(200, &[], created)
    }
}

/// Removes the `aws-chunked` framing, which carries the SDK's checksum trailer.
fn plain(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    if headers.get("content-encoding").is_none_or(|encoding| encoding != "aws-chunked") {
        return body.to_vec();
    }
    let mut content = Vec::new();
    let mut rest = body;
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap();
        // Over plain HTTP every chunk is signed: `size;chunk-signature=…`.
        let size = std::str::from_utf8(&rest[..end]).unwrap().split(';').next().unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let data = &rest[end + 2..];
        if size == 0 {
            assert!(data.starts_with(b"x-amz-checksum-crc32:"), "no checksum trailer");
            return content;
        }
        content.extend_from_slice(&data[..size]);
        rest = &data[size + 2..];
    }
}
