//! Volumes made: blank, or from a snapshot.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::create_volume::CreateVolumeOutput;
use aws_sdk_ec2::types::{ResourceType, VolumeType};

use super::failure::Failure;
use super::volume::{find, refused, state};
use super::{client_token, snapshot, tags};
use spotsweep_control_plane::workspace::{Fact, NewVolume, RefusalKind, TrialRef, VolumeState};

/// The volume, and what its initialization rate is billed for.
pub(super) async fn volume(client: &Client, of: &TrialRef, wanted: &NewVolume) -> Result<Vec<Fact>, Failure> {
    let operation = wanted.operation;
    let (code, message) = match make(client, of, wanted).await {
        Ok(Made { id, state, billed }) => {
            let volume = Fact::Volume { operation: Some(operation), id, state };
            let rate = billed.map(|bytes| Fact::RateTaken { operation, bytes });
            return Ok([Some(volume), rate].into_iter().flatten().collect());
        }
        Err(Failure::Refused { code, message }) => (code, message),
        Err(failure) => return Err(failure),
    };
    // An earlier call with this token may have made one, and its answer was lost: then the present refusal (its
    // snapshot is deleted by now, the quota is full, the token was used without the rate) must not hide it.
    Ok(vec![match find(client, of, operation).await? {
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

async fn make(client: &Client, of: &TrialRef, wanted: &NewVolume) -> Result<Made, Failure> {
    let size = i32::try_from(wanted.size_gib).unwrap_or(i32::MAX);
    let request = client
        .create_volume()
        .availability_zone(&wanted.zone)
        .volume_type(VolumeType::Gp3) // EC2's own default is gp2 (fact 26)
        .client_token(client_token(of, wanted.operation))
        .tag_specifications(tags(ResourceType::Volume, of, wanted.operation, wanted.name.as_deref()));
    let Some(from) = &wanted.snapshot else {
        return made(&request.size(size).encrypted(true).send().await?, None);
    };
    let snapshot = snapshot::look(client, from).await?;
    // Encrypted as its snapshot is: under another key the next snapshot would copy everything anew (fact 4).
    let request = request.snapshot_id(from).size(size.max(snapshot::size_gib(&snapshot, from)?));
    let Some(rate) = wanted.initialization_rate.and_then(|rate| i32::try_from(rate).ok()) else {
        return made(&request.send().await?, None);
    };
    // The rate can be refused on quota (fact 25), under a code that no document names.
    match request.clone().volume_initialization_rate(rate).send().await.map_err(Failure::from) {
        Err(Failure::Refused { .. }) => made(&request.send().await?, None),
        answer => made(&answer?, snapshot::bytes(&snapshot)),
    }
}

fn made(answer: &CreateVolumeOutput, billed: Option<u64>) -> Result<Made, Failure> {
    let id = answer.volume_id().ok_or_else(|| Failure::unclear("CreateVolume answered without a volume id"))?;
    Ok(Made { id: id.to_owned(), state: state(answer.state(), answer.attachments())?, billed })
}
