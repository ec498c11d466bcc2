//! The answers of S3 and of `trial-claim`.

use std::ops::Range;

use serde_json::{Value, json};

use super::objects::{BUCKET, NAME, Objects, PREFIX};
use super::request::Request;

/// The sweep whose trials read the data set. Those of every other sweep read none.
pub(super) const SWEEP: &str = "with-data";
/// The trial's line of `trials.jsonl`.
const TRIAL: &str = "{\"index\":0,\"parameters\":{}}\n";
/// The most keys of a page: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>.
const PAGE: u64 = 1_000;
const MODIFIED: &str = "2026-01-01T00:00:00.000Z";
const SENT: &str = "last-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\naccept-ranges: bytes\r\n\
     x-amz-server-side-encryption: AES256\r\ncontent-type: binary/octet-stream\r\n";

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Lines of headers, besides the length.
    pub(super) headers: String,
    pub(super) body: Body,
    /// Whether it comes from S3's disks: it takes S3's latency.
    pub(super) is_stored: bool,
}

/// The content of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Text(Vec<u8>),
    /// A range of a data set's object.
    Object(Range<u64>),
}

/// Everything that the server has.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) objects: Objects,
    listing: Vec<u8>,
    preparation: Value,
}

impl Answer {
    fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: String::new(), body: Body::Text(body.into()), is_stored: false }
    }

    /// An error of S3: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.
    fn error(status: u16, code: &str) -> Self {
        Self::text(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
    }

    fn stored(self) -> Self {
        Self { is_stored: true, ..self }
    }
}

/// Answers as the instance's metadata service, which the runner waits for:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html>.
fn metadata(path: &str) -> Answer {
    let headers = "x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n".to_owned();
    match path {
        "/latest/api/token" => Answer { headers, ..Answer::text(200, "token") },
        "/latest/meta-data/instance-id" => Answer::text(200, "i-0abc"),
        "/latest/meta-data/placement/availability-zone" => Answer::text(200, "us-east-1a"),
        _ => Answer::text(404, ""),
    }
}

impl Store {
    pub(super) fn new(objects: Objects) -> Self {
        let preparation = json!({"data": [objects.data_set()]});
        Self { listing: objects.listing(), preparation, objects }
    }

    pub(super) fn answer(&self, request: &Request) -> Answer {
        let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
        if request.path.starts_with("/2015-03-31/functions/") {
            return self.invoke(&request.body);
        }
        if request.path.starts_with("/latest/") {
            return metadata(&request.path);
        }
        let path = request.path.trim_start_matches('/');
        match (path.split_once('/'), is_read) {
            (Some((BUCKET, "")), true) => self.list(&request.query).stored(),
            (None, true) if path == BUCKET => self.list(&request.query).stored(),
            (Some((BUCKET, key)), true) => self.get(key, request).stored(),
            // The trial's outputs.
            (Some((BUCKET, _)), false) => Answer { headers: "etag: \"e\"\r\n".to_owned(), ..Answer::text(200, "") },
            _ => Answer::error(404, "NoSuchBucket"),
        }
    }

    /// Answers as `trial-claim`, which grants and accepts everything.
    fn invoke(&self, body: &[u8]) -> Answer {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = match request["request"].as_str() {
            Some("claim") => self.grant(request["sweep"] == SWEEP),
            Some("access") => json!({"access": {
                "access_key_id": "k", "secret_access_key": "s", "session_token": "t", "expires_at": "2099-01-01T00:00:00Z",
            }}),
            Some(_) => json!({"accepted": {}}),
            None => return Answer::text(400, "{}"),
        };
        Answer::text(200, answer.to_string())
    }

    fn grant(&self, has_data: bool) -> Value {
        let mut granted = json!({
            "parameters": {"bucket": BUCKET, "key": "trials.jsonl", "first_byte": 0, "last_byte": TRIAL.len() - 1},
            "outputs": {"bucket": BUCKET, "prefix": "outputs/"},
        });
        if has_data {
            granted["code"] = self.preparation.clone();
        }
        json!({"granted": granted})
    }

    fn get(&self, key: &str, request: &Request) -> Answer {
        if key == "trials.jsonl" {
            return Answer::text(206, TRIAL);
        }
        if key == format!("results/{SWEEP}/data/{NAME}.jsonl") {
            return Answer::text(200, self.listing.clone());
        }
        if !self.objects.has(key) {
            return Answer::error(404, "NoSuchKey");
        }
        let etag = self.objects.etag();
        if request.if_match.as_deref().is_some_and(|wanted| wanted.trim_matches('"') != etag.trim_matches('"')) {
            return Answer::error(412, "PreconditionFailed");
        }
        let size = self.objects.bytes;
        let Some((range, is_part)) = request.range(size) else { return Answer::error(416, "InvalidRange") };
        let mut headers = format!("etag: {etag}\r\n{SENT}");
        if is_part {
            headers += &format!("content-range: bytes {}-{}/{size}\r\n", range.start, range.end - 1);
        } else if request.wants_checksum {
            headers += &format!("x-amz-checksum-crc64nvme: {}\r\n", self.objects.crc64_nvme());
        }
        Answer { status: if is_part { 206 } else { 200 }, headers, body: Body::Object(range), is_stored: false }
    }

    /// ListObjectsV2: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>.
    fn list(&self, query: &str) -> Answer {
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.replace("%2F", "/"));
            value.filter(|value| !value.is_empty())
        };
        if parameter("delimiter").is_some() {
            return Answer::error(501, "NotImplemented");
        }
        let prefix = parameter("prefix").unwrap_or_default();
        let most = parameter("max-keys").and_then(|most| most.parse().ok()).unwrap_or(PAGE).min(PAGE);
        let first: u64 = parameter("continuation-token").and_then(|token| token.parse().ok()).unwrap_or(0);
        let keys = (first..self.objects.number).map(|number| (number, format!("{PREFIX}{}", Objects::path(number))));
        let mut keys = keys.filter(|(_, key)| key.starts_with(&prefix));
        let (size, etag) = (self.objects.bytes, self.objects.etag());
        let mut contents = String::new();
        for (_, key) in keys.by_ref().take(most as usize) {
            contents += &format!(
                "<Contents><Key>{key}</Key><LastModified>{MODIFIED}</LastModified><ETag>{etag}</ETag>\
                 <Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            );
        }
        let next = keys.next().map(|(number, _)| format!("<NextContinuationToken>{number}</NextContinuationToken>"));
        let (is_truncated, next) = (next.is_some(), next.unwrap_or_default());
        let found = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>\
             <IsTruncated>{is_truncated}</IsTruncated>{next}{contents}</ListBucketResult>"
        );
        Answer { headers: "content-type: application/xml\r\n".to_owned(), ..Answer::text(200, found) }
    }
}
