//! Where an attempt runs, which GPUs it has there, and how its instance is drained or ended.

use std::time::Duration;

use serde_json::json;
use spotsweep_aws::{drains, hosts, tasks};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::event::{Ask, TrialRequest};
use spotsweep_control_plane::execute::Services;
use spotsweep_control_plane::handle::Executor;
use spotsweep_control_plane::outcome::{Drained, Outcome};
use spotsweep_emulator::{Config, Emulator};
use spotsweep_protocol::claim::{Machine, Task};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_records::trial::{AgentState, Host, InstanceStatus};
use spotsweep_records::workspace::Fact;
use spotsweep_tests::local::config;

use super::Rig;

/// Two containers on one instance with two GPUs, as their processes and ECS see it.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_learns_of_its_gpus_by_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Config::new(folder.path().to_owned());
    settings.job_env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let emulator = Emulator::serve(settings).await.unwrap();
    let seen = "import json, os, time, urllib.request as u; e = os.environ; f = e['SPOTSWEEP_ROOT'] + '/seen'; \
                task = json.load(u.urlopen(e['ECS_CONTAINER_METADATA_URI_V4'])); task['given'] = e['NVIDIA_VISIBLE_DEVICES']; \
                json.dump(task, open(f + '.part', 'w')); os.rename(f + '.part', f); time.sleep(600)";
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
    let executor = Services::default().reaching(tasks(&config(&emulator.endpoint())));
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

/// The instance is found by the job and the number of the attempt, from what Batch reports.
#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_attempt_is_drained() {
    let rig = Rig::new().await;
    let (sweep, job) = (rig.trial.sweep.clone(), rig.submit());
    let executor = Services::default().reaching(drains(&config(&rig.emulator.endpoint())));
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

/// What ECS and EC2 report of an instance, and the end of a dead one.
#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_attempt_is_looked_at_and_ended() {
    let rig = Rig::new().await;
    let (trial, job) = (rig.trial.clone(), rig.submit());
    let executor = Services::default().reaching(hosts(&config(&rig.emulator.endpoint())));
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
