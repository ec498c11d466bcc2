//! Checks whether what a sweep names in AWS exists and can be used.
//!
//! A volume that a person made is adopted only if exactly one matches, no instance has it, and it has the tag
//! [`SWEEP_TAG`]. With that tag its owner agrees that it is attached and migrated: a copy in another zone takes its
//! place, and the original is deleted once the copy is verified. The roles allow nothing with a volume without the tag.

use std::collections::BTreeMap;

use spotsweep_protocol::claim::DATA_CACHE;
use spotsweep_records::sweep::Prepared;
use spotsweep_records::sweep::target::{Base, BaseSnapshot, BaseVolume, Definition, Queue, Target, is_volume_id};
use spotsweep_records::workspace::{Keep, Origin, SWEEP_TAG, WorkspacePlan};
use spotsweep_sweep_file::{Problem, Warning};

use super::{image, secrets};
use crate::command::ImageDefinition;

/// File name of the runner's program.
const RUNNER: &str = "spotsweep-runner";

/// The folder of an instance to which the script of `infra/compute.yaml` mounts the disk for data sets.
const DATA_FOLDER: &str = "/var/lib/spotsweep-data";

/// Why something cannot be used, and how a person can change that.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    message: String,
    help: String,
}

/// A plan whose target can be used.
#[derive(Debug)]
pub struct Checked {
    /// The plan with the definition's revision and the workspace's origin.
    pub prepared: Prepared,
    /// The definition that is still to be registered, because the sweep names an image.
    pub image: Option<ImageDefinition>,
}

/// Checks the target of a plan, for the deployment with this bucket.
///
/// # Errors
/// Returns a problem at its line of the file for everything that is missing or cannot be used.
pub fn check(prepared: &Prepared, target: &Target, bucket: &str) -> Result<Checked, Vec<Problem>> {
    let mut checked = Checked { prepared: prepared.clone(), image: None };
    let plan = &mut checked.prepared.plan;
    let mut problems = Vec::new();
    let mut at = |key, refused: Refused| problems.push(prepared.file.problem_at(key, refused.message, refused.help));
    match definition(&target.definitions, &plan.definition) {
        Ok(found) => {
            plan.definition.clone_from(&found.arn);
            match image::wanted(plan, found) {
                Ok(wanted) => checked.image = wanted,
                Err(message) => {
                    let help = "name a definition with one container under `job_definition`, or delete `image`";
                    at("image", Refused { message, help: help.to_owned() });
                }
            }
            // The data sets are listed after this check.
            if found.folders.iter().any(|folder| folder == DATA_FOLDER) {
                checked.prepared.disks.clone_from(&target.disks);
            }
            if !prepared.file.settings.data.is_empty() && !found.variables.iter().any(|name| name == DATA_CACHE) {
                at("data", no_data_folder(&found.arn));
            }
            let launcher = launcher(&found.command);
            // A job's command takes the place of the definition's.
            if let Some(command) = &mut plan.command {
                command.splice(..0, launcher.iter().cloned());
            }
            if checked.image.is_some() && launcher.is_empty() {
                let message = "this deployment's instances do not fetch the runner, so the image must have it";
                let help = "make it the image's entrypoint (docs/deploy.md), or deploy with the parameter RunnerX86";
                let warning = prepared.file.problem_at("image", message, help);
                plan.warnings = plan.warnings.iter().cloned().chain([Warning(warning)]).collect();
            }
            // The runner needs the timeout too.
            plan.timeout_seconds = plan.timeout_seconds.or(found.timeout_seconds);
            plan.gpus = plan.resources.get("GPU").and_then(|gpus| gpus.parse().ok()).unwrap_or(found.gpus);
        }
        Err(refused) => at("job_definition", refused),
    }
    if let Err(refused) = queue(target.queue.as_ref(), &plan.queue) {
        at("queue", refused);
    }
    if let Some(wanted) = &mut plan.workspace {
        match workspace(wanted, prepared.snapshots(), &target.base) {
            Ok(found) => *wanted = found,
            Err(refused) => at("workspace", refused),
        }
    }
    problems.extend(secrets::missing(prepared, &target.secrets, bucket));
    if problems.is_empty() { Ok(checked) } else { Err(problems) }
}

