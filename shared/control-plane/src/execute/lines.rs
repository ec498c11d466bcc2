//! S3: finds a trial's line in `trials.jsonl`, and reads the space of its parameters and what it starts from.

use std::sync::Arc;

use super::objects::read;
use super::{Executed, Service, Taken};
use crate::calls::{GetObject, S3};
use crate::command::Command;
use crate::event::TrialRequest;
use crate::outcome::Outcome;
use spotsweep_protocol::claim::Prefix;
use spotsweep_records::sweep::continuation::Listed;
use spotsweep_sweep_file::trials;

/// Returns the service that finds trials' lines.
pub fn lines(s3: impl S3) -> impl Service {
    Lines(s3)
}

#[derive(Debug)]
struct Lines<C>(C);

impl<C: S3> Service for Lines<C> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        let s3 = &self.0;
        Ok(match *command {
            Command::FindLine { request, gpus, bucket } => Box::pin(find(s3, (request, gpus), bucket)),
            Command::ReadSpace { request, bucket } => Box::pin(space(s3, request, bucket)),
            Command::FindStart { request, listed, bucket } => Box::pin(start(s3, (request, listed), bucket)),
            other => return Err(Box::new(other)),
        })
    }
}

async fn space(s3: &impl S3, request: TrialRequest, bucket: String) -> Executed {
    let space = read(s3, GetObject::of(bucket, trials::space_key(&request.sweep))).await?;
    let search = Arc::new(serde_json::from_slice(&space)?);
    Ok(vec![Outcome::SpaceRead { request, search }])
}

async fn start(s3: &impl S3, (request, listed): (TrialRequest, Listed), bucket: String) -> Executed {
    let starts = read(s3, GetObject::of(bucket, listed.key(&request.sweep))).await?;
    let start = listed.start(&starts, request.index)?;
    Ok(vec![Outcome::StartFound { request, start }])
}

async fn find(s3: &impl S3, (request, gpus): (TrialRequest, Option<Vec<String>>), bucket: String) -> Executed {
    let (first, last) = trials::entries_range(request.index);
    let range = Some(format!("bytes={first}-{last}"));
    let index = trials::index_key(&request.sweep);
    let entries = read(s3, GetObject { range, ..GetObject::of(&bucket, index) }).await?;
    let line = trials::line_range(&request.sweep, &bucket, &entries)
        .ok_or_else(|| format!("trials.idx has no entry for trial {}", request.index))?;
    let outputs = Prefix { bucket, prefix: request.sweep.trial_prefix(request.index) };
    Ok(vec![Outcome::LineFound { request, line, outputs, gpus }])
}
