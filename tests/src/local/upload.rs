//! A dropped file, and S3's event for it.

use aws_config::SdkConfig;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::aws::s3;

/// Puts a file under `sweeps/`, and returns the event that S3 sends for it.
///
/// # Panics
/// Panics if S3 refuses.
pub async fn drop_file(config: &SdkConfig, bucket: &str, name: &str, text: &str) -> Value {
    let key = format!("sweeps/{name}.yaml");
    let put = s3(config).put_object().bucket(bucket).key(&key).body(text.to_owned().into_bytes().into());
    let put = put.send().await.expect("S3 takes the file");
    json!({
        "version": "0", "id": name, "detail-type": "Object Created", "source": "aws.s3",
        "account": "000000000000", "time": Timestamp::now().to_string(), "region": "us-east-1", "resources": [],
        "detail": { "bucket": { "name": bucket }, "object": { "key": key, "size": text.len(),
            "etag": put.e_tag(), "version-id": put.version_id(), "sequencer": "0055AED6DCD90281E5" } },
    })
}
