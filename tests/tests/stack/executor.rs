//! The AWS executor's calls for workspaces, over the wire: the SDKs against the emulator's EC2 and ECS.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use spotsweep_aws::{AwsExecutor, drains, ebs, ecs, hosts, targets, tasks};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::decide::target;
use spotsweep_control_plane::event::{Ask, TrialRequest};
use spotsweep_control_plane::handle::Executor;
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_control_plane::sweep::Prepared;
use spotsweep_control_plane::throttle::Turn;
use spotsweep_control_plane::trial::{AgentState, Host, InstanceStatus};
use spotsweep_control_plane::workspace::{
    Call, Fact, NewVolume, Refusal, RefusalKind, SnapshotState, TrialRef, VolumeState,
};
use spotsweep_emulator::{Config, Emulator};
use spotsweep_protocol::claim::{Machine, Task};
use spotsweep_protocol::ids::{JobId, JobName, Run, SweepId};
use spotsweep_sweep_file::parse;
use spotsweep_tests::local::config;
use spotsweep_world::{InstanceState, Service, Trouble};

fn on_workspace(of: &TrialRef, call: Call) -> Command {
    Command::Workspace { of: of.clone(), call, turn: Turn::default() }
}

/// An emulator with one running instance, and the executor that talks to it.
struct Rig {
    emulator: Emulator,
    executor: AwsExecutor,
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
        let executor = AwsExecutor::default().reaching(ebs(&config)).reaching(ecs(&config));
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

    /// A queue, and so many revisions of a job definition.
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

