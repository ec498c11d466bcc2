//! Moves a workspace with real bytes to another zone. The tests do the part of the control plane and of the runner with
//! the SDK and a shell script.

use std::path::Path;
use std::time::Duration;

use aws_sdk_batch::types::JobStatus;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use aws_sdk_ec2::types::{
    AttachmentStatus, EbsInstanceBlockDevice, Filter, ResourceType, SnapshotState, Tag, TagSpecification,
    VolumeAttachmentState, VolumeState, VolumeType,
};
use spotsweep_emulator::Volumes;
use spotsweep_needs::{block_devices, met};

use crate::rig::{DEADLINE, Rig};

const A: &str = "us-east-1a";
const B: &str = "us-east-1b";

/// The runner's part: waits for the device, makes a file system on a blank one, mounts.
const MOUNT: &str = r#"
    set -e
    here=$SPOTSWEEP_ROOT/dltraining
    until [ -e "$device" ]; do sleep 0.01; done
    if [ -d "$device" ]; then ln -s "$device" "$here"; else
        mkdir "$here"
        blkid -p "$device" > /dev/null || mkfs.ext4 -q "$device"
        mount "$device" "$here"
    fi
    unmount() { if [ -L "$here" ]; then rm "$here"; else umount "$here"; fi; }
"#;
/// Adds a line to one file after the other, so that two of them never differ by more than one line. The large files
/// between them make a copy take some time. Like the runner's child, the writer is in a process group of its own.
const WRITE: &str = r#"
    for file in 1 2 3 4 5 6 7 8; do : > "$here/$file"; head -c 2000000 /dev/urandom > "$here/payload$file"; done
    touch -d 2020-02-02 "$here/payload1" && chmod 640 "$here/payload1"
    cat "$here"/payload* | sha256sum
    export here
    setsid sh -c '
        n=0
        until [ -e "$SPOTSWEEP_ROOT/stop" ]; do
            n=$((n+1)); for file in 1 2 3 4 5 6 7 8; do echo $n >> "$here/$file"; done
        done
    ' & wait $!
    sync; unmount
"#;
const READ: &str = r#"
    cat "$here"/payload* | sha256sum; stat -c '%a %Y' "$here/payload1"; for file in 1 2 3 4 5 6 7 8; do tail -n 1 "$here/$file"; done; sleep 60
"#;

fn script(volume: &str, rest: &str) -> String {
    let id = volume.replace('-', "");
    format!("device=$SPOTSWEEP_DEV/disk/by-id/nvme-Amazon_Elastic_Block_Store_{id}\n{MOUNT}\n{rest}")
}

fn tags(kind: ResourceType) -> TagSpecification {
    let tag = Tag::builder().key("spotsweep:sweep").value("s1").build();
    TagSpecification::builder().resource_type(kind).tags(tag).build()
}

async fn eventually<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, wait).await.is_ok(), "never: {what}");
}

impl Rig {
    async fn volume(&self, zone: &str, snapshot: Option<&str>, token: &str) -> String {
        let call = self.ec2.create_volume().availability_zone(zone).volume_type(VolumeType::Gp3).encrypted(true);
        let call = call.set_snapshot_id(snapshot.map(str::to_owned)).size(1).client_token(token);
        let call = call.set_volume_initialization_rate(snapshot.map(|_| 300));
        let volume = call.tag_specifications(tags(ResourceType::Volume)).send().await.unwrap();
        assert_eq!((volume.state(), volume.size()), (Some(&VolumeState::Creating), Some(1)));
        let id = volume.volume_id().unwrap().to_owned();
        eventually("available", || async { self.state(&id).await == VolumeState::Available }).await;
        id
    }

    async fn state(&self, volume: &str) -> VolumeState {
        let answer = self.ec2.describe_volumes().volume_ids(volume).send().await.unwrap();
        answer.volumes()[0].state().unwrap().clone()
    }

    async fn attachment(&self, volume: &str) -> Option<VolumeAttachmentState> {
        let answer = self.ec2.describe_volumes().volume_ids(volume).send().await.unwrap();
        answer.volumes()[0].attachments().first().map(|attachment| attachment.state().unwrap().clone())
    }

    /// Starts a job in this zone. Returns its id and its instance.
    async fn start(&self, zone: &str, script: &str) -> (String, String) {
        let other = if zone == A { B } else { A };
        self.emulator.with_world(|world, now| world.set_zone_capacity(other, Some(0), now));
        let job = self.submit(script, 1).await;
        let detail = self.wait_for(&job, JobStatus::Running).await;
        self.emulator.with_world(|world, now| world.set_zone_capacity(other, None, now));
        let arn = detail.container().unwrap().container_instance_arn().unwrap();
        let cluster = arn.split('/').nth(1).unwrap();
        let answer = self.ecs.describe_container_instances().cluster(cluster).container_instances(arn).send().await;
        let found = answer.unwrap().container_instances()[0].clone();
        let of = |name: &str| found.attributes().iter().find(|attribute| attribute.name() == name).unwrap().value();
        assert_eq!(of("ecs.availability-zone"), Some(zone));
        (job, found.ec2_instance_id().unwrap().to_owned())
    }

