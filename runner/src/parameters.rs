//! Fetches the trial's own line of `trials.jsonl` with one ranged read, for any size of the sweep.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStreamError;
use spotsweep_protocol::claim::{ByteRange, TrialLine};

/// Why there are no parameters.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParametersError {
    #[error("reading {range} of s3://{bucket}/{key} failed")]
    Get { bucket: String, key: String, range: String, source: Box<SdkError<GetObjectError>> },
    #[error("the answer from S3 broke off")]
    Body(#[from] ByteStreamError),
    #[error("the line is not a trial")]
    Line(#[from] serde_json::Error),
    #[error("the line is trial {found}, not {expected}: trials.jsonl and trial-claim disagree")]
    Index { expected: u32, found: u32 },
}

/// Reads the line, and checks that it is this trial's.
pub(crate) async fn fetch(s3: &Client, place: &ByteRange, expected: u32) -> Result<TrialLine, ParametersError> {
    let range = format!("bytes={}-{}", place.first_byte, place.last_byte);
    let object =
        s3.get_object().bucket(&place.bucket).key(&place.key).range(&range).send().await.map_err(|source| {
            ParametersError::Get {
                bucket: place.bucket.clone(),
                key: place.key.clone(),
                range,
                source: Box::new(source),
            }
        })?;
    let line = object.body.collect().await?.into_bytes();
    let trial: TrialLine = serde_json::from_slice(&line)?;
    if trial.index == expected { Ok(trial) } else { Err(ParametersError::Index { expected, found: trial.index }) }
}