/// Returns the named revision, or the newest active one if the name has none.
fn definition<'a>(found: &'a [Definition], named: &str) -> Result<&'a Definition, Refused> {
    let is_meant = |arn: &str| {
        !named.starts_with("arn:") || arn == named || arn.rsplit_once(':').is_some_and(|(latest, _)| latest == named)
    };
    let active = found.iter().filter(|definition| definition.status == "ACTIVE" && is_meant(&definition.arn));
    match active.max_by_key(|definition| definition.revision) {
        Some(newest) => Ok(newest),
        None => refuse(
            format!("there is no active job definition {named:?} in this account and region"),
            "register it in AWS Batch, or name another one under `spotsweep: {job_definition: …}`, as name, \
             name:revision or ARN",
        ),
    }
}

/// Without the folder of the instance every attempt would end before its training.
fn no_data_folder(definition: &str) -> Refused {
    Refused {
        message: format!("job definition {definition} mounts no folder for data sets: it has no variable {DATA_CACHE}"),
        help: format!(
            "mount a folder of the instance, and name its path in the container in {DATA_CACHE} (docs/deploy.md), or \
             name another one under `job_definition`"
        ),
    }
}

/// Returns the words that start the runner, if it is the instance's and not the image's entrypoint.
pub fn launcher(command: &[String]) -> &[String] {
    let is_runner = command.first().is_some_and(|program| program.rsplit('/').next() == Some(RUNNER));
    let end = command.iter().position(|word| word == "--").filter(|_| is_runner);
    end.map_or(&[], |end| &command[..=end])
}

fn queue(found: Option<&Queue>, named: &str) -> Result<(), Refused> {
    let help = "create or enable it in AWS Batch, or name another one under `spotsweep: {queue: …}`";
    match found {
        Some(queue) if queue.state == "ENABLED" => Ok(()),
        Some(_disabled) => refuse(format!("job queue {named:?} is disabled"), help),
        None => refuse(format!("there is no job queue {named:?}"), help),
    }
}

fn workspace(wanted: &WorkspacePlan, snapshots: &[String], found: &Base) -> Result<WorkspacePlan, Refused> {
    match (&wanted.origin, found) {
        (Origin::Snapshot { snapshot }, Base::Snapshot(found)) => from_snapshot(found.as_ref(), snapshot, wanted),
        (Origin::Adopted { volume, .. }, Base::Volumes(found)) => adopt(found, volume, wanted.initialization_rate),
        (Origin::Snapshots, Base::Snapshots(found)) => from_snapshots(found, snapshots, wanted),
        (Origin::Blank, _) => Ok(wanted.clone()),
        (Origin::Snapshots, _) => refuse("the snapshots were not looked up", "upload the file again"),
        (Origin::Snapshot { snapshot: named } | Origin::Adopted { volume: named, .. }, _) => {
            refuse(format!("{named} was not looked up"), "upload the file again")
        }
    }
}

fn from_snapshot(found: Option<&BaseSnapshot>, id: &str, wanted: &WorkspacePlan) -> Result<WorkspacePlan, Refused> {
    let Some(found) = found else {
        return refuse(
            format!("there is no snapshot {id} in this region that this account may use"),
            "name another one; `aws ec2 describe-snapshots --owner-ids self` lists them",
        );
    };
    if found.state != "completed" {
        return refuse(
            format!("snapshot {id} is {}, and volumes can be made only from a completed one", found.state),
            "wait until it is completed and upload the file again, or name another one",
        );
    }
    // A volume is at least as large as the snapshot's volume, so the plan has the size that will be created.
    Ok(WorkspacePlan { size_gib: wanted.size_gib.max(found.size_gib), ..wanted.clone() })
}

