//! STS: credentials for one trial's parameters and outputs, and for the checkpoint, the code, the secrets and the data
//! that it reads.

use std::collections::BTreeSet;

use super::{Executed, Service, Taken};
use crate::calls::{AssumeRole, Sts, Tag};
use crate::command::{Command, Reads};
use crate::event::TrialRequest;
use crate::outcome::Outcome;
use spotsweep_protocol::claim::ManagedSecret;
use spotsweep_records::workspace::TrialRef;

/// Returns the service that issues credentials to attempts.
pub fn access(sts: impl Sts) -> impl Service {
    Issuer(sts)
}

#[derive(Debug)]
struct Issuer<C>(C);

impl<C: Sts> Service for Issuer<C> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::IssueCredentials { request, reads, role } => Ok(Box::pin(issue(&self.0, request, reads, role))),
            other => Err(Box::new(other)),
        }
    }
}

/// Issues credentials. The role's policy has conditions on the session's tags (TrialRole in infra/control-plane.yaml;
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>).
async fn issue(
    sts: &impl Sts,
    request: TrialRequest,
    Reads { restores, code, secrets, data }: Reads,
    role: String,
) -> Executed {
    let tag = |key: &str, value: String| -> Tag { (key.to_owned(), value) };
    let TrialRequest { sweep, index, attempt, .. } = &request;
    let mut tags = vec![tag("sweep", sweep.to_string()), tag("trial", index.to_string())];
    // The tag is the middle part of the keys that the trial may read. Without this tag a session reads no other trial's
    // objects.
    tags.extend(restores.map(|TrialRef { sweep, index }| tag("restores", format!("{sweep}/trials/{index}"))));
    tags.extend(code.map(|sha256| tag("code", sha256)));
    // A variable of a policy has one value, so each secret and each data set has a tag of its own.
    let managed: BTreeSet<&str> = secrets.iter().filter_map(|text| Some(ManagedSecret::of(text)?.name)).collect();
    let paths = secrets.iter().filter(|text| ManagedSecret::of(text).is_none());
    let paths = paths.map(|path| path.trim_start_matches('/').to_owned());
    tags.extend(paths.enumerate().map(|(number, path)| tag(&format!("secret-{number}"), path)));
    let named = managed.into_iter().enumerate();
    tags.extend(named.map(|(number, name)| tag(&format!("managed-{number}"), name.to_owned())));
    tags.extend(data.into_iter().enumerate().map(|(number, place)| tag(&format!("data-{number}"), place)));
    let session = format!("trial-{index}-attempt-{attempt}");
    let access = sts.assume_role(AssumeRole { role, session, tags }).await?;
    Ok(vec![Outcome::CredentialsIssued { request, access }])
}
