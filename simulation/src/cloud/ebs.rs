//! EC2 and ECS, with the calls that the AWS executor makes.

use serde_json::{Value, json};
use spotsweep_control_plane::event::TrialRequest;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::workspace::{
    Call, Fact, NewVolume, OPERATION_TAG, Refusal, RefusalKind, SWEEP_TAG, SnapshotState, TRIAL_TAG, TrialRef,
    VolumeState, is_denied,
};
use spotsweep_protocol::claim::Task;
use spotsweep_world::ebs::{self, AttachVolume, CreateSnapshot, CreateVolume, DetachVolume, Tags};
use spotsweep_world::{ApiError, Filter, InstanceState, Selection, World};

use super::answer::NoAnswer;
use super::{Cloud, Executed};
use crate::injected_bug::InjectedBug;

impl Cloud {
    pub(super) async fn ebs(&self, trial: TrialRef, mut call: Call) -> Executed {
        if let Some(fact) = self.spoil(&trial, &mut call) {
            return Ok(vec![Outcome::Workspace(trial, fact)]);
        }
        let fact = match call {
            Call::CreateVolume(new) => {
                let facts = self.create_volume(&trial, new).await?;
                return Ok(facts.into_iter().map(|fact| Outcome::Workspace(trial.clone(), fact)).collect());
            }
            Call::FindVolume { operation } => self.find_volume(&trial, operation).await?,
            Call::DescribeVolume(id) | Call::AwaitDetached(id) => self.describe_volume(id).await?,
            Call::AttachVolume { volume, instance, device } => self.attach_volume(volume, instance, device).await?,
            Call::DetachVolume { volume, force } => {
                let request = DetachVolume { volume: volume.clone(), instance: None, device: None, force };
                match self.ec2("DetachVolume", |world| world.detach_volume(&request)).await? {
                    Ok(attachment) => {
                        let state = VolumeState::InUse { instance: attachment.instance, steady: false };
                        Fact::Volume { operation: None, id: volume, state }
                    }
                    Err(error) => match self.settled(volume, error).await? {
                        // Described as attached all the same: the answer lags behind.
                        Fact::Volume { operation, id, state: VolumeState::InUse { instance, .. } } => {
                            Fact::Volume { operation, id, state: VolumeState::InUse { instance, steady: false } }
                        }
                        fact => fact,
                    },
                }
            }
            Call::DeleteVolume(id) => match self.ec2("DeleteVolume", |world| world.delete_volume(&id)).await? {
                Ok(()) => Fact::Deleted(id),
                Err(error) => self.settled(id, error).await?,
            },
            Call::TakeSnapshot { operation, volume, .. } => self.take_snapshot(&trial, operation, volume).await?,
            Call::FindSnapshot { operation } => {
                let wanted = Selection {
                    filters: vec![Filter::new("tag:spotsweep:operation", format!("{trial}/{operation}"))],
                    ..Selection::default()
                };
                let found = self.ec2("DescribeSnapshots", |world| snapshots(world, &wanted)).await?;
                match found?.pop() {
                    Some((id, state)) => Fact::Snapshot { operation: Some(operation), id, state },
                    None => Fact::SnapshotNotFound { operation },
                }
            }
            Call::DescribeSnapshot(id) => {
                let wanted = Selection { ids: vec![id.clone()], ..Selection::default() };
                let found = self.ec2("DescribeSnapshots", |world| snapshots(world, &wanted)).await?;
                match found {
                    Ok(mut found) => {
                        let (id, state) = found.pop().ok_or("no snapshot in the answer")?;
                        Fact::Snapshot { operation: None, id, state }
                    }
                    Err(error) if error.code != "InvalidSnapshot.NotFound" => return Err(error.into()),
                    Err(_) => Fact::Missing(id),
                }
            }
            Call::DeleteSnapshot(id) => {
                let deleted = self.ec2("DeleteSnapshot", |world| world.delete_snapshot(&id)).await?;
                match deleted {
                    Ok(()) => Fact::Deleted(id),
                    Err(error) if error.code == "InvalidSnapshot.NotFound" => Fact::Missing(id),
                    Err(error) if is_denied(error.code) && self.is_denied_done() => Fact::Deleted(id),
                    Err(error) if is_denied(error.code) && !self.has_snapshot(&id).await? => Fact::Missing(id),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        Ok(vec![Outcome::Workspace(trial, fact)])
    }

    /// A volume on which a call has been refused: it is looked at, and what is denied on one that is there is an error.
    async fn settled(&self, id: String, error: ApiError) -> Result<Fact, NoAnswer> {
        let fact = self.describe_volume(id.clone()).await?;
        match is_denied(error.code) && !matches!(fact, Fact::Missing(_)) {
            true if self.is_denied_done() => Ok(Fact::Deleted(id)),
            true => Err(error.into()),
            false => Ok(fact),
        }
    }

    async fn has_snapshot(&self, id: &str) -> Result<bool, NoAnswer> {
        let wanted = Selection { ids: vec![id.to_owned()], ..Selection::default() };
        Ok(self.ec2("DescribeSnapshots", |world| snapshots(world, &wanted)).await?.is_ok())
    }

    /// With the defect planted: what may not be deleted counts as deleted.
    fn is_denied_done(&self) -> bool {
        self.injected_bug() == Some(InjectedBug::ForgetDenied)
    }

    async fn create_volume(&self, trial: &TrialRef, new: NewVolume) -> Result<Vec<Fact>, NoAnswer> {
        let operation = new.operation;
        let token = format!("{trial}/{operation}");
        let mut tags = tags(trial, operation);
        tags.0.extend(new.name.map(|name| ("Name".to_owned(), name)));
        let snapshot = new.snapshot.as_deref();
        let loaded = snapshot.and_then(|id| self.world().snapshot_of(id).map(ebs::Snapshot::full_bytes));
        let billed = loaded.filter(|_| new.initialization_rate.is_some());
        let request = CreateVolume {
            zone: new.zone,
            size_gib: Some(new.size_gib),
            snapshot: new.snapshot,
            initialization_rate: new.initialization_rate,
            volume_type: Some("gp3".into()),
            client_token: Some(token),
            tags,
            ..CreateVolume::default()
        };
        Ok(match self.ec2("CreateVolume", |world| world.create_volume(request)).await? {
            Ok(volume) => {
                let made = Fact::Volume { operation: Some(operation), id: volume.id.clone(), state: state(&volume) };
                let rate = billed.map(|bytes| Fact::RateTaken { operation, bytes });
                [Some(made), rate].into_iter().flatten().collect()
            }
            // An earlier call with this token may have made one, and its answer was lost.
            Err(error) => vec![match self.find_volume(trial, operation).await? {
                Fact::VolumeNotFound { operation } => self.refused(RefusalKind::Volume { operation }, &error),
                found => found,
            }],
        })
    }

    async fn find_volume(&self, trial: &TrialRef, operation: u32) -> Result<Fact, NoAnswer> {
        let wanted = Selection {
            filters: vec![Filter::new("tag:spotsweep:operation", format!("{trial}/{operation}"))],
            ..Selection::default()
        };
        let found = self.ec2("DescribeVolumes", |world| {
            let (found, _) = world.describe_volumes(&wanted)?;
            Ok(found.first().map(|volume| (volume.id.clone(), state(volume))))
        });
        let found = found.await??;
        Ok(match found.filter(|(_, state)| *state != VolumeState::Absent) {
            Some((id, state)) => Fact::Volume { operation: Some(operation), id, state },
            None => Fact::VolumeNotFound { operation },
        })
    }

    async fn describe_volume(&self, id: String) -> Result<Fact, NoAnswer> {
        if self.injected_bug() == Some(InjectedBug::AskAgainAndAgain) {
            for _ in 0..50 {
                let _ = self.ec2("DescribeVolumes", |world| Ok(world.volume(&id).is_some())).await?;
            }
        }
        let wanted = Selection { ids: vec![id.clone()], ..Selection::default() };
        let found = self
            .ec2("DescribeVolumes", |world| {
                let (found, _) = world.describe_volumes(&wanted)?;
                Ok(found.first().map(|volume| state(volume)))
            })
            .await?;
        Ok(match found {
            Ok(Some(state)) => Fact::Volume { operation: None, id, state },
            // Whoever cannot look does not know that it is gone.
            Err(error) if error.code != "InvalidVolume.NotFound" => return Err(error.into()),
            Ok(None) | Err(_) => Fact::Missing(id),
        })
    }

    async fn attach_volume(&self, volume: String, instance: String, device: String) -> Result<Fact, NoAnswer> {
        let request = AttachVolume { volume: volume.clone(), instance: instance.clone(), device };
        match self.ec2("AttachVolume", |world| world.attach_volume(&request)).await? {
            Ok(attachment) => {
                let steady = attachment.state == ebs::AttachmentState::Attached;
                let state = VolumeState::InUse { instance: attachment.instance, steady };
                Ok(Fact::Volume { operation: None, id: volume, state })
            }
            Err(error) => Ok(match error.code {
                code @ ("VolumeInUse" | "IncorrectState" | "InvalidVolume.NotFound" | "UnauthorizedOperation") => {
                    let fact = self.describe_volume(volume.clone()).await?;
                    let is_free = matches!(fact, Fact::Volume { state: VolumeState::Available, .. });
                    // The code is the same where it is not the volume but the instance that is in the wrong state, or
                    // gone.
                    if !is_free {
                        return Ok(fact);
                    }
                    let may_be_the_instance = code == "IncorrectState" || is_denied(code);
                    let is_leaving = may_be_the_instance && self.is_leaving(&instance).await?;
                    if !is_leaving && !is_denied(code) {
                        // Described as available all the same: the answer lags behind.
                        return Ok(Fact::Volume { operation: None, id: volume, state: VolumeState::Unknown });
                    }
                    match self.refused(RefusalKind::Instance { volume }, &error) {
                        Fact::Refused(refusal) if is_leaving => Fact::Refused(Refusal { lasts: false, ..refusal }),
                        refused => refused,
                    }
                }
                "InvalidParameterValue" if error.message.contains("already in use") => {
                    self.refused(RefusalKind::DeviceTaken { volume }, &error)
                }
                _other => self.refused(RefusalKind::Instance { volume }, &error),
            }),
        }
    }

    /// Whether an instance is gone or going.
    async fn is_leaving(&self, instance: &str) -> Result<bool, NoAnswer> {
        let found = self.ec2("DescribeInstances", |world| Ok(world.instance(instance).map(|found| found.state)));
        let state = found.await??;
        Ok(!matches!(state, Some(InstanceState::Pending | InstanceState::Running)))
    }

    async fn take_snapshot(&self, trial: &TrialRef, operation: u32, volume: String) -> Result<Fact, NoAnswer> {
        let request =
            CreateSnapshot { volume: volume.clone(), description: String::new(), tags: tags(trial, operation) };
        Ok(match self.ec2("CreateSnapshot", |world| world.create_snapshot(request)).await? {
            Ok(snapshot) => {
                Fact::Snapshot { operation: Some(operation), id: snapshot.id, state: SnapshotState::Pending }
            }
            Err(error) => {
                let may_be_gone = error.code == "InvalidVolume.NotFound" || is_denied(error.code);
                let volume = if may_be_gone { Some(self.describe_volume(volume).await?) } else { None };
                match volume {
                    Some(missing @ Fact::Missing(_)) => missing,
                    Some(_) | None => self.refused(RefusalKind::Snapshot { operation }, &error),
                }
            }
        })
    }

    fn refused(&self, kind: RefusalKind, error: &ApiError) -> Fact {
        let lasts = match self.injected_bug() {
            Some(InjectedBug::TakeAllForPassing) => false,
            Some(InjectedBug::TakeAllForLasting) => true,
            Some(_) | None => kind.lasts(error.code),
        };
        Fact::Refused(Refusal { kind, code: error.code.to_owned(), message: error.message.clone(), lasts })
    }

    pub(super) async fn locate(&self, trial: TrialRef, attempt: u32, container_instance: &str) -> Executed {
        let cluster = container_instance.rsplit('/').nth(1).unwrap_or_default();
        let request =
            serde_json::from_value(json!({ "cluster": cluster, "containerInstances": [container_instance] }))?;
        let found =
            self.calls.call("DescribeContainerInstances", || self.world().describe_container_instances(&request));
        let found = found.await??;
        let host = &found["containerInstances"][0];
        let zone = host["attributes"].as_array().into_iter().flatten();
        let zone = zone.filter(|attribute| attribute["name"] == "ecs.availability-zone");
        let zone = zone.filter_map(|attribute| attribute["value"].as_str()).next();
        Ok(vec![match (host["ec2InstanceId"].as_str(), zone) {
            (Some(instance), Some(zone)) => {
                let (instance, zone) = (instance.to_owned(), zone.to_owned());
                Outcome::AttemptLocated { trial, attempt, instance, zone }
            }
            _ => Outcome::Workspace(trial, Fact::PlaceUnknown),
        }])
    }

    pub(super) async fn find_gpus(&self, request: TrialRequest, task: &Task) -> Executed {
        let cluster = task.arn.rsplit('/').nth(1).unwrap_or_default();
        let described = serde_json::from_value(json!({ "cluster": cluster, "tasks": [task.arn] }))?;
        let found = self.calls.call("DescribeTasks", || self.world().describe_tasks(&described)).await??;
        let mut containers = found["tasks"][0]["containers"].as_array().into_iter().flatten();
        let own = containers.find(|container| container["name"] == task.container.as_str());
        let uuids = |own: &Value| {
            let uuids = own["gpuIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
            uuids.map(str::to_owned).collect()
        };
        let gpus = own.map(uuids);
        Ok(vec![Outcome::GpusFound { request, gpus }])
    }
}

fn tags(trial: &TrialRef, operation: u32) -> Tags {
    let operation = format!("{trial}/{operation}");
    let index = trial.index.to_string();
    Tags::from([(SWEEP_TAG, trial.sweep.as_str()), (TRIAL_TAG, index.as_str()), (OPERATION_TAG, operation.as_str())])
}

fn state(volume: &ebs::Volume) -> VolumeState {
    match (&volume.attachment, volume.state) {
        (Some(attachment), _) => VolumeState::InUse {
            instance: attachment.instance.clone(),
            steady: attachment.state == ebs::AttachmentState::Attached,
        },
        (None, ebs::VolumeState::Creating) => VolumeState::Creating,
        (None, ebs::VolumeState::Available | ebs::VolumeState::InUse) => VolumeState::Available,
        (None, ebs::VolumeState::Deleting) => VolumeState::Absent,
        (None, ebs::VolumeState::Error) => VolumeState::Error,
    }
}

fn snapshots(world: &mut World, wanted: &Selection) -> Result<Vec<(String, SnapshotState)>, ApiError> {
    let (found, _) = world.describe_snapshots(wanted)?;
    let state = |snapshot: &&ebs::Snapshot| match snapshot.state {
        ebs::SnapshotState::Pending => SnapshotState::Pending,
        ebs::SnapshotState::Completed => SnapshotState::Completed,
        ebs::SnapshotState::Error => SnapshotState::Failed,
    };
    Ok(found.iter().map(|snapshot| (snapshot.id.clone(), state(snapshot))).collect())
}
