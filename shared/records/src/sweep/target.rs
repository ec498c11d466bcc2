//! What AWS shows of the job definition, the queue and the snapshots or volumes that a sweep names. The rules about it
//! are in `decide/target.rs`.

use std::collections::BTreeMap;

use crate::sweep::Prepared;
use crate::workspace::Origin;

/// The text before the name in a job definition's ARN.
const DEFINITION_RESOURCE: &str = ":job-definition/";

/// The error codes of DescribeSnapshots for a snapshot that does not exist for this account.
const NO_SNAPSHOT: [&str; 3] = ["InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed", "InvalidParameterValue"];

/// The parameters of DescribeJobDefinitions. It takes revisions, or a name with a status, but no mixture of both
/// (<https://docs.aws.amazon.com/batch/latest/APIReference/API_DescribeJobDefinitions.html>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionQuery {
    /// `jobDefinitions`: one revision, as `name:revision` or ARN. AWS refuses the ARN of another region or account, or
    /// does not find it.
    Revision(String),
    /// `jobDefinitionName`, with the status ACTIVE.
    Name(String),
}

/// The call to EC2 that describes what the workspaces start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseQuery {
    /// DescribeSnapshots by id.
    Snapshot(String),
    /// DescribeSnapshots by ids, which returns those that exist.
    Snapshots(Vec<String>),
    /// DescribeVolumes with one filter.
    Volumes {
        /// The filter's name.
        filter: &'static str,
        /// Its value, with wildcards escaped.
        value: String,
    },
}

/// What AWS shows of the things that a sweep names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Job definitions that match the [`DefinitionQuery`], of any status.
    pub definitions: Vec<Definition>,
    /// The job queue, if there is one of that name.
    pub queue: Option<Queue>,
    /// What the workspaces start from.
    pub base: Base,
    /// Those of the plan's secrets that exist, each by what names it in the plan.
    pub secrets: BTreeMap<String, SecretState>,
    /// The disks of the instance types on which the queue may start jobs; empty where the sweep has no data sets, or
    /// where the disk of one type is unknown.
    pub disks: Vec<DataDisk>,
}

/// The disk on which instances of one type keep data sets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataDisk {
    /// The instance type.
    pub instance_type: String,
    /// Its size. A file system on it has less room.
    pub bytes: u64,
    /// The number of the instance's GPUs. Batch starts no job on an instance that has fewer than the job needs.
    pub gpus: u32,
}

/// The state of a secret that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretState {
    /// Its value can be read.
    Readable,
    /// Its value is not encrypted: it is a String of Parameter Store.
    Plain,
    /// It is scheduled for deletion in Secrets Manager, and its value cannot be read.
    BeingDeleted,
}

/// A revision of a job definition, with the fields that a sweep's check needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its ARN, which ends with the revision.
    pub arn: String,
    /// Its revision.
    pub revision: u32,
    /// `ACTIVE` or `INACTIVE`.
    pub status: String,
    /// Seconds that an attempt may take, for jobs without a timeout of their own; absent where the definition has none.
    pub timeout_seconds: Option<u32>,
    /// GPUs of its containers, for jobs without a number of their own.
    pub gpus: u32,
    /// Its container's command.
    pub command: Vec<String>,
    /// Its container's image; absent where it has several containers.
    pub image: Option<String>,
    /// The names of its containers' environment variables.
    pub variables: Vec<String>,
    /// The folders of the instance that its containers can mount.
    pub folders: Vec<String>,
}

/// A job queue, with the field that a sweep's check needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// `ENABLED` or `DISABLED`.
    pub state: String,
    /// The ARNs of its compute environments.
    pub environments: Vec<String>,
}

/// The result of a [`BaseQuery`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Base {
    /// The query was not made, because the workspaces start blank or there are none.
    #[default]
    NotAsked,
    /// The snapshot, if this account may use one of that id.
    Snapshot(Option<BaseSnapshot>),
    /// The snapshots that this account may use, by id.
    Snapshots(BTreeMap<String, BaseSnapshot>),
    /// All volumes that the filter finds.
    Volumes(Vec<BaseVolume>),
}

/// A snapshot that workspaces may start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseSnapshot {
    /// EC2's name of the state, such as `completed`.
    pub state: String,
    /// Size of its volume in GiB.
    pub size_gib: u32,
}

/// A volume that workspaces may start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseVolume {
    /// `vol-…`
    pub id: String,
    /// The availability zone.
    pub zone: String,
    /// Size in GiB.
    pub size_gib: u32,
    /// EC2's name of the state, such as `available`.
    pub state: String,
    /// The Name tag.
    pub name: Option<String>,
    /// Whether it has the tag [`crate::workspace::SWEEP_TAG`].
    pub is_tagged: bool,
    /// The instance that it is attached to.
    pub instance: Option<String>,
}

impl DefinitionQuery {
    /// Returns the query for `name`, `name:revision`, or an ARN with or without revision.
    pub fn of(named: &str) -> Self {
        let of_arn = named.rsplit_once(DEFINITION_RESOURCE).filter(|_| named.starts_with("arn:"));
        let short = of_arn.map_or(named, |(_, short)| short);
        match short.rsplit_once(':') {
            Some(_revision) => Self::Revision(named.to_owned()),
            None => Self::Name(short.to_owned()),
        }
    }
}

impl BaseQuery {
    /// Returns the query for what a sweep's workspaces start from; `None` if the sweep names nothing.
    pub fn of(prepared: &Prepared) -> Option<Self> {
        match &prepared.plan.workspace.as_ref()?.origin {
            Origin::Blank => None,
            Origin::Snapshot { snapshot } => Some(Self::Snapshot(snapshot.clone())),
            Origin::Snapshots => Some(Self::Snapshots(prepared.snapshots().to_vec())),
            Origin::Adopted { volume, .. } => {
                let filter = if is_volume_id(volume) { "volume-id" } else { "tag:Name" };
                Some(Self::Volumes { filter, value: literal(volume) })
            }
        }
    }

    /// Whether this error code of DescribeSnapshots means that there is no such snapshot.
    pub fn is_no_snapshot(code: &str) -> bool {
        NO_SNAPSHOT.contains(&code)
    }
}

/// Returns the filter value that matches only this text. `*` and `?` are wildcards, and a backslash escapes the next
/// character (EC2 user guide, "Filter resources using the API").
fn literal(text: &str) -> String {
    let escaped = |letter| if matches!(letter, '*' | '?' | '\\') { vec!['\\', letter] } else { vec![letter] };
    text.chars().flat_map(escaped).collect()
}

/// Whether a name is the id of a volume. Otherwise it is a Name tag.
pub fn is_volume_id(text: &str) -> bool {
    text.strip_prefix("vol-").is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_wildcards_is_searched_as_it_is_written() {
        assert_eq!(literal(r"data*\set?"), r"data\*\\set\?");
        assert_eq!(literal("vol-1a"), "vol-1a");
    }

    #[test]
    fn a_job_definition_is_asked_for_by_revision_or_by_name() {
        let arn = "arn:aws:batch:us-east-1:000000000000:job-definition/train";
        for named in ["train", arn] {
            assert_eq!(DefinitionQuery::of(named), DefinitionQuery::Name("train".into()));
        }
        for named in ["train:7", &format!("{arn}:7")] {
            assert_eq!(DefinitionQuery::of(named), DefinitionQuery::Revision(named.into()));
        }
    }
}
