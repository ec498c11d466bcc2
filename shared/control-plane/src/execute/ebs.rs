//! EC2: the calls for trials' volumes and snapshots, whose results are facts.

mod attach;
mod create;
mod snapshot;
mod volume;

use sha2::{Digest, Sha256};

use super::{Executed, Service, Taken};
use crate::calls::{CallError, Ec2, Filter, Tag, Wait};
use crate::command::Command;
use crate::outcome::Outcome;
use spotsweep_protocol::words::hexadecimal;
use spotsweep_records::workspace::{Call, Fact, OPERATION_TAG, Refusal, RefusalKind, SWEEP_TAG, TRIAL_TAG, TrialRef};

/// Returns the service that creates, attaches, copies and deletes trials' volumes.
pub fn ebs(ec2: impl Ec2, time: impl Wait) -> impl Service {
    Ebs { ec2, time }
}

#[derive(Debug)]
struct Ebs<C, W> {
    ec2: C,
    time: W,
}

impl<C: Ec2, W: Wait> Service for Ebs<C, W> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Workspace { of, call } => Ok(Box::pin(self.execute(of, call))),
            other => Err(Box::new(other)),
        }
    }
}

impl<C: Ec2, W: Wait> Ebs<C, W> {
    async fn execute(&self, of: TrialRef, call: Call) -> Executed {
        let facts = self.facts(&of, call).await?;
        Ok(facts.into_iter().map(|fact| Outcome::Workspace(of.clone(), fact)).collect())
    }

    async fn facts(&self, of: &TrialRef, call: Call) -> Result<Vec<Fact>, CallError> {
        let (ec2, time) = (&self.ec2, &self.time);
        Ok(vec![match call {
            Call::CreateVolume(wanted) => return create::volume(ec2, of, wanted).await,
            Call::FindVolume { operation } => volume::find(ec2, of, operation).await?,
            Call::DescribeVolume(id) => volume::describe(ec2, id).await?,
            Call::AttachVolume { volume, instance, device } => attach::attach(ec2, volume, instance, device).await?,
            Call::DetachVolume { volume, force } => volume::detach(ec2, volume, force).await?,
            Call::AwaitDetached(id) => volume::await_detached(ec2, time, id).await?,
            Call::DeleteVolume(id) => volume::delete(ec2, id).await?,
            Call::TakeSnapshot { operation, volume, saved_early } => {
                snapshot::take(ec2, time, of, (operation, volume), saved_early).await?
            }
            Call::FindSnapshot { operation } => snapshot::find(ec2, of, operation).await?,
            Call::DescribeSnapshot(id) => snapshot::describe(ec2, id).await?,
            Call::DeleteSnapshot(id) => snapshot::delete(ec2, id).await?,
        }])
    }
}

fn refused(kind: RefusalKind, code: String, message: String) -> Fact {
    let lasts = kind.lasts(&code);
    Fact::Refused(Refusal { kind, code, message, lasts })
}

/// Returns the name of one operation of a trial. The trial numbers volumes and snapshots together, so no two have the
/// same name.
fn operation_name(of: &TrialRef, operation: u32) -> String {
    format!("{of}/{operation}")
}

/// Returns the filter for the tag of what an operation has made.
fn made_by(of: &TrialRef, operation: u32) -> Vec<Filter> {
    vec![Filter::new(format!("tag:{OPERATION_TAG}"), operation_name(of, operation))]
}

/// Returns the client token of an operation. It has at most 64 ASCII characters (fact 26), and no two operations have
/// the same one.
fn client_token(of: &TrialRef, operation: u32) -> String {
    let digest = Sha256::digest(operation_name(of, operation));
    let hash = hexadecimal(&digest[..24]);
    format!("spotsweep-{hash}")
}

/// Returns the tags of a volume or snapshot. `name` is the Name tag of an adopted volume, which its copies get too.
fn tags(of: &TrialRef, operation: u32, name: Option<String>) -> Vec<Tag> {
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("spotsweep {of}"));
    let tags = [
        (SWEEP_TAG, of.sweep.to_string()),
        (TRIAL_TAG, of.index.to_string()),
        (OPERATION_TAG, operation_name(of, operation)),
        ("Name", name),
    ];
    tags.map(|(key, value)| (key.to_owned(), value)).into()
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
        // The trials and operations 1/11 and 11/1 must have different tokens.
        let tokens = [client_token(&trial(1), 11), client_token(&trial(11), 1), client_token(&trial(1), 2), token];
        let distinct: std::collections::BTreeSet<_> = tokens.iter().collect();
        assert_eq!(distinct.len(), tokens.len());
    }

    #[test]
    fn an_adopted_name_is_carried_on() {
        let of = TrialRef { sweep: SweepId::derive("b", "sweeps/k.yaml", "v"), index: 7 };
        let value = |name: Option<&str>, wanted: &str| {
            let tags = tags(&of, 3, name.map(str::to_owned));
            tags.into_iter().find(|(key, _)| key == wanted).map(|(_, value)| value)
        };
        assert_eq!(value(Some("datasets"), "Name").as_deref(), Some("datasets"));
        assert_eq!(value(Some(""), "Name"), Some(format!("spotsweep {of}")));
        assert_eq!(value(None, "Name"), Some(format!("spotsweep {of}")));
        assert_eq!(value(None, "spotsweep:sweep"), Some(of.sweep.to_string()));
        assert_eq!(value(None, "spotsweep:trial").as_deref(), Some("7"));
        assert_eq!(value(None, "spotsweep:operation"), Some(format!("{of}/3")));
    }
}
