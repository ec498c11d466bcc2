//! Takes snapshots once, and finds, describes and deletes them.

use super::{made_by, operation_name, refused, tags, volume};
use crate::calls::{CallError, CreateSnapshot, DescribeSnapshots, Ec2, Snapshot, Wait};
use crate::execute::all_pages;
use crate::throttle::SnapshotRetries;
use spotsweep_records::workspace::{Fact, RefusalKind, SnapshotState, TrialRef, is_denied};

/// Takes a snapshot. CreateSnapshot has no client token (fact 6), so only a throttled call is repeated, which certainly
/// had no effect. An unclear answer is an error, and the snapshot is looked up by its tag when the lease is over.
pub(super) async fn take(
    ec2: &impl Ec2,
    time: &impl Wait,
    of: &TrialRef,
    (operation, volume): (u32, String),
    saved_early: bool,
) -> Result<Fact, CallError> {
    let mut retries = SnapshotRetries::new(saved_early);
    let request = CreateSnapshot {
        volume: volume.clone(),
        description: format!("spotsweep {}", operation_name(of, operation)),
        tags: tags(of, operation, None),
    };
    loop {
        let (code, message) = match ec2.create_snapshot(request.clone()).await {
            Ok(taken) => {
                let state = state(&taken)?;
                return Ok(Fact::Snapshot { operation: Some(operation), id: taken.id, state });
            }
            Err(CallError::Throttled { limit, code, message }) => match retries.pause(limit) {
                Some(pause) if time.wait(pause).await => continue,
                Some(_) | None => (code, message),
            },
            Err(CallError::Refused { code, message }) => {
                let may_be_gone = code == volume::NOT_FOUND || is_denied(&code);
                if may_be_gone && volume::look(ec2, &volume).await?.is_none() {
                    return Ok(Fact::Missing(volume));
                }
                (code, message)
            }
            Err(error @ CallError::Unclear(_)) => return Err(error),
        };
        return Ok(refused(RefusalKind::Snapshot { operation }, code, message));
    }
}

/// Finds the snapshot with the operation's tag. If two have it, a usable one is preferred.
pub(super) async fn find(ec2: &impl Ec2, of: &TrialRef, operation: u32) -> Result<Fact, CallError> {
    let wanted = DescribeSnapshots { own: true, filters: made_by(of, operation), ..DescribeSnapshots::default() };
    let page = |next_token| ec2.describe_snapshots(DescribeSnapshots { next_token, ..wanted.clone() });
    let mut found = Vec::new();
    for snapshot in all_pages(page).await? {
        let state = state(&snapshot)?;
        found.push((rank(state), snapshot.id, state));
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

/// Describes a snapshot, as a fact.
pub(super) async fn describe(ec2: &impl Ec2, id: String) -> Result<Fact, CallError> {
    match look(ec2, &id).await {
        Ok(Some(found)) => Ok(Fact::Snapshot { operation: None, state: state(&found)?, id }),
        Ok(None) => Ok(Fact::Missing(id)),
        Err(error) if error.refusal() == Some(NOT_FOUND) => Ok(Fact::Missing(id)),
        Err(error) => Err(error),
    }
}

/// Describes a snapshot from which a volume is created.
pub(super) async fn look(ec2: &impl Ec2, id: &str) -> Result<Option<Snapshot>, CallError> {
    let wanted = DescribeSnapshots { ids: vec![id.to_owned()], ..DescribeSnapshots::default() };
    Ok(ec2.describe_snapshots(wanted).await?.items.into_iter().next())
}

/// Returns the GiB of the snapshot's volume, because no volume from the snapshot may be smaller.
pub(super) fn size_gib(found: Option<&Snapshot>, id: &str) -> Result<u32, CallError> {
    let size = found.and_then(|found| found.volume_size_gib);
    size.ok_or_else(|| CallError::unclear(format!("DescribeSnapshots answered without the size of {id}")))
}

/// Returns the bytes of all blocks of a snapshot, or the size of its volume if EC2 does not report them.
pub(super) fn bytes(found: Option<&Snapshot>) -> Option<u64> {
    let found = found?;
    found.full_bytes.or_else(|| Some(u64::from(found.volume_size_gib?) << 30))
}

pub(super) async fn delete(ec2: &impl Ec2, id: String) -> Result<Fact, CallError> {
    let error = match ec2.delete_snapshot(id.clone()).await {
        Ok(()) => return Ok(Fact::Deleted(id)),
        Err(error) => error,
    };
    match error.refusal() {
        Some(NOT_FOUND) => Ok(Fact::Missing(id)),
        // If the snapshot is gone, a denied call has nothing left to delete. If the snapshot exists, the denial is an
        // error.
        Some(code) if is_denied(code) => match describe(ec2, id).await? {
            Fact::Missing(id) => Ok(Fact::Missing(id)),
            _there => Err(error),
        },
        Some(_) | None => Err(error),
    }
}

const NOT_FOUND: &str = "InvalidSnapshot.NotFound";

/// Reads a snapshot's state. A snapshot in the recycle bin counts as failed, and one that is being restored from it as
/// pending.
fn state(snapshot: &Snapshot) -> Result<SnapshotState, CallError> {
    match snapshot.state.as_str() {
        "pending" | "recovering" => Ok(SnapshotState::Pending),
        "completed" => Ok(SnapshotState::Completed),
        "error" | "recoverable" => Ok(SnapshotState::Failed),
        unknown => Err(CallError::unclear(format!("EC2 says of a snapshot that it is {unknown:?}"))),
    }
}
