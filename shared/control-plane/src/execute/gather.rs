//! S3 and the price sources: reads the inputs of a sweep's results. Missing inputs are left out, except for the
//! parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::Executed;
use super::objects::read;
use super::prices::{self, PriceSources};
use crate::calls::{Ec2, GetObject, Pricing, S3};
use crate::outcome::Outcome;
use spotsweep_protocol::cause::chain;
use spotsweep_records::trial::Trial;
use spotsweep_report::inputs::{ReportInputs, Wanted, last_lines};
use spotsweep_report::page::curves;
use spotsweep_report::page::curves::Curve;
use spotsweep_sweep_file::trials;

/// How many objects are read at the same time. Each read takes some 20 ms, and a sweep may need two thousand.
const AT_A_TIME: usize = 32;

/// How many bytes are read from the end of a `metrics.jsonl`. The file may have 64 MiB, and a function has 512 MiB.
const RECORD_BYTES: u64 = 2 << 20;

/// How many bytes are read from the end of a log.
const LOG_BYTES: u64 = 16 << 10;

pub(super) async fn gather(
    s3: &impl S3,
    price: &PriceSources<impl Ec2, impl Pricing>,
    wanted: Wanted,
    trials: Arc<[Trial]>,
) -> Executed {
    let parameters = GetObject::of(&wanted.upload.bucket, trials::lines_key(&wanted.sweep));
    let inputs = ReportInputs {
        parameters: read(s3, parameters).await?,
        file: file(s3, &wanted).await,
        curves: curves_of(s3, &wanted).await,
        logs: ends(s3, &wanted, &wanted.logs, "train.log", LOG_BYTES, |end| last_lines(&end)).await,
        prices: prices::read(price, &wanted.pools, wanted.since).await,
    };
    Ok(vec![Outcome::ReportInputs { sweep: wanted.sweep, trials, inputs: Arc::new(inputs) }])
}

async fn file(s3: &impl S3, wanted: &Wanted) -> Option<String> {
    let upload = &wanted.upload;
    let file = GetObject { version: upload.version_id.clone(), ..GetObject::of(&upload.bucket, &upload.key) };
    Some(String::from_utf8_lossy(&read(s3, file).await.ok()?).into_owned())
}

async fn curves_of(s3: &impl S3, wanted: &Wanted) -> BTreeMap<u32, BTreeMap<String, Curve>> {
    let read = |end: Vec<u8>| curves::read(&end, &wanted.metrics);
    ends(s3, wanted, &wanted.curves, "metrics.jsonl", RECORD_BYTES, read).await
}

/// Reads the end of one object of each of these trials.
async fn ends<T>(
    s3: &impl S3,
    wanted: &Wanted,
    indices: &[u32],
    name: &str,
    most: u64,
    read_end: impl Fn(Vec<u8>) -> T,
) -> BTreeMap<u32, T> {
    let one = |index: u32| async move {
        let key = format!("{}{name}", wanted.sweep.trial_prefix(index));
        let range = Some(format!("bytes=-{most}"));
        let end = GetObject { range, ..GetObject::of(&wanted.upload.bucket, &key) };
        match read(s3, end).await {
            Ok(end) => Some((index, end)),
            Err(error) => {
                tracing::info!(key, error = %chain(&error), "left out of the report");
                None
            }
        }
    };
    let found = stream::iter(indices.iter().copied()).map(one).buffer_unordered(AT_A_TIME);
    found.filter_map(async |found| found).map(|(index, end)| (index, read_end(end))).collect().await
}