    /// The job of the trial, submitted: its id.
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
    // Throttled calls have no effect and are repeated: one snapshot all the same.
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

/// EC2 bills a rate per GiB of the snapshot (fact 25): only one that was asked for, and only where EC2 took it.
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
        // EC2 does not say how much is on the snapshot, so its volume's size counts.
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

/// `name`, `name:revision` and ARNs; what is pinned is a revision's ARN.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_definition_is_found_by_every_name_that_batch_takes() {
    let rig = Rig::new().await;
    rig.define(3);
    rig.emulator.with_world(|world, _| world.deregister_job_definition("train:3").unwrap());
    let executor = AwsExecutor::default().reaching(targets(&config(&rig.emulator.endpoint())));
    let arn = "arn:aws:batch:us-east-1:000000000000:job-definition/train";
    let file = Arc::new(parse("k.yaml", "v", b"- {a: 1}").unwrap());
    let check = async |named: &str| {
        let plan = json!({ "trials": 1, "queue": "queue", "definition": named, "attempts": 1, "parts": [] });
        let prepared = Prepared { file: Arc::clone(&file), plan: serde_json::from_value(plan).unwrap() };
        let command = Command::CheckTarget { sweep: rig.trial.sweep.clone(), prepared };
        let events = executor.execute(command).await.unwrap();
        let [Outcome::TargetChecked { prepared, target, .. }] = &events[..] else { panic!("{events:?}") };
        let checked = target::check(prepared, target);
        checked.map(|prepared| prepared.plan.definition).map_err(|problems| problems[0].help.clone())
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

/// Two containers on one instance of two GPUs, as their processes see it, and ECS.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_learns_of_its_gpus_by_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Config::new(folder.path().to_owned());
    settings.job_env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let emulator = Emulator::serve(settings).await.unwrap();
    let seen = "import json, os, time, urllib.request as u; e = os.environ; f = e['SPOTSWEEP_ROOT'] + '/seen'; \
                told = json.load(u.urlopen(e['ECS_CONTAINER_METADATA_URI_V4'])); told['given'] = e['NVIDIA_VISIBLE_DEVICES']; \
                json.dump(told, open(f + '.part', 'w')); os.rename(f + '.part', f); time.sleep(600)";
    let needs =
        [("VCPU", "1"), ("MEMORY", "512"), ("GPU", "1")].map(|(kind, value)| json!({ "type": kind, "value": value }));
    let container = json!({ "image": "any", "command": ["python3", "-c", seen], "resourceRequirements": needs });
    let environment = json!({ "computeEnvironmentName": "spot", "type": "MANAGED", "computeResources": {
        "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 64, "maxvCpus": 64,
        "instanceTypes": ["g5g.16xlarge"], "subnets": ["subnet-us-east-1a"] } });
    let order = json!([{ "order": 1, "computeEnvironment": "spot" }]);
    let queue = json!({ "jobQueueName": "queue", "priority": 1, "computeEnvironmentOrder": order });
    let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
    let job =
        json!({ "jobName": "gpus", "jobQueue": "queue", "jobDefinition": "train", "arrayProperties": {"size": 2} });
    let job = emulator.with_world(|world, _| {
        world.create_compute_environment(serde_json::from_value(environment).unwrap()).unwrap();
        world.create_job_queue(serde_json::from_value(queue).unwrap()).unwrap();
        world.register_job_definition(serde_json::from_value(definition).unwrap()).unwrap();
        world.submit_job(serde_json::from_value(job).unwrap()).unwrap()["jobId"].as_str().unwrap().to_owned()
    });
    let executor = AwsExecutor::default().reaching(tasks(&config(&emulator.endpoint())));
    let find = async |task: Task| {
        let (sweep, secret) = (SweepId::derive("b", "sweeps/k.yaml", "v"), None);
        let ask = Ask::Claim(Machine::default());
        let request =
            TrialRequest { sweep, index: 0, job: JobId::from(job.clone()), attempt: 1, token: None, secret, ask };
        match executor.execute(Command::FindGpus { request, task }).await.unwrap().remove(0) {
            Outcome::GpusFound { gpus, .. } => gpus,
            other => panic!("{other:?}"),
        }
    };
    let mut all = Vec::new();
    for index in 0..2 {
        let file = folder.path().join(format!("attempts/{job}-{index}-1/seen"));
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(seen["given"], "void", "as on today's image (fact 57)");
        let label = |name: &str| seen["Labels"][format!("com.amazonaws.ecs.{name}")].as_str().unwrap().to_owned();
        let task = Task { arn: label("task-arn"), container: label("container-name") };
        all.extend(find(task.clone()).await.unwrap());
        for unknown in [
            Task { container: "other".to_owned(), ..task.clone() },
            Task { arn: format!("{}0", task.arn), ..task.clone() },
            Task { arn: task.arn.replace("AWSBatch-", "other-"), ..task.clone() },
            Task { arn: "no ARN".to_owned(), ..task },
        ] {
            assert_eq!(find(unknown).await, None);
        }
    }
    all.dedup();
    assert_eq!(all.len(), 2, "each has its own: {all:?}");
    emulator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_located_by_its_container_instance() {
    let rig = Rig::new().await;
    let locate = |container_instance: String| {
        let trial = rig.trial.clone();
        rig.executor.execute(Command::LocateAttempt { trial, attempt: 3, container_instance })
    };
    let Outcome::AttemptLocated { attempt, instance, zone, .. } =
        locate(rig.container_instance.clone()).await.unwrap().remove(0)
    else {
        panic!("not located")
    };
    assert_eq!((attempt, &instance, &zone), (3, &rig.instance, &rig.zone));
    let unknown = locate(format!("{}0", rig.container_instance)).await.unwrap().remove(0);
    assert!(matches!(unknown, Outcome::Workspace(_, Fact::PlaceUnknown)), "{unknown:?}");
    rig.end().await;
}

/// By its job and the number of the attempt: the instance is the one that Batch has placed it on.
#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_attempt_is_drained() {
    let rig = Rig::new().await;
    let (sweep, job) = (rig.trial.sweep.clone(), rig.submit());
    let executor = AwsExecutor::default().reaching(drains(&config(&rig.emulator.endpoint())));
    let drain = async |attempt: u32| {
        let (sweep, job) = (sweep.clone(), JobId::from(job.clone()));
        let ask = Ask::Claim(Machine { instance: Some("i-of-others".to_owned()), ..Machine::default() });
        let request = TrialRequest { sweep, index: 0, job, attempt, token: None, secret: None, ask };
        match executor.execute(Command::DrainInstance(request)).await.unwrap().remove(0) {
            Outcome::InstanceDrained { drained, .. } => drained,
            other => panic!("{other:?}"),
        }
    };
    let drained = || rig.emulator.with_world(|world, _| world.instance(&rig.instance).unwrap().drained);
    assert_eq!(drain(2).await, Drained::NotPlaced, "an attempt that does not run");
    let mut found = Drained::NotPlaced;
    while found == Drained::NotPlaced {
        assert!(!drained());
        found = drain(1).await;
    }
    assert_eq!((found, drained()), (Drained::Yes(rig.container_instance.clone()), true));
    rig.trouble(|trouble| trouble.denied = [("UpdateContainerInstancesState".to_owned(), None)].into());
    let refused = drain(1).await;
    assert!(matches!(&refused, Drained::Refused(why) if why.contains("not authorized")), "{refused:?}");
    let request = serde_json::from_value(json!({ "jobId": job, "reason": "done" })).unwrap();
    rig.emulator.with_world(|world, _| world.terminate_job(&request)).unwrap();
    rig.end().await;
}

/// What ECS and EC2 say of it, and the end of one that is dead.
#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_attempt_is_looked_at_and_ended() {
    let rig = Rig::new().await;
    let (trial, job) = (rig.trial.clone(), rig.submit());
    let executor = AwsExecutor::default().reaching(hosts(&config(&rig.emulator.endpoint())));
    let check = async |attempt: u32| {
        let (trial, job, instance) = (trial.clone(), JobId::from(job.clone()), Some("i-0123456789abcdef0".to_owned()));
        let command = Command::CheckInstance { trial, attempt, job, instance };
        match executor.execute(command).await.unwrap().remove(0) {
            Outcome::InstanceChecked { host, .. } => host,
            other => panic!("{other:?}"),
        }
    };
    let end = async |instance: &str| {
        let command = Command::EndInstance { trial: trial.clone(), attempt: 1, instance: instance.to_owned() };
        match executor.execute(command).await.unwrap().remove(0) {
            Outcome::InstanceEnded { refusal, .. } => refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(check(2).await, None, "an attempt that does not run");
    let mut found = None;
    while found.is_none() {
        found = check(1).await;
    }
    let host = |agent, status| Some(Host { instance: Some(rig.instance.clone()), agent, status });
    assert_eq!(found, host(AgentState::Connected, InstanceStatus::NotImpaired));
    for (impaired, status) in [(false, InstanceStatus::NotImpaired), (true, InstanceStatus::Impaired)] {
        rig.emulator.with_world(|world, now| world.set_connection(&rig.instance, true, impaired, now));
        assert_eq!(check(1).await, host(AgentState::Disconnected, status));
    }
    rig.trouble(|trouble| trouble.denied = [("TerminateInstances".to_owned(), None)].into());
    assert!(end(&rig.instance).await.unwrap().starts_with("UnauthorizedOperation: "));
    rig.trouble(|trouble| trouble.denied.clear());
    assert_eq!(end("i-0123456789abcdef0").await, None, "one that is gone needs no end");
    assert_eq!(end(&rig.instance).await, None);
    let state = rig.emulator.with_world(|world, _| world.instance(&rig.instance).unwrap().state);
    assert!(!state.is_live(), "{state:?}");
    let request = serde_json::from_value(json!({ "jobId": job, "reason": "done" })).unwrap();
    rig.emulator.with_world(|world, _| world.terminate_job(&request)).unwrap();
    rig.end().await;
}
