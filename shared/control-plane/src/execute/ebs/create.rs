//! Volumes made: blank, or from a snapshot.

use super::{client_token, refused, snapshot, tags, volume};
use crate::calls::{CallError, CreateVolume, Ec2};
use spotsweep_records::workspace::{Fact, NewVolume, RefusalKind, TrialRef, VolumeState};

/// EC2's own default is gp2 (fact 26).
const VOLUME_TYPE: &str = "gp3";

/// The volume, and what its initialization rate is billed for.
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
    // An earlier call with this token may have made one, and its answer was lost: then the present refusal (its
    // snapshot is deleted by now, the quota is full, the token was used without the rate) must not hide it.
    Ok(vec![match volume::find(ec2, of, operation).await? {
        Fact::VolumeNotFound { operation } => refused(RefusalKind::Volume { operation }, code, message),
        found => found,
    }])
}

struct Made {
    id: String,
    state: VolumeState,
    /// Bytes that are billed at the initialization rate.
    billed: Option<u64>,
}

async fn make(ec2: &impl Ec2, of: &TrialRef, wanted: NewVolume) -> Result<Made, CallError> {
    let request = CreateVolume {
        zone: wanted.zone,
        volume_type: VOLUME_TYPE,
        size_gib: wanted.size_gib,
        // Where there is a snapshot, as that one: under another key the next snapshot would copy everything again (fact 4).
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
        // The rate can be refused on quota (fact 25), under a code that no document names.
        Err(CallError::Refused { .. }) => create(ec2, request, None).await,
        made => made,
    }
}

async fn create(ec2: &impl Ec2, request: CreateVolume, billed: Option<u64>) -> Result<Made, CallError> {
    let made = ec2.create_volume(request).await?;
    Ok(Made { state: volume::state(&made)?, id: made.id, billed })
}
