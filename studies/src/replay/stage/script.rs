//! The published AWS post, without its worst defects. While the instance boots, it does everything itself that a
//! volume needs to change zones, step by step (fact 46). These properties are kept: no use of the notice, a snapshot
//! that is begun only when the new instance exists, no initialization rate, and snapshots that are never deleted. One
//! property is changed: the post's waiter gives up after ten minutes, and its script then deletes the volume. Here the
//! waiter has no limit.

use std::time::Duration;

use spotsweep_world::ebs::{AttachVolume, AttachmentState, CreateSnapshot, CreateVolume};
use spotsweep_world::ebs::{SnapshotState, Tags, VolumeState};
use spotsweep_world::{ApiError, Failure, Service, World};

use super::super::agent::{Agent, Doing, Errand, Fetch, Next};
use super::Stage;

/// The time of one `aws` command, because the CLI starts an interpreter.
const COMMAND: Duration = Duration::from_secs(1);

/// The period in which `aws ec2 wait` polls (botocore's waiters for snapshots and volumes).
const WAIT: Duration = Duration::from_secs(15);

/// The script's `sleep 10` after attach-volume.
const SLEEP: Duration = Duration::from_secs(10);

const DEVICE: &str = "/dev/sdf";

fn name(trial: u32) -> String {
    format!("DL-datasets-checkpoints-{trial}")
}

impl Stage<'_> {
    /// Makes a volume with the dataset for each trial, in the zones in turn. In the post this is the first step, done
    /// by hand before the sweep.
    pub(super) fn prepare_volumes(&mut self, snapshot: &str) -> Result<(), String> {
        for trial in 0..self.plan.trials {
            let zone = self.plan.zones[trial as usize % self.plan.zones.len()].clone();
            let request = new_volume(trial, zone, snapshot);
            self.ec2("CreateVolume", |world| world.create_volume(request))?;
        }
        Ok(())
    }

    pub(super) fn run_errand(&mut self, agent: &mut Agent, errand: Errand) -> Result<Next, String> {
        let (next, wait) = match errand {
            Errand::Find => self.find(agent)?,
            Errand::Snapshot { snapshot, volume } => {
                let state = self.ec2("DescribeSnapshots", |world| Ok(world.snapshot_of(&snapshot).map(|s| s.state)))?;
                match state {
                    Some(SnapshotState::Completed) => self.copy(agent, &snapshot, &volume)?,
                    Some(SnapshotState::Pending) => (Errand::Snapshot { snapshot, volume }, WAIT),
                    Some(SnapshotState::Error) | None => (Errand::Find, COMMAND),
                }
            }
            Errand::Volume { volume } => {
                let state =
                    self.ec2("DescribeVolumes", |world| Ok(world.volume(&volume).map(|volume| volume.state)))?;
                match state {
                    Some(VolumeState::Available) => (Errand::Attach { volume }, COMMAND),
                    Some(_) => (Errand::Volume { volume }, WAIT),
                    None => return Err(format!("trial {}: {volume} is gone", agent.trial)),
                }
            }
            Errand::Attach { volume } => {
                let request =
                    AttachVolume { volume: volume.clone(), instance: agent.instance.clone(), device: DEVICE.into() };
                self.ec2("AttachVolume", |world| world.attach_volume(&request))?;
                (Errand::Mount { volume }, SLEEP)
            }
            Errand::Mount { volume } => {
                let attached = self.harness.cloud.world().volume(&volume).is_some_and(|volume| {
                    volume.attachment.as_ref().is_some_and(|found| found.state == AttachmentState::Attached)
                });
                if attached {
                    agent.volume = Some(volume);
                    let (from, reading) = self.mount(agent)?;
                    agent.doing = Doing::Fetching(Fetch::Loading { from });
                    return Ok(Next::After(if from > 0.0 { reading } else { Duration::ZERO }));
                }
                (Errand::Mount { volume }, COMMAND)
            }
        };
        agent.doing = Doing::Fetching(Fetch::Script(next));
        Ok(Next::After(wait))
    }

    fn find(&mut self, agent: &Agent) -> Result<(Errand, Duration), String> {
        let wanted = name(agent.trial);
        let found = self.ec2("DescribeVolumes", |world| {
            let named = |tags: &Tags| tags.0.get("Name").is_some_and(|name| *name == wanted);
            let found = world.volumes().find(|volume| named(&volume.tags) && volume.state != VolumeState::Deleting);
            Ok(found.map(|volume| (volume.id.clone(), volume.zone.clone(), volume.state)))
        })?;
        // This is the second describe-volumes, for the zone.
        self.ledger.called(1);
        let (volume, zone, state) = found.ok_or_else(|| format!("trial {} has no volume", agent.trial))?;
        if state != VolumeState::Available {
            // The previous instance is still shutting down.
            return Ok((Errand::Find, WAIT));
        }
        if zone == agent.zone {
            return Ok((Errand::Attach { volume }, 3 * COMMAND));
        }
        let request = CreateSnapshot { volume: volume.clone(), ..CreateSnapshot::default() };
        let snapshot = self.ec2("CreateSnapshot", |world| world.create_snapshot(request))?.id;
        Ok((Errand::Snapshot { snapshot, volume }, 3 * COMMAND))
    }

    /// Deletes the old volume, and makes a new one in this zone.
    fn copy(&mut self, agent: &Agent, snapshot: &str, old: &str) -> Result<(Errand, Duration), String> {
        self.ec2("DeleteVolume", |world| world.delete_volume(old))?;
        let request = new_volume(agent.trial, agent.zone.clone(), snapshot);
        let volume = self.ec2("CreateVolume", |world| world.create_volume(request))?.id;
        Ok((Errand::Volume { volume }, 2 * COMMAND))
    }

    /// Ends a completed training: the volume is deleted by hand, and its snapshots remain.
    pub(super) fn clean_up(&mut self, agent: &mut Agent) -> Result<Next, String> {
        let volume = agent.volume.clone().ok_or("an end without a volume")?;
        let request = spotsweep_world::ebs::DetachVolume { volume, instance: None, device: None, force: false };
        self.ec2("DetachVolume", |world| world.detach_volume(&request))?;
        self.discarded.push(request.volume);
        Ok(Next::Exit(0))
    }

    /// Deletes the volumes of finished trials as soon as they are detached.
    pub(super) fn discard(&mut self) -> Result<(), String> {
        for volume in std::mem::take(&mut self.discarded) {
            let state = self.harness.cloud.world().volume(&volume).map(|volume| volume.state);
            match state {
                Some(VolumeState::Available) => self.ec2("DeleteVolume", |world| world.delete_volume(&volume))?,
                Some(_) => self.discarded.push(volume),
                None => {}
            }
        }
        Ok(())
    }

    /// Makes one call of the script. The model refuses none of them.
    fn ec2<T>(&mut self, action: &str, effect: impl FnOnce(&mut World) -> Result<T, ApiError>) -> Result<T, String> {
        self.ledger.called(1);
        let now = self.harness.now;
        let answer = self.harness.cloud.world().call(Service::Ec2, action, now, effect);
        answer.map_err(|failure| match failure {
            Failure::Api(error) => format!("{action}: {error}"),
            Failure::Dropped => format!("{action}: no answer"),
        })
    }
}

fn new_volume(trial: u32, zone: String, snapshot: &str) -> CreateVolume {
    CreateVolume {
        zone,
        snapshot: Some(snapshot.to_owned()),
        // The post uses gp2, whose throughput and price are slightly worse.
        volume_type: Some("gp3".into()),
        tags: Tags::from([("Name", name(trial).as_str())]),
        ..CreateVolume::default()
    }
}