/// Checks the snapshots of all trials.
fn from_snapshots(
    found: &BTreeMap<String, BaseSnapshot>,
    ids: &[String],
    wanted: &WorkspacePlan,
) -> Result<WorkspacePlan, Refused> {
    ids.iter().try_fold(wanted.clone(), |plan, id| from_snapshot(found.get(id), id, &plan))
}

/// Returns the plan of an adopted volume. Exactly one volume must match: the reference script lost its fleet because it
/// did not check that (facts, last part).
fn adopt(found: &[BaseVolume], wanted: &str, initialization_rate: Option<u32>) -> Result<WorkspacePlan, Refused> {
    // A wildcard in the name matches other volumes too, and a deleted volume is listed for a while.
    let is_meant = |volume: &&BaseVolume| {
        let is_named = volume.id == wanted || volume.name.as_deref() == Some(wanted);
        is_named && !["deleting", "deleted"].contains(&volume.state.as_str())
    };
    let found: Vec<&BaseVolume> = found.iter().filter(is_meant).collect();
    let volume = match found[..] {
        [volume] => volume,
        [] => {
            let what = if is_volume_id(wanted) { "volume" } else { "volume with the Name tag" };
            let message = format!("there is no {what} {wanted:?} in this region");
            return refuse(message, "check the name and the region; `aws ec2 describe-volumes` lists them");
        }
        ref several => {
            let list: Vec<String> = several.iter().map(|volume| describe(volume)).collect();
            let message = format!("{} volumes have the Name tag {wanted:?}: {}", list.len(), list.join(", "));
            return refuse(message, "name the one that is meant by its id, `workspace: {volume: vol-…}`");
        }
    };
    let (id, name) = (&volume.id, describe(volume));
    if let Some(instance) = &volume.instance {
        return refuse(
            format!("volume {name} is attached to {instance}"),
            format!("detach it, `aws ec2 detach-volume --volume-id {id}`, and upload the file again"),
        );
    }
    if volume.state != "available" {
        return refuse(
            format!("volume {name} is {}", volume.state),
            "wait until it is available and upload the file again, or name another one",
        );
    }
    if !volume.is_tagged {
        let command = format!("aws ec2 create-tags --resources {id} --tags Key={SWEEP_TAG},Value=adopted");
        return refuse(
            format!("volume {name} lacks the tag {SWEEP_TAG}, without which it is not touched"),
            format!("agree that it is attached, copied and moved: `{command}`; upload the file again"),
        );
    }
    let name = volume.name.clone().unwrap_or_default();
    let origin = Origin::Adopted { volume: id.clone(), zone: volume.zone.clone(), name };
    Ok(WorkspacePlan { size_gib: volume.size_gib, origin, keep: Keep::default(), initialization_rate })
}

fn describe(volume: &BaseVolume) -> String {
    format!("{} in {}", volume.id, volume.zone)
}

