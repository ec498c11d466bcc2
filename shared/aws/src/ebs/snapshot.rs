//! Snapshots: taken once, found again, looked at, deleted.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::{Filter, ResourceType, Snapshot, SnapshotState as State};
use tokio::time::sleep;

use super::failure::Failure;
use super::{OPERATION_FILTER, operation_name, tags, volume};
use spotsweep_control_plane::throttle::{SnapshotRetries, Turn};
use spotsweep_control_plane::workspace::{Fact, Refusal, RefusalKind, SnapshotState, TrialRef, is_denied};

/// CreateSnapshot has no client token (fact 6): only a throttled call, which certainly had no effect, is repeated.
/// What is unclear is an error, and is looked up by its tag when the lease is over.
pub(super) async fn take(
    client: &Client,
    of: &TrialRef,
    (operation, volume_id): (u32, &str),
    saved_early: bool,
    turn: Turn,
) -> Result<Fact, Failure> {
    let mut retries = SnapshotRetries::new(saved_early, turn);
    loop {
        match take_once(client, of, operation, volume_id).await {
            Ok((id, state)) => return Ok(Fact::Snapshot { operation: Some(operation), id, state }),
            Err(Failure::Throttled { limit, code, message }) => match retries.pause(limit) {
                Some(pause) => sleep(pause).await,
                None => return Ok(refused(operation, code, message)),
            },
            Err(Failure::Refused { code, message }) => {
                let may_be_gone = code == volume::NOT_FOUND || is_denied(&code);
                if may_be_gone && volume::look(client, volume_id).await?.is_none() {
                    return Ok(Fact::Missing(volume_id.to_owned()));
                }
                return Ok(refused(operation, code, message));
            }
            Err(failure @ Failure::Unclear(_)) => return Err(failure),
        }
    }
}

fn refused(operation: u32, code: String, message: String) -> Fact {
    let kind = RefusalKind::Snapshot { operation };
    let lasts = kind.lasts(&code);
    Fact::Refused(Refusal { kind, code, message, lasts })
}

/// Without the SDK's own retries: a call that timed out may have taken effect.
async fn take_once(
    client: &Client,
    of: &TrialRef,
    operation: u32,
    volume: &str,
) -> Result<(String, SnapshotState), Failure> {
    let once = aws_sdk_ec2::config::Builder::new().retry_config(RetryConfig::disabled());
    let request = client
        .create_snapshot()
        .volume_id(volume)
        .description(format!("spotsweep {}", operation_name(of, operation)))
        .tag_specifications(tags(ResourceType::Snapshot, of, operation, None));
    let answer = request.customize().config_override(once).send().await?;
    let id = answer.snapshot_id().ok_or_else(|| Failure::unclear("CreateSnapshot answered without a snapshot id"))?;
    Ok((id.to_owned(), state(answer.state())?))
}

/// By the operation's tag. Should two carry it, the one that is usable first.
pub(super) async fn find(client: &Client, of: &TrialRef, operation: u32) -> Result<Fact, Failure> {
    let filter = Filter::builder().name(OPERATION_FILTER).values(operation_name(of, operation)).build();
    let mut snapshots = client.describe_snapshots().owner_ids("self").filters(filter).into_paginator().items().send();
    let mut found = Vec::new();
    while let Some(snapshot) = snapshots.next().await {
        let snapshot = snapshot?;
        let state = state(snapshot.state())?;
        found.extend(snapshot.snapshot_id.map(|id| (rank(state), id, state)));
    }
    Ok(match found.into_iter().min_by(|left, right| (left.0, &left.1).cmp(&(right.0, &right.1))) {
        Some((_, id, state)) => Fact::Snapshot { operation: Some(operation), id, state },
        None => Fact::SnapshotNotFound { operation },
    })
}

fn rank(state: SnapshotState) -> u8 {
    match state {
        SnapshotState::Completed => 0,
        SnapshotState::Asked | SnapshotState::Pending => 1,
        SnapshotState::Failed => 2,
    }
}

/// What EC2 says of a snapshot.
pub(super) async fn describe(client: &Client, id: String) -> Result<Fact, Failure> {
    match client.describe_snapshots().snapshot_ids(&id).send().await.map_err(Failure::from) {
        Ok(answer) => match answer.snapshots().first() {
            Some(found) => Ok(Fact::Snapshot { operation: None, state: state(found.state())?, id }),
            None => Ok(Fact::Missing(id)),
        },
        Err(Failure::Refused { code, .. }) if code == NOT_FOUND => Ok(Fact::Missing(id)),
        Err(failure) => Err(failure),
    }
}

/// What EC2 says of a snapshot that a volume is to be made from.
pub(super) async fn look(client: &Client, id: &str) -> Result<Option<Snapshot>, Failure> {
    let answer = client.describe_snapshots().snapshot_ids(id).send().await?;
    Ok(answer.snapshots.unwrap_or_default().into_iter().next())
}

/// GiB of the volume that a snapshot is of: no volume made from it may be smaller.
pub(super) fn size_gib(found: &Option<Snapshot>, id: &str) -> Result<i32, Failure> {
    let size = found.as_ref().and_then(Snapshot::volume_size);
    size.ok_or_else(|| Failure::unclear(format!("DescribeSnapshots answered without the size of {id}")))
}

/// Bytes of all its blocks, not only of those that it added to the one before; its volume's size where EC2 does not say.
pub(super) fn bytes(found: &Option<Snapshot>) -> Option<u64> {
    let found = found.as_ref()?;
    let of_volume = || Some(i64::from(found.volume_size()?) << 30);
    found.full_snapshot_size_in_bytes().or_else(of_volume).and_then(|bytes| u64::try_from(bytes).ok())
}

pub(super) async fn delete(client: &Client, id: String) -> Result<Fact, Failure> {
    match client.delete_snapshot().snapshot_id(&id).send().await.map_err(Failure::from) {
        Ok(_) => Ok(Fact::Deleted(id)),
        Err(Failure::Refused { code, .. }) if code == NOT_FOUND => Ok(Fact::Missing(id)),
        // Denied on a snapshot that is gone there is nothing left to delete; on one that is there it is an error.
        Err(Failure::Refused { code, message }) if is_denied(&code) => match describe(client, id).await? {
            Fact::Missing(id) => Ok(Fact::Missing(id)),
            _there => Err(Failure::Refused { code, message }),
        },
        Err(failure) => Err(failure),
    }
}

const NOT_FOUND: &str = "InvalidSnapshot.NotFound";

/// One in the recycle bin is as good as deleted; one on its way back out of it is being made.
fn state(state: Option<&State>) -> Result<SnapshotState, Failure> {
    match state {
        Some(State::Pending | State::Recovering) => Ok(SnapshotState::Pending),
        Some(State::Completed) => Ok(SnapshotState::Completed),
        Some(State::Error | State::Recoverable) => Ok(SnapshotState::Failed),
        unknown => Err(Failure::unclear(format!("EC2 says of a snapshot that it is {unknown:?}"))),
    }
}
