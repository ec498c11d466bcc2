//! S3's `Object Created` as an EventBridge event. `aws_lambda_events` has no type that keeps the ETag and the version
//! id (fact 17).

use jiff::Timestamp;
use serde::Deserialize;

use super::{Envelope, Event, ParseError, detail};
use spotsweep_records::sweep::upload::Upload;

pub(super) const DETAIL_TYPE: &str = "Object Created";

/// Most bytes of a key or a version id (S3 user guide, "Object key names" and "Retaining multiple versions"). Longer
/// ones would make the SDK fail, or panic in a header.
const LONGEST: usize = 1024;

#[derive(Deserialize)]
struct Detail {
    bucket: Bucket,
    object: Object,
}

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Object {
    key: String,
    size: Option<u64>,
    etag: Option<String>,
    version_id: Option<String>,
    sequencer: Option<String>,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let time = envelope.time;
    let Detail { bucket, object } = detail(DETAIL_TYPE, envelope)?;
    let uploaded_at = time
        .and_then(|time| Timestamp::from_millisecond(time.timestamp_millis()).ok())
        .ok_or_else(|| ParseError::Value { kind: DETAIL_TYPE, problem: "no time".into() })?;
    let etag_and_sequencer =
        || [object.etag.as_deref(), object.sequencer.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("/");
    let texts = [Some(&object.key), object.etag.as_ref(), object.version_id.as_ref(), object.sequencer.as_ref()];
    if let Some(text) = texts.into_iter().flatten().find(|text| text.len() > LONGEST) {
        let problem =
            format!("a key, version id, ETag or sequencer of {} bytes; S3's have {LONGEST} at most", text.len());
        return Err(ParseError::Value { kind: DETAIL_TYPE, problem });
    }
    let fingerprint = object.version_id.clone().unwrap_or_else(etag_and_sequencer);
    if fingerprint.is_empty() {
        let problem =
            "object has none of version-id, etag and sequencer, so this put cannot be distinguished from another";
        return Err(ParseError::Value { kind: DETAIL_TYPE, problem: problem.into() });
    }
    Ok(Event::SweepUploaded(Upload {
        bucket: bucket.name,
        key: object.key,
        version_id: object.version_id,
        fingerprint,
        size: object.size,
        uploaded_at,
    }))
}