fn refuse<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { message: message.into(), help: help.into() })
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn volume(id: &str, state: &str, is_tagged: bool, instance: Option<&str>) -> BaseVolume {
        BaseVolume {
            id: id.into(),
            zone: "us-east-1b".into(),
            size_gib: 70,
            state: state.into(),
            name: Some("data".into()),
            is_tagged,
            instance: instance.map(str::to_owned),
        }
    }

    #[test]
    fn exactly_one_free_and_tagged_volume_is_adopted() {
        let free = |id| volume(id, "available", true, None);
        let named = |id, name: &str| BaseVolume { name: Some(name.into()), ..free(id) };
        let origin = Origin::Adopted { volume: "vol-1a".into(), zone: "us-east-1b".into(), name: "data".into() };
        let plan = WorkspacePlan { size_gib: 70, origin, keep: Keep::default(), initialization_rate: Some(200) };
        // DescribeVolumes shows a deleted volume too, and one that matches only the wildcard.
        let shown = [volume("vol-0", "deleting", true, None), free("vol-1a"), named("vol-2b", "data-2")];
        assert_eq!(adopt(&shown, "data", Some(200)), Ok(plan));

        let refused: [(&str, &[BaseVolume], &str, &str); 8] = [
            ("data", &[], "there is no volume with the Name tag \"data\"", "describe-volumes"),
            ("vol-1a", &[], "there is no volume \"vol-1a\"", "describe-volumes"),
            ("d*", &[free("vol-1a")], "there is no volume with the Name tag \"d*\"", "describe-volumes"),
            ("data", &[free("vol-1a"), free("vol-2b")], "vol-1a in us-east-1b, vol-2b in us-east-1b", "by its id"),
            ("data", &[volume("vol-1a", "in-use", true, Some("i-7"))], "is attached to i-7", "detach-volume"),
            ("data", &[volume("vol-1a", "creating", true, None)], "is creating", "wait"),
            ("data", &[volume("vol-1a", "error", true, None)], "is error", "another one"),
            ("data", &[volume("vol-1a", "available", false, None)], "lacks the tag spotsweep:sweep", "create-tags"),
        ];
        for (wanted, found, why, fix) in refused {
            let Err(Refused { message, help }) = adopt(found, wanted, None) else { panic!("{why}: adopted") };
            assert!(message.contains(why), "{message} lacks {why}");
            assert!(help.contains(fix), "{help} lacks {fix}");
        }
    }

    #[test]
    fn a_base_snapshot_must_be_completed() {
        let origin = || Origin::Snapshot { snapshot: "snap-1".into() };
        let keep = Keep::default();
        let wanted = |size_gib| WorkspacePlan { size_gib, origin: origin(), keep, initialization_rate: Some(300) };
        let snapshot = |state: &str| BaseSnapshot { state: state.into(), size_gib: 50 };
        for (asked, made) in [(20, 50), (50, 50), (80, 80)] {
            let found = workspace(&wanted(asked), &[], &Base::Snapshot(Some(snapshot("completed"))));
            assert_eq!(found, Ok(wanted(made)));
        }
        for found in [None, Some(snapshot("pending")), Some(snapshot("error")), Some(snapshot("recoverable"))] {
            assert!(workspace(&wanted(20), &[], &Base::Snapshot(found.clone())).is_err(), "{found:?}");
        }
    }

    #[test]
    fn the_runner_of_the_instance_starts_every_command() {
        for (command, expected) in [
            ("/opt/spotsweep/spotsweep-runner -- python train.py", 2),
            ("spotsweep-runner -- --", 2),
            ("/opt/spotsweep/spotsweep-runner python train.py", 0),
            ("python train.py -- spotsweep-runner", 0),
            ("/opt/spotsweep-runner/start -- python", 0),
            ("", 0),
        ] {
            let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            assert_eq!(launcher(&command), &command[..expected]);
        }
    }

    #[test]
    fn the_newest_active_revision_is_pinned() {
        let arn = "arn:aws:batch:us-east-1:000000000000:job-definition/train";
        let revision = |revision, status: &str| {
            let (arn, status) = (format!("{arn}:{revision}"), status.into());
            Definition { arn, revision, status, ..Definition::default() }
        };
        let found = [revision(1, "ACTIVE"), revision(2, "ACTIVE"), revision(3, "INACTIVE")];
        for named in ["train", arn, &format!("{arn}:2")] {
            assert_eq!(definition(&found, named), Ok(&found[1]), "{named}");
        }
        let elsewhere = arn.replace("us-east-1", "eu-west-1");
        for (found, named) in [(&found[2..], "train:3"), (&[], "train"), (&found, &elsewhere)] {
            assert!(definition(found, named).is_err(), "{named}");
        }
    }

    #[test]
    fn the_queue_must_be_enabled() {
        let in_state = |state: &str| queue(Some(&Queue { state: state.into(), environments: Vec::new() }), "spot");
        assert_eq!(in_state("ENABLED"), Ok(()));
        assert!(in_state("DISABLED").is_err() && queue(None, "spot").is_err());
    }
}
