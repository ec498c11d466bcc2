//! S3: where a trial's line lies in `trials.jsonl`, what its parameters are searched in, and what it starts from.

use std::sync::Arc;

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use futures_util::FutureExt;

use super::lazy::{Lazy, lazy};
use super::s3::bytes;
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::suggestion::choose;
use spotsweep_control_plane::sweep::continuation::Listed;
use spotsweep_protocol::claim::Prefix;
use spotsweep_sweep_file::trials;

/// Finds trials' lines.
pub fn lines(config: &SdkConfig) -> impl Service + use<> {
    Lines(lazy(config, Client::new))
}

#[derive(Debug)]
struct Lines(Lazy<Client>);

impl Service for Lines {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::FindLine { request, gpus, bucket } => Ok(find(&self.0, (request, gpus), bucket).boxed()),
            Command::ReadSpace { request, bucket } => Ok(space(&self.0, request, bucket).boxed()),
            Command::FindStart { request, listed, bucket } => Ok(start(&self.0, (request, listed), bucket).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

async fn space(client: &Client, request: TrialRequest, bucket: String) -> Executed {
    let key = trials::space_key(&request.sweep);
    let read = bytes(client.get_object().bucket(bucket).key(key).send().await?).await?;
    let search = Arc::new(serde_json::from_slice(&read)?);
    Ok(vec![Outcome::SpaceRead { request, search, choose }])
}

async fn start(client: &Client, (request, listed): (TrialRequest, Listed), bucket: String) -> Executed {
    let key = listed.key(&request.sweep);
    let read = bytes(client.get_object().bucket(bucket).key(key).send().await?).await?;
    let start = listed.start(&read, request.index)?;
    Ok(vec![Outcome::StartFound { request, start }])
}

async fn find(client: &Client, (request, gpus): (TrialRequest, Option<Vec<String>>), bucket: String) -> Executed {
    let (first, last) = trials::entries_range(request.index);
    let read = client.get_object().bucket(&bucket).key(trials::index_key(&request.sweep));
    let entries = bytes(read.range(format!("bytes={first}-{last}")).send().await?).await?;
    let line = trials::line_range(&request.sweep, &bucket, &entries)
        .ok_or_else(|| format!("trials.idx has no entry for trial {}", request.index))?;
    let outputs = Prefix { bucket, prefix: request.sweep.trial_prefix(request.index) };
    Ok(vec![Outcome::LineFound { request, line, outputs, gpus }])
}
