//! STS: credentials that reach one trial's parameters and outputs.

use aws_config::SdkConfig;
use aws_sdk_sts::Client;
use aws_sdk_sts::types::Tag;
use futures_util::FutureExt;
use jiff::Timestamp;

use super::executor::{Executed, Service, Taken};
use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_protocol::claim::Access;

/// Lends credentials to attempts.
pub fn access(config: &SdkConfig) -> impl Service + use<> {
    Lender(lazy(config, Client::new))
}

#[derive(Debug)]
struct Lender(Lazy<Client>);

impl Service for Lender {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::IssueCredentials { request, role } => Ok(lend(&self.0, request, role).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

/// The session's tags are what the role's policy asks for (TrialRole in infra/control-plane.yaml;
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>).
async fn lend(client: &Client, request: TrialRequest, role: String) -> Executed {
    let tag = |key: &str, value: String| Tag::builder().key(key).value(value).build();
    let TrialRequest { sweep, index, attempt, .. } = &request;
    let lent = client
        .assume_role()
        .role_arn(role)
        .role_session_name(format!("trial-{index}-attempt-{attempt}"))
        .tags(tag("sweep", sweep.to_string())?)
        .tags(tag("trial", index.to_string())?)
        .send()
        .await?;
    let lent = lent.credentials.ok_or("AssumeRole answers without credentials")?;
    let access = Access {
        access_key_id: lent.access_key_id,
        secret_access_key: lent.secret_access_key,
        session_token: lent.session_token,
        expires_at: Timestamp::from_second(lent.expiration.secs())?,
    };
    Ok(vec![Outcome::CredentialsIssued { request, access }])
}
