//! S3 and the price sources: what a sweep's results are made from. What is missing is left out, but for the parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_s3::Client;
use futures_util::{StreamExt, stream};

use super::prices;
use super::s3::bytes;
use spotsweep_control_plane::execute::Executed;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::results::inputs::{ReportInputs, Wanted, last_lines};
use spotsweep_control_plane::results::report::curves;
use spotsweep_control_plane::results::report::curves::Curve;
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::cause::chain;
use spotsweep_sweep_file::trials;

/// Objects that are read at a time: each takes some 20 ms, and a sweep may have two thousand.
const AT_A_TIME: usize = 32;

/// Bytes of a record of metrics that are read, the last ones: a record may have 64 MiB, a function 512.
const RECORD_BYTES: u64 = 2 << 20;

/// Bytes of a log that are read, the last ones.
const LOG_BYTES: u64 = 16 << 10;

pub(super) async fn gather(s3: &Client, price: &prices::Clients, wanted: Wanted, trials: Arc<[Trial]>) -> Executed {
    let bucket = &wanted.upload.bucket;
    let parameters = s3.get_object().bucket(bucket).key(trials::lines_key(&wanted.sweep)).send().await?;
    let gathered = ReportInputs {
        parameters: bytes(parameters).await?,
        file: file(s3, &wanted).await,
        curves: curves_of(s3, &wanted).await,
        logs: ends(s3, &wanted, &wanted.logs, "train.log", LOG_BYTES, |end| last_lines(&end)).await,
        prices: prices::read(price, &wanted.pools, wanted.since).await,
    };
    Ok(vec![Outcome::ReportInputs { sweep: wanted.sweep, trials, gathered: Arc::new(gathered) }])
}

async fn file(s3: &Client, wanted: &Wanted) -> Option<String> {
    let upload = &wanted.upload;
    let request = s3.get_object().bucket(&upload.bucket).key(&upload.key).set_version_id(upload.version_id.clone());
    let read = bytes(request.send().await.ok()?).await.ok()?;
    Some(String::from_utf8_lossy(&read).into_owned())
}

async fn curves_of(s3: &Client, wanted: &Wanted) -> BTreeMap<u32, BTreeMap<String, Curve>> {
    let read = |end: Vec<u8>| curves::read(&end, &wanted.metrics);
    ends(s3, wanted, &wanted.curves, "metrics.jsonl", RECORD_BYTES, read).await
}

/// Of each of these trials the end of one of its objects, read.
async fn ends<T>(
    s3: &Client,
    wanted: &Wanted,
    indices: &[u32],
    name: &str,
    most: u64,
    read: impl Fn(Vec<u8>) -> T,
) -> BTreeMap<u32, T> {
    let one = |index: u32| async move {
        let key = format!("{}{name}", wanted.sweep.trial_prefix(index));
        let request = s3.get_object().bucket(&wanted.upload.bucket).key(&key).range(format!("bytes=-{most}"));
        match request.send().await {
            Ok(object) => Some((index, bytes(object).await.ok()?)),
            Err(error) => {
                tracing::info!(key, error = %chain(&error), "left out of the report");
                None
            }
        }
    };
    let found = stream::iter(indices.iter().copied()).map(one).buffer_unordered(AT_A_TIME);
    found.filter_map(async |found| found).map(|(index, end)| (index, read(end))).collect().await
}
