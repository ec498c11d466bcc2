//! Creates volumes, blank or from a snapshot.

use super::{client_token, refused, snapshot, tags, volume};
use crate::calls::{CallError, CreateVolume, Ec2};
use spotsweep_records::workspace::{Fact, NewVolume, RefusalKind, TrialRef, VolumeState};

/// The volume type, because EC2's default is gp2 (fact 26).
const VOLUME_TYPE: &str = "gp3";

/// Creates a volume. Returns its state, and the bytes for which its initialization rate is billed.
pub(super) async fn volume(ec2: &impl Ec2, of: &TrialRef, wanted: NewVolume) -> Result<Vec<Fact>, CallError> {
    let operation = wanted.operation;
    let (code, message) = match make(ec2, of, wanted).await {
        Ok(Made { id, state, billed }) => {
            let volume = Fact::Volume { operation: Some(operation), id, state };
            let rate = billed.map(|bytes| Fact::RateTaken { operation, bytes });
            return Ok([Some(volume), rate].into_iter().flatten().collect());
        }
        Err(CallError::Refused { code, message }) => (code, message),
        Err(error) => return Err(error),
    };
    // An earlier call with this token may have created a volume, and its answer was lost. The present refusal must not
    // hide that volume: its snapshot may be deleted by now, the quota may be full, or the token was used without the
    // rate.
    Ok(vec![match volume::find(ec2, of, operation).await? {
        Fact::VolumeNotFound { operation } => refused(RefusalKind::Volume { operation }, code, message),
        found => found,
    }])
}

struct Made {
    id: String,
    state: VolumeState,
    /// Bytes for which the initialization rate is billed.
    billed: Option<u64>,
}

async fn make(ec2: &impl Ec2, of: &TrialRef, wanted: NewVolume) -> Result<Made, CallError> {
    let request = CreateVolume {
        zone: wanted.zone,
        volume_type: VOLUME_TYPE,
        size_gib: wanted.size_gib,
        // A volume from a snapshot is encrypted like the snapshot. With another key the next snapshot would copy
        // everything again (fact 4).
        encrypted: wanted.snapshot.is_none(),
        snapshot: None,
        initialization_rate: None,
        client_token: client_token(of, wanted.operation),
        tags: tags(of, wanted.operation, wanted.name),
    };
    let Some(from) = wanted.snapshot else { return create(ec2, request, None).await };
    let snapshot = snapshot::look(ec2, &from).await?;
    let size_gib = request.size_gib.max(snapshot::size_gib(snapshot.as_ref(), &from)?);
    let request = CreateVolume { snapshot: Some(from), size_gib, ..request };
    let Some(rate) = wanted.initialization_rate else { return create(ec2, request, None).await };
    let at_rate = CreateVolume { initialization_rate: Some(rate), ..request.clone() };
    match create(ec2, at_rate, snapshot::bytes(snapshot.as_ref())).await {
        // EC2 can refuse the rate because of a quota (fact 25), with a code that no document names. Then the volume is
        // created without it.
        Err(CallError::Refused { .. }) => create(ec2, request, None).await,
        made => made,
    }
}

async fn create(ec2: &impl Ec2, request: CreateVolume, billed: Option<u64>) -> Result<Made, CallError> {
    let made = ec2.create_volume(request).await?;
    Ok(Made { state: volume::state(&made)?, id: made.id, billed })
}