    async fn attach(&self, volume: &str, instance: &str, device: &str) {
        let call = self.ec2.attach_volume().volume_id(volume).instance_id(instance).device(device);
        assert_eq!(call.send().await.unwrap().state(), Some(&VolumeAttachmentState::Attaching));
        let attached = Some(VolumeAttachmentState::Attached);
        eventually("attached", || async { self.attachment(volume).await == attached }).await;
        assert_eq!(self.mapping(instance, device).await.volume_id(), Some(volume));
    }

    /// Returns what the instance shows of the volume at this device.
    async fn mapping(&self, instance: &str, device: &str) -> EbsInstanceBlockDevice {
        let hosts = self.ec2.describe_instances().instance_ids(instance).send().await.unwrap();
        let mappings = hosts.reservations()[0].instances()[0].block_device_mappings();
        let mapping = mappings.iter().find(|mapping| mapping.device_name() == Some(device)).unwrap();
        mapping.ebs().unwrap().clone()
    }

    async fn snapshot(&self, volume: &str) -> String {
        let call = self.ec2.create_snapshot().volume_id(volume).description("on the way");
        let made = call.tag_specifications(tags(ResourceType::Snapshot)).send().await.unwrap();
        assert_eq!((made.state(), made.volume_size()), (Some(&SnapshotState::Pending), Some(1)));
        let id = made.snapshot_id().unwrap().to_owned();
        eventually("completed", || async {
            let by_tag = Filter::builder().name("tag:spotsweep:sweep").values("s1").build();
            let found = self.ec2.describe_snapshots().owner_ids("self").filters(by_tag).send().await.unwrap();
            let found = found.snapshots().iter().find(|snapshot| snapshot.snapshot_id() == Some(&id)).unwrap();
            found.state() == Some(&SnapshotState::Completed) && found.progress() == Some("100%")
        })
        .await;
        id
    }

    /// Returns the lines that a job has printed, once there are `count`.
    async fn lines(&self, job: &str, count: usize) -> Vec<String> {
        let stream = self.job(job).await.container().unwrap().log_stream_name().unwrap().to_owned();
        let read = || self.log(&stream).lines().map(str::to_owned).collect::<Vec<_>>();
        eventually("the job's output", || async { read().len() >= count }).await;
        read()
    }

    /// Makes a volume, and starts a job that mounts it and writes to it.
    async fn writer(&self, device: &str) -> (String, String) {
        let volume = self.volume(A, None, device).await;
        let (job, host) = self.start(A, &script(&volume, WRITE)).await;
        self.attach(&volume, &host, device).await;
        self.lines(&job, 1).await;
        (volume, job)
    }

    fn root(&self, job: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("work/attempts/{job}-0-1"))
    }
}

