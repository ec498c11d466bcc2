//! EC2 for workspaces: one call, answered with what has become known. Chooses nothing.

mod create;
pub(super) mod failure;
mod snapshot;
mod volume;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use futures_util::FutureExt;
use sha2::{Digest, Sha256};

use super::executor::{Executed, Service, Taken};
use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::throttle::Turn;
use spotsweep_control_plane::workspace::{Call, EC2_TRIES, OPERATION_TAG, SWEEP_TAG, TRIAL_TAG, TrialRef};

/// The filter for [`OPERATION_TAG`].
const OPERATION_FILTER: &str = "tag:spotsweep:operation";

/// A client that shares the configuration's HTTP client.
pub(super) fn client(config: &SdkConfig) -> Client {
    let retry = config.retry_config().cloned().unwrap_or_else(RetryConfig::standard).with_max_attempts(EC2_TRIES);
    Client::from_conf(aws_sdk_ec2::config::Builder::from(config).retry_config(retry).build())
}

/// Makes, moves, copies and deletes trials' volumes.
pub fn ebs(config: &SdkConfig) -> impl Service + use<> {
    Ebs(lazy(config, client))
}

#[derive(Debug)]
struct Ebs(Lazy<Client>);

impl Service for Ebs {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Workspace { of, call: wanted, turn } => Ok(call(&self.0, of, wanted, turn).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

async fn call(client: &Client, of: TrialRef, call: Call, turn: Turn) -> Executed {
    let fact = match call {
        Call::CreateVolume(wanted) => {
            let facts = create::volume(client, &of, &wanted).await?;
            return Ok(facts.into_iter().map(|fact| Outcome::Workspace(of.clone(), fact)).collect());
        }
        Call::FindVolume { operation } => volume::find(client, &of, operation).await?,
        Call::DescribeVolume(id) => volume::describe(client, id).await?,
        Call::AttachVolume { volume, instance, device } => volume::attach(client, volume, &instance, &device).await?,
        Call::DetachVolume { volume, force } => volume::detach(client, volume, force).await?,
        Call::AwaitDetached(id) => volume::await_detached(client, id).await?,
        Call::DeleteVolume(id) => volume::delete(client, id).await?,
        Call::TakeSnapshot { operation, volume, saved_early } => {
            snapshot::take(client, &of, (operation, &volume), saved_early, turn).await?
        }
        Call::FindSnapshot { operation } => snapshot::find(client, &of, operation).await?,
        Call::DescribeSnapshot(id) => snapshot::describe(client, id).await?,
        Call::DeleteSnapshot(id) => snapshot::delete(client, id).await?,
    };
    Ok(vec![Outcome::Workspace(of, fact)])
}

/// What names one volume or snapshot: a trial counts them together, so no two have the same.
fn operation_name(of: &TrialRef, operation: u32) -> String {
    format!("{of}/{operation}")
}

/// At most 64 ASCII characters (fact 26), and no two operations share one.
fn client_token(of: &TrialRef, operation: u32) -> String {
    let digest = Sha256::digest(operation_name(of, operation));
    let hash: String = digest.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
    format!("spotsweep-{hash}")
}

/// `name` is the Name tag of a volume that was adopted: its copies carry it on.
fn tags(kind: ResourceType, of: &TrialRef, operation: u32, name: Option<&str>) -> TagSpecification {
    let name = name.filter(|name| !name.is_empty()).map_or_else(|| format!("spotsweep {of}"), str::to_owned);
    let tag = |(key, value): (&str, String)| Tag::builder().key(key).value(value).build();
    let all = [
        (SWEEP_TAG, of.sweep.to_string()),
        (TRIAL_TAG, of.index.to_string()),
        (OPERATION_TAG, operation_name(of, operation)),
        ("Name", name),
    ];
    TagSpecification::builder().resource_type(kind).set_tags(Some(all.map(tag).into())).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spotsweep_protocol::ids::SweepId;

    #[test]
    fn an_operation_has_a_token_of_its_own() {
        let trial = |index| TrialRef { sweep: SweepId::derive("b", "sweeps/k.yaml", "v"), index };
        let token = client_token(&trial(1), 1);
        assert_eq!(token, client_token(&trial(1), 1));
        assert!(token.is_ascii() && token.len() <= 64, "{token}");
        // 1/11 and 11/1 must not meet.
        let tokens = [client_token(&trial(1), 11), client_token(&trial(11), 1), client_token(&trial(1), 2), token];
        let distinct: std::collections::BTreeSet<_> = tokens.iter().collect();
        assert_eq!(distinct.len(), tokens.len());
    }

    #[test]
    fn an_adopted_name_is_carried_on() {
        let of = TrialRef { sweep: SweepId::derive("b", "sweeps/k.yaml", "v"), index: 7 };
        let value = |name: Option<&str>, key: &str| {
            let found = tags(ResourceType::Volume, &of, 3, name);
            found.tags().iter().find(|tag| tag.key() == Some(key)).and_then(|tag| tag.value().map(str::to_owned))
        };
        assert_eq!(value(Some("datasets"), "Name").as_deref(), Some("datasets"));
        assert_eq!(value(Some(""), "Name"), Some(format!("spotsweep {of}")));
        assert_eq!(value(None, "Name"), Some(format!("spotsweep {of}")));
        assert_eq!(value(None, "spotsweep:sweep"), Some(of.sweep.to_string()));
        assert_eq!(value(None, "spotsweep:trial").as_deref(), Some("7"));
        assert_eq!(value(None, "spotsweep:operation"), Some(format!("{of}/3")));
    }
}
