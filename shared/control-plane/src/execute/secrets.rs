//! Looks up whether the secrets of a sweep exist. No value is read.

use std::collections::{BTreeMap, BTreeSet};

use super::all_pages;
use crate::calls::{CallError, DescribeParameters, DescribedSecret, Parameter, SecretsManager, Ssm};
use spotsweep_protocol::claim::ManagedSecret;
use spotsweep_records::sweep::target::SecretState;

/// The error codes of DescribeSecret for a secret that does not exist. Where the role may describe some secrets only, it is
/// a denial, because a name alone matches no ARN with six characters at its end (fact 73).
const NO_SECRET: [&str; 2] = ["ResourceNotFoundException", "AccessDeniedException"];

/// Returns those of the secrets that exist, each by what names it in the plan.
pub(super) async fn look_up(
    ssm: &impl Ssm,
    secrets_manager: &impl SecretsManager,
    secrets: BTreeSet<String>,
) -> Result<BTreeMap<String, SecretState>, CallError> {
    let (managed, paths): (Vec<_>, Vec<_>) =
        secrets.into_iter().partition(|secret| ManagedSecret::of(secret).is_some());
    let (mut found, managed) = tokio::try_join!(parameters(ssm, paths), of_managed(secrets_manager, &managed))?;
    found.extend(managed);
    Ok(found)
}

async fn parameters(ssm: &impl Ssm, names: Vec<String>) -> Result<BTreeMap<String, SecretState>, CallError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let page = |next_token| ssm.describe_parameters(DescribeParameters { names: names.clone(), next_token });
    let found = all_pages(page).await?.into_iter();
    let state = |is_encrypted| if is_encrypted { SecretState::Readable } else { SecretState::Plain };
    Ok(found.map(|Parameter { name, is_encrypted }| (name, state(is_encrypted))).collect())
}

/// Describes each secret once, however many of its values the plan has.
async fn of_managed(
    secrets_manager: &impl SecretsManager,
    secrets: &[String],
) -> Result<BTreeMap<String, SecretState>, CallError> {
    let named = || secrets.iter().filter_map(|text| Some((text, ManagedSecret::of(text)?.name)));
    let mut states = BTreeMap::new();
    for name in named().map(|(_, name)| name).collect::<BTreeSet<_>>() {
        let state = match secrets_manager.describe_secret(name.to_owned()).await {
            Ok(DescribedSecret { is_being_deleted: true }) => SecretState::BeingDeleted,
            Ok(DescribedSecret { is_being_deleted: false }) => SecretState::Readable,
            Err(error) if error.refusal().is_some_and(|code| NO_SECRET.contains(&code)) => continue,
            Err(error) => return Err(error),
        };
        states.insert(name, state);
    }
    Ok(named().filter_map(|(text, name)| Some((text.clone(), *states.get(name)?))).collect())
}
