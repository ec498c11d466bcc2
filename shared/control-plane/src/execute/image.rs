//! Job definitions for the images of sweeps, each registered once.

use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Prepared;

use super::{Executed, described};
use crate::calls::{Batch, CallError, DescribeJobDefinitions, JobDefinition, RegisterJobDefinition};
use crate::command::ImageDefinition;
use crate::outcome::Outcome;

/// The error codes for a wrong request and for one that IAM denies, which would be refused again.
const PERMANENT: [&str; 2] = ["ClientException", "AccessDeniedException"];

/// Finds the definition by its name, or registers it. RegisterJobDefinition has no client token. After an unclear answer
/// the whole command is repeated, and finds what the first try has registered.
pub(super) async fn register(
    batch: &impl Batch,
    sweep: SweepId,
    prepared: Prepared,
    wanted: ImageDefinition,
) -> Executed {
    let registered = |definition| vec![Outcome::ImageRegistered { sweep, prepared, definition }];
    let named = DescribeJobDefinitions {
        name: Some(wanted.name.clone()),
        status: Some("ACTIVE"),
        ..DescribeJobDefinitions::default()
    };
    let is_meant = |found: &JobDefinition<_>| found.image.as_ref() == Some(&wanted.image);
    let found = described(batch, named).await?.into_iter().filter(is_meant).max_by_key(|found| found.revision);
    if let Some(arn) = found.and_then(|found| found.arn) {
        return Ok(registered(Ok(arn)));
    }
    let like = DescribeJobDefinitions { named: vec![wanted.like.clone()], ..DescribeJobDefinitions::default() };
    let Some(like) = described(batch, like).await?.into_iter().next() else {
        return Err(format!("job definition {} is gone", wanted.like).into());
    };
    let request = RegisterJobDefinition { name: wanted.name, image: wanted.image, properties: like.properties };
    match batch.register_job_definition(request).await {
        Ok(arn) => Ok(registered(Ok(arn))),
        Err(CallError::Refused { code, message }) if PERMANENT.contains(&code.as_str()) => Ok(registered(Err(message))),
        Err(error) => Err(error.into()),
    }
}