async fn migrate(volumes: Volumes) {
    let rig = Rig::with(volumes).await;
    let source = rig.volume(A, None, "first").await;
    let (job, host) = rig.start(A, &script(&source, WRITE)).await;
    rig.attach(&source, &host, "/dev/sdf").await;
    let hash = rig.lines(&job, 1).await[0].clone();
    // The job goes on writing meanwhile.
    tokio::time::sleep(Duration::from_millis(500)).await;

    // The snapshot has the content at the request, although the job writes.
    let during = rig.snapshot(&source).await;
    let detach = rig.ec2.detach_volume().volume_id(&source).instance_id(&host);
    detach.send().await.unwrap();
    let busy = Some(VolumeAttachmentState::Busy);
    eventually("busy", || async { rig.attachment(&source).await == busy }).await;
    assert_eq!(rig.mapping(&host, "/dev/sdf").await.status(), Some(&AttachmentStatus::Detaching));
    std::fs::write(rig.root(&job).join("stop"), "").unwrap();
    eventually("detached", || async { rig.state(&source).await == VolumeState::Available }).await;
    rig.wait_for(&job, JobStatus::Succeeded).await;
    rig.emulator.with_world(|world, now| world.reclaim(&host, None, now)).unwrap();
    let end = rig.snapshot(&source).await;
    rig.ec2.delete_volume().volume_id(&source).send().await.unwrap();
    let gone = || async { rig.ec2.describe_volumes().volume_ids(&source).send().await };
    eventually("gone", || async { gone().await.is_err_and(|e| e.code() == Some("InvalidVolume.NotFound")) }).await;
    assert!(!rig.emulator.volume_path(&source).exists());

    let (mut volumes, mut reached) = (Vec::new(), Vec::new());
    for (snapshot, token) in [(&during, "second"), (&end, "third")] {
        let copy = rig.volume(B, Some(snapshot), token).await;
        let (job, host) = rig.start(B, &script(&copy, READ)).await;
        rig.attach(&copy, &host, "/dev/sdf").await;
        let lines = rig.lines(&job, 10).await;
        assert_eq!((&lines[0], lines[1].as_str()), (&hash, "640 1580601600"), "bytes, rights and times");
        let counts: Vec<u64> = lines[2..].iter().map(|line| line.parse().unwrap()).collect();
        assert!(counts[0] - counts[7] <= 1 && counts.is_sorted_by(|a, b| a >= b), "one moment: {counts:?}");
        reached.push(counts[0]);
        let device = rig.emulator.volume_path(&copy);
        rig.emulator.with_world(|world, now| world.reclaim(&host, None, now)).unwrap();
        eventually("let go", || async { rig.state(&copy).await == VolumeState::Available }).await;
        assert!(device.exists(), "what was attached later survives the instance (fact 28)");
        volumes.push(copy);
    }
    assert!(reached[0] < reached[1], "{reached:?}");
    for id in &volumes {
        rig.ec2.delete_volume().volume_id(id).send().await.unwrap();
    }
    for id in [&during, &end] {
        rig.ec2.delete_snapshot().snapshot_id(id).send().await.unwrap();
    }
    let left = &rig.emulator.snapshot()["leftovers"];
    assert_eq!(left, &serde_json::json!({"volumes": [], "snapshots": [], "attachments": []}));
    let work = rig.folder.path().join("work");
    eventually("no bytes left", || async { is_empty(&work.join("volumes")) && is_empty(&work.join("snapshots")) })
        .await;
    rig.emulator.shutdown().await;
    assert!(!has_device(&work));
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Whether a mount or a loop device still refers to this folder.
fn has_device(work: &Path) -> bool {
    let work = work.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let images = std::fs::read_dir("/sys/block").unwrap().flatten();
    let mut images = images.map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")));
    mounts.contains(work) || images.any(|image| image.is_ok_and(|image| image.contains(work)))
}

#[tokio::test]
async fn a_folder_moves_to_another_zone() {
    migrate(Volumes::Directories).await;
}

#[tokio::test]
async fn a_block_device_with_a_file_system_moves_to_another_zone() {
    if met(block_devices()) {
        migrate(Volumes::BlockDevices).await;
    }
}

/// Starts two jobs that write to their mounted volumes, and returns each volume and job.
async fn two_writers() -> (Rig, [(String, String); 2]) {
    let rig = Rig::with(Volumes::BlockDevices).await;
    let writers = [rig.writer("/dev/sdf").await, rig.writer("/dev/sdg").await];
    (rig, writers)
}

/// These are all ways to remove a volume from a running job.
#[tokio::test]
async fn nothing_stays_mounted_or_attached() {
    if !met(block_devices()) {
        return;
    }
    let (rig, [(volume, job), _]) = two_writers().await;
    let work = rig.folder.path().join("work");
    assert!(has_device(&work));
    rig.ec2.detach_volume().volume_id(&volume).force(true).send().await.unwrap();
    eventually("forced off", || async { rig.state(&volume).await == VolumeState::Available }).await;
    rig.wait_for(&job, JobStatus::Failed).await;
    rig.emulator.shutdown().await;
    assert!(!has_device(&work), "after the shutdown");

    let (rig, _) = two_writers().await;
    let work = rig.folder.path().join("work");
    assert!(has_device(&work));
    drop(rig.emulator);
    eventually("no device after a drop", || async { !has_device(&work) }).await;
}

#[tokio::test]
async fn errors_of_ebs_reach_the_sdk_with_their_codes() {
    let rig = Rig::new().await;
    let volume = rig.volume(A, None, "one").await;
    let (_, host) = rig.start(B, "sleep 60").await;
    let attach = rig.ec2.attach_volume().volume_id(&volume).instance_id(&host).device("/dev/sdf").send().await;
    assert_eq!(attach.unwrap_err().code(), Some("InvalidVolume.ZoneMismatch"));
    let again = rig.ec2.create_volume().availability_zone(A).size(2).client_token("one").send().await;
    assert_eq!(again.unwrap_err().code(), Some("IdempotentParameterMismatch"));
    let wrong = rig.ec2.create_snapshot().volume_id(&volume).tag_specifications(tags(ResourceType::Volume));
    assert_eq!(wrong.send().await.unwrap_err().code(), Some("InvalidParameterValue"));
    let other = rig.ec2.create_volume().availability_zone(A).size(1).iops(4000).send().await;
    assert_eq!(other.unwrap_err().code(), Some("UnsupportedOperation"));
    let tag = Tag::builder().key("Name").value("mine").build();
    rig.ec2.create_tags().resources(&volume).resources(&host).tags(tag).send().await.unwrap();
    let by_name = Filter::builder().name("tag:Name").values("m*").build();
    let found = rig.ec2.describe_volumes().filters(by_name.clone()).max_results(5).send().await.unwrap();
    assert_eq!(found.volumes()[0].volume_id(), Some(volume.as_str()));
    let found = rig.ec2.describe_instances().filters(by_name).send().await.unwrap();
    assert_eq!(found.reservations().len(), 1);
    let other = rig.ecs.describe_container_instances().cluster("none").container_instances("x").send().await;
    assert!(other.unwrap_err().as_service_error().unwrap().is_cluster_not_found_exception());
    let other = rig.ecs.list_clusters().send().await;
    assert_eq!(other.unwrap_err().code(), Some("UnknownOperationException"));
    rig.emulator.shutdown().await;
}
