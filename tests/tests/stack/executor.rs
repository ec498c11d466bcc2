//! Executes commands for workspaces with the SDKs, against the emulator's EC2 and ECS.

mod disks;
mod images;
mod instances;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use spotsweep_aws::{ebs, ecs, targets};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::decide::target;
use spotsweep_control_plane::execute::Services;
use spotsweep_control_plane::handle::Executor;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_emulator::{Config, Emulator};
use spotsweep_protocol::ids::{JobName, Run, SweepId};
use spotsweep_records::sweep::Prepared;
use spotsweep_records::workspace::{Call, Fact, NewVolume, Refusal, RefusalKind, SnapshotState, TrialRef, VolumeState};
use spotsweep_sweep_file::parse;
use spotsweep_tests::local::config;
use spotsweep_world::{InstanceState, Service, Trouble};

fn on_workspace(of: &TrialRef, call: Call) -> Command {
    Command::Workspace { of: of.clone(), call }
}

/// An emulator with one running instance, and an executor that uses it.
struct Rig {
    emulator: Emulator,
    executor: Services<'static>,
    trial: TrialRef,
    instance: String,
    zone: String,
    container_instance: String,
    _folder: tempfile::TempDir,
}

impl Rig {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let emulator = Emulator::serve(Config::new(folder.path().to_owned())).await.unwrap();
        let environment = json!({ "computeEnvironmentName": "spot", "type": "MANAGED", "computeResources": {
            "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 2, "maxvCpus": 2, "instanceTypes": ["c7i.large"],
            "subnets": ["subnet-us-east-1a", "subnet-us-east-1b"] } });
        let request = serde_json::from_value(environment).unwrap();
        emulator.with_world(|world, _| world.create_compute_environment(request)).unwrap();
        let config = config(&emulator.endpoint());
        let executor = Services::default().reaching(ebs(&config)).reaching(ecs(&config));
        let trial = TrialRef { sweep: SweepId::derive("b", "sweeps/k.yaml", "v"), index: 7 };
        let (instance, zone, container_instance) = loop {
            let running = emulator.with_world(|world, _| {
                let mut running = world.instances().filter(|instance| instance.state == InstanceState::Running);
                running.next().map(|one| (one.id.clone(), one.zone.clone(), one.container_instance_arn.clone()))
            });
            match running {
                Some(running) => break running,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        Self { emulator, executor, trial, instance, zone, container_instance, _folder: folder }
    }

    /// Makes a queue, and so many revisions of a job definition.
    fn define(&self, revisions: usize) {
        let order = json!([{ "order": 1, "computeEnvironment": "spot" }]);
        let queue = json!({ "jobQueueName": "queue", "priority": 1, "computeEnvironmentOrder": order });
        let needs = json!([{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }]);
        let container = json!({ "image": "train:1", "command": ["sleep", "60"], "resourceRequirements": needs });
        let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
        self.emulator.with_world(|world, _| {
            world.create_job_queue(serde_json::from_value(queue).unwrap()).unwrap();
            for _ in 0..revisions {
                world.register_job_definition(serde_json::from_value(definition.clone()).unwrap()).unwrap();
            }
        });
    }

    /// Submits the trial's job, and returns its id.
    fn submit(&self) -> String {
        self.define(1);
        let name = JobName { sweep: self.trial.sweep.clone(), run: Run::Part(0) }.to_string();
        let job = json!({ "jobName": name, "jobQueue": "queue", "jobDefinition": "train" });
        let job = self.emulator.with_world(|world, _| world.submit_job(serde_json::from_value(job).unwrap()).unwrap());
        job["jobId"].as_str().unwrap().to_owned()
    }

    fn trouble(&self, change: impl FnOnce(&mut Trouble)) {
        self.emulator.with_world(|world, _| change(world.trouble_mut()));
    }

    async fn ask(&self, call: Call) -> Fact {
        let mut events = self.executor.execute(on_workspace(&self.trial, call)).await.unwrap();
        match events.remove(0) {
            Outcome::Workspace(trial, fact) if trial == self.trial => fact,
            other => panic!("{other:?}"),
        }
    }

    async fn until(&self, call: Call, holds: impl Fn(&Fact) -> bool) {
        for _ in 0..100 {
            if holds(&self.ask(call.clone()).await) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never: {call:?}");
    }

    async fn volume(&self, operation: u32, zone: &str, snapshot: Option<&str>) -> String {
        id(self.ask(new(operation, zone, snapshot)).await)
    }

    async fn available(&self, volume: &str) {
        self.until(Call::DescribeVolume(volume.into()), |fact| is(fact, &VolumeState::Available)).await;
    }

    fn attach(&self, volume: &str, device: &str) -> Call {
        Call::AttachVolume { volume: volume.into(), instance: self.instance.clone(), device: device.into() }
    }

    async fn end(self) {
        let left = self.emulator.with_world(|world, _| world.leftovers());
        assert!(left.is_empty(), "{left:?}");
        self.emulator.shutdown().await;
    }
}

fn new(operation: u32, zone: &str, snapshot: Option<&str>) -> Call {
    at_rate(operation, zone, snapshot, None)
}

fn at_rate(operation: u32, zone: &str, snapshot: Option<&str>, initialization_rate: Option<u32>) -> Call {
    let snapshot = snapshot.map(str::to_owned);
    let zone = zone.to_owned();
    Call::CreateVolume(NewVolume { operation, zone, size_gib: 1, snapshot, name: None, initialization_rate })
}

fn id(fact: Fact) -> String {
    match fact {
        Fact::Volume { id, .. } | Fact::Snapshot { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

fn is(fact: &Fact, wanted: &VolumeState) -> bool {
    matches!(fact, Fact::Volume { state, .. } if state == wanted)
}

fn refused(fact: &Fact) -> Option<&RefusalKind> {
    match fact {
        Fact::Refused(Refusal { kind, .. }) => Some(kind),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_made_once_seen_late_and_deleted() {
    let rig = Rig::new().await;
    rig.trouble(|trouble| trouble.visible_after_ms = 1000);
    let volume = rig.volume(1, &rig.zone, None).await;
    assert_eq!(rig.volume(1, &rig.zone, None).await, volume, "the token gives the same one");
    assert_eq!(rig.ask(Call::DescribeVolume(volume.clone())).await, Fact::Missing(volume.clone()), "not yet visible");
    assert_eq!(rig.ask(Call::DeleteVolume(volume.clone())).await, Fact::Missing(volume.clone()), "and not deleted");
    rig.trouble(|trouble| trouble.visible_after_ms = 0);
    rig.available(&volume).await;
    assert_eq!(rig.ask(Call::DeleteVolume(volume.clone())).await, Fact::Deleted(volume));

    rig.trouble(|trouble| trouble.failing_volumes = 1);
    let failing = rig.volume(2, &rig.zone, None).await;
    rig.until(Call::DescribeVolume(failing.clone()), |fact| is(fact, &VolumeState::Error)).await;
    let _ = rig.ask(Call::DeleteVolume(failing)).await;
    let Fact::Refused(burned) = rig.ask(new(2, &rig.zone, None)).await else { panic!("the token is burned") };
    assert_eq!(burned.code, "IdempotentParameterMismatch");
    rig.trouble(|trouble| trouble.volume_limit = Some(0));
    let full = rig.ask(new(3, &rig.zone, None)).await;
    assert_eq!(refused(&full), Some(&RefusalKind::Volume { operation: 3 }), "{full:?}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_tell_what_is_in_their_way() {
    let rig = Rig::new().await;
    let elsewhere = if rig.zone.ends_with('a') { "us-east-1b" } else { "us-east-1a" };
    let (first, second) = (rig.volume(1, &rig.zone, None).await, rig.volume(2, &rig.zone, None).await);
    let foreign = rig.volume(3, elsewhere, None).await;
    for volume in [&first, &second, &foreign] {
        rig.available(volume).await;
    }
    let steady = VolumeState::InUse { instance: rig.instance.clone(), steady: true };
    let _ = rig.ask(rig.attach(&first, "/dev/sdf")).await;
    let again = rig.ask(rig.attach(&first, "/dev/sdf")).await;
    assert!(matches!(again, Fact::Volume { state: VolumeState::InUse { .. }, .. }), "{again:?}");
    rig.until(Call::DescribeVolume(first.clone()), |fact| is(fact, &steady)).await;
    let taken = rig.ask(rig.attach(&second, "/dev/sdf")).await;
    assert!(matches!(refused(&taken), Some(RefusalKind::DeviceTaken { .. })), "{taken:?}");
    let far = rig.ask(rig.attach(&foreign, "/dev/sdg")).await;
    assert!(matches!(refused(&far), Some(RefusalKind::Instance { .. })), "{far:?}");
    assert!(is(&rig.ask(Call::DeleteVolume(first.clone())).await, &steady), "attached: not deleted");

    let _ = rig.ask(Call::DetachVolume { volume: first.clone(), force: false }).await;
    assert!(is(&rig.ask(Call::AwaitDetached(first.clone())).await, &VolumeState::Available));
    let twice = rig.ask(Call::DetachVolume { volume: first.clone(), force: true }).await;
    assert!(is(&twice, &VolumeState::Available), "{twice:?}");
    rig.emulator.with_world(|world, now| world.reclaim(&rig.instance, None, now)).unwrap();
    let gone = rig.ask(rig.attach(&first, "/dev/sdh")).await;
    assert!(matches!(refused(&gone), Some(RefusalKind::Instance { .. })), "{gone:?}");
    for volume in [first, second, foreign] {
        assert_eq!(rig.ask(Call::DeleteVolume(volume.clone())).await, Fact::Deleted(volume));
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_found_by_their_operation_and_copied() {
    let rig = Rig::new().await;
    let elsewhere = if rig.zone.ends_with('a') { "us-east-1b" } else { "us-east-1a" };
    let volume = rig.volume(1, &rig.zone, None).await;
    rig.available(&volume).await;
    let find = Call::FindSnapshot { operation: 2 };
    assert_eq!(rig.ask(find.clone()).await, Fact::SnapshotNotFound { operation: 2 });
    // Throttled calls have no effect and are repeated. There is still only one snapshot.
    rig.trouble(|trouble| trouble.throttle_share = [(Service::Ec2, 0.4)].into());
    let snapshot = id(rig.ask(Call::TakeSnapshot { operation: 2, volume: volume.clone(), saved_early: false }).await);
    rig.trouble(|trouble| trouble.throttle_share.clear());
    assert_eq!(id(rig.ask(find).await), snapshot);
    assert_eq!(rig.emulator.with_world(|world, _| world.snapshots().count()), 1);
    let completed = |fact: &Fact| matches!(fact, Fact::Snapshot { state: SnapshotState::Completed, .. });
    rig.until(Call::DescribeSnapshot(snapshot.clone()), completed).await;

    let copy = rig.volume(3, elsewhere, Some(&snapshot)).await;
    rig.trouble(|trouble| trouble.volume_limit = Some(0));
    assert_eq!(rig.volume(3, elsewhere, Some(&snapshot)).await, copy, "found in spite of the quota");
    assert_eq!(id(rig.ask(Call::FindVolume { operation: 3 }).await), copy);
    assert_eq!(rig.ask(Call::FindVolume { operation: 4 }).await, Fact::VolumeNotFound { operation: 4 });
    rig.available(&copy).await;
    assert_eq!(rig.ask(Call::DeleteSnapshot(snapshot.clone())).await, Fact::Deleted(snapshot.clone()));
    assert_eq!(rig.ask(Call::DeleteSnapshot(snapshot.clone())).await, Fact::Missing(snapshot.clone()));
    assert_eq!(rig.ask(Call::DescribeSnapshot(snapshot.clone())).await, Fact::Missing(snapshot));
    for volume in [volume, copy] {
        assert_eq!(rig.ask(Call::DeleteVolume(volume.clone())).await, Fact::Deleted(volume));
    }
    rig.end().await;
}

/// EC2 bills a rate per GiB of the snapshot (fact 25). It counts only if it was requested, and only if EC2 has accepted
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_loads_at_a_rate_only_where_one_is_asked_for() {
    let rig = Rig::new().await;
    let blank = rig.volume(1, &rig.zone, None).await;
    rig.available(&blank).await;
    let take = Call::TakeSnapshot { operation: 2, volume: blank.clone(), saved_early: false };
    let snapshot = id(rig.ask(take).await);
    let completed = |fact: &Fact| matches!(fact, Fact::Snapshot { state: SnapshotState::Completed, .. });
    rig.until(Call::DescribeSnapshot(snapshot.clone()), completed).await;
    let rate = |id: &str| rig.emulator.with_world(|world, _| world.volume(id).unwrap().initialization_rate);
    let facts = async |call| {
        let events = rig.executor.execute(on_workspace(&rig.trial, call)).await.unwrap();
        let fact = |event| if let Outcome::Workspace(_, fact) = event { fact } else { panic!("{event:?}") };
        events.into_iter().map(fact).collect::<Vec<Fact>>()
    };
    let mut made = vec![blank];
    for (operation, asked, refuse) in [(3, None, false), (4, Some(150), false), (5, Some(150), true)] {
        rig.trouble(|trouble| trouble.refuse_initialization_rate = refuse);
        let mut found = facts(at_rate(operation, &rig.zone, Some(&snapshot), asked)).await;
        let id = id(found.remove(0));
        let taken = asked.filter(|_| !refuse);
        assert_eq!(rate(&id), taken, "operation {operation}");
        // EC2 does not report the size of the snapshot's data, so the size of its volume counts.
        let billed = taken.map(|_| Fact::RateTaken { operation, bytes: 1 << 30 });
        assert_eq!(found, Vec::from_iter(billed), "operation {operation}");
        rig.available(&id).await;
        made.push(id);
    }
    for volume in made {
        assert_eq!(rig.ask(Call::DeleteVolume(volume.clone())).await, Fact::Deleted(volume));
    }
    assert_eq!(rig.ask(Call::DeleteSnapshot(snapshot.clone())).await, Fact::Deleted(snapshot));
    rig.end().await;
}

/// `name`, `name:revision` and ARNs are accepted. A revision's ARN is pinned.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_definition_is_found_by_every_name_that_batch_takes() {
    let rig = Rig::new().await;
    rig.define(3);
    rig.emulator.with_world(|world, _| world.deregister_job_definition("train:3").unwrap());
    let executor = Services::default().reaching(targets(&config(&rig.emulator.endpoint())));
    let arn = "arn:aws:batch:us-east-1:000000000000:job-definition/train";
    let file = Arc::new(parse("k.yaml", "v", b"- {a: 1}").unwrap());
    let check = async |named: &str| {
        let plan = json!({ "trials": 1, "queue": "queue", "definition": named, "attempts": 1, "parts": [] });
        let prepared =
            Prepared { file: Arc::clone(&file), plan: serde_json::from_value(plan).unwrap(), disks: Vec::new() };
        let command = Command::CheckTarget { sweep: rig.trial.sweep.clone(), prepared };
        let events = executor.execute(command).await.unwrap();
        let [Outcome::TargetChecked { prepared, target, .. }] = &events[..] else { panic!("{events:?}") };
        let checked = target::check(prepared, target, "bucket");
        checked.map(|checked| checked.prepared.plan.definition).map_err(|problems| problems[0].help.clone())
    };
    let newest = Ok(format!("{arn}:2"));
    for (named, expected) in [
        ("train", newest.clone()),
        ("train:1", Ok(format!("{arn}:1"))),
        (arn, newest),
        (&format!("{arn}:1"), Ok(format!("{arn}:1"))),
    ] {
        assert_eq!(check(named).await, expected, "{named}");
    }
    let elsewhere = arn.replace("us-east-1", "eu-west-1");
    for named in ["none", "train:3", "train:9", "train:x", "none:1", &elsewhere, &format!("{elsewhere}:1"), "arn:aws"] {
        let help = check(named).await.unwrap_err();
        assert!(help.contains("name:revision"), "{named}: {help}");
    }
    rig.end().await;
}
