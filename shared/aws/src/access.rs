//! STS: credentials that reach one trial's parameters and outputs, and the checkpoint that it starts from.

use aws_config::SdkConfig;
use aws_sdk_sts::Client;
use aws_sdk_sts::types::Tag;
use futures_util::FutureExt;
use jiff::Timestamp;

use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::workspace::TrialRef;
use spotsweep_protocol::claim::Access;

/// Issues credentials to attempts.
pub fn access(config: &SdkConfig) -> impl Service + use<> {
    Issuer(lazy(config, Client::new))
}

#[derive(Debug)]
struct Issuer(Lazy<Client>);

impl Service for Issuer {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::IssueCredentials { request, restores, role } => {
                Ok(issue(&self.0, request, restores, role).boxed())
            }
            other => Err(Box::new(other)),
        }
    }
}

/// The session's tags are what the role's policy asks for (TrialRole in infra/control-plane.yaml;
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>).
async fn issue(client: &Client, request: TrialRequest, restores: Option<TrialRef>, role: String) -> Executed {
    let tag = |key: &str, value: String| Tag::builder().key(key).value(value).build();
    let TrialRequest { sweep, index, attempt, .. } = &request;
    // The middle of the keys of what it reads: a session without this tag reads no other trial's.
    let restores = restores.map(|TrialRef { sweep, index }| tag("restores", format!("{sweep}/trials/{index}")));
    let mut tags = vec![tag("sweep", sweep.to_string())?, tag("trial", index.to_string())?];
    tags.extend(restores.transpose()?);
    let answer = client
        .assume_role()
        .role_arn(role)
        .role_session_name(format!("trial-{index}-attempt-{attempt}"))
        .set_tags(Some(tags))
        .send()
        .await?;
    let issued = answer.credentials.ok_or("AssumeRole answers without credentials")?;
    let access = Access {
        access_key_id: issued.access_key_id,
        secret_access_key: issued.secret_access_key,
        session_token: issued.session_token,
        expires_at: Timestamp::from_second(issued.expiration.secs())?,
    };
    Ok(vec![Outcome::CredentialsIssued { request, access }])
}
