//! An account on a virtual clock.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_world::Timings;
use spotsweep_world::batch::{ListJobs, RegisterJobDefinition};
use spotsweep_world::ebs::{AttachVolume, CreateSnapshot, CreateVolume, DetachVolume};
use spotsweep_world::{AttemptKey, Effect, InstanceState, Settings, Start, World};

/// Milliseconds of boot (1 s) and image pull (0.5 s).
pub(crate) const UNTIL_RUNNING: u64 = 1500;

/// A World on a virtual clock, with all effects that it has wanted so far.
pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    pub(crate) events: Vec<Value>,
    pub(crate) started: Vec<Start>,
    pub(crate) stopped: Vec<AttemptKey>,
    pub(crate) killed: Vec<AttemptKey>,
}

impl Lab {
    /// Makes one Spot environment of `max_vcpus` in c7i.large instances (2 vCPUs), the queues `low` and `high`, and the
    /// definition `train` of 1 vCPU.
    pub(crate) fn new(max_vcpus: u32) -> Lab {
        Lab::with_timings(max_vcpus, Timings::default())
    }

    pub(crate) fn with_timings(max_vcpus: u32, timings: Timings) -> Lab {
        let zones = ["us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into();
        let settings = Settings { region: "us-east-1".into(), account: "000000000000".into(), zones, timings, seed: 7 };
        let mut lab = Lab {
            world: World::new(settings),
            now: "2026-11-21T00:00:00Z".parse().unwrap(),
            events: Vec::new(),
            started: Vec::new(),
            stopped: Vec::new(),
            killed: Vec::new(),
        };
        lab.world.advance(lab.now);
        lab.make(
            json!({"computeEnvironmentName": "spot", "type": "MANAGED", "computeResources": {
            "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 0, "maxvCpus": max_vcpus, "instanceTypes": ["c7i.large"],
            "subnets": ["subnet-us-east-1a", "subnet-us-east-1b", "subnet-us-east-1c"],
            "tags": {"spotsweep": "yes"}}}),
            World::create_compute_environment,
        );
        for (name, priority) in [("low", 1), ("high", 10)] {
            let order = json!([{"order": 1, "computeEnvironment": "spot"}]);
            lab.make(
                json!({"jobQueueName": name, "priority": priority, "computeEnvironmentOrder": order}),
                World::create_job_queue,
            );
        }
        lab.register(json!({}));
        lab
    }

    pub(crate) fn make<T: serde::de::DeserializeOwned, E: std::fmt::Debug>(
        &mut self,
        request: Value,
        action: impl FnOnce(&mut World, T) -> Result<Value, E>,
    ) -> Value {
        let answer = action(&mut self.world, serde_json::from_value(request).unwrap()).unwrap();
        self.collect();
        answer
    }

    pub(crate) fn register(&mut self, more: Value) {
        let mut request = json!({"jobDefinitionName": "train", "type": "container",
            "containerProperties": {"image": "trainer:1", "command": ["train", "Ref::mode"],
                "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1024"}]}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request: RegisterJobDefinition = serde_json::from_value(request).unwrap();
        self.world.register_job_definition(request).unwrap();
    }

    pub(crate) fn submit(&mut self, more: Value) -> String {
        self.try_submit(more).unwrap()
    }

    pub(crate) fn try_submit(&mut self, more: Value) -> Result<String, String> {
        let mut request = json!({"jobName": "sweep", "jobQueue": "low", "jobDefinition": "train"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = serde_json::from_value(request).unwrap();
        let answer = self.world.submit_job(request).map_err(|error| error.to_string());
        self.collect();
        Ok(answer?["jobId"].as_str().unwrap().to_owned())
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.now = self.now.saturating_add(Duration::from_millis(millis)).unwrap();
        self.world.advance(self.now);
        self.collect();
    }

    pub(crate) fn collect(&mut self) {
        for effect in self.world.take_effects() {
            match effect {
                Effect::Emit(event) => self.events.push(event),
                Effect::Start(start) => self.started.push(start),
                Effect::Stop { attempt, .. } => self.stopped.push(attempt),
                Effect::Kill(attempt) => self.killed.push(attempt),
            }
        }
    }

    pub(crate) fn exit(&mut self, job: &str, attempt: u32, code: i32) {
        let key = AttemptKey { job: job.to_owned(), attempt };
        self.world.job_exited(&key, code, self.now);
        self.collect();
    }

    /// Returns the statuses in a job's events, in order.
    pub(crate) fn statuses(&self, job: &str) -> Vec<&str> {
        self.events
            .iter()
            .filter(|event| event["detail"]["jobId"] == job)
            .map(|event| event["detail"]["status"].as_str().unwrap())
            .collect()
    }

    pub(crate) fn job(&mut self, id: &str) -> Value {
        let request = serde_json::from_value(json!({"jobs": [id]})).unwrap();
        self.world.describe_jobs(&request).unwrap()["jobs"][0].clone()
    }

    pub(crate) fn status(&mut self, id: &str) -> String {
        self.job(id)["status"].as_str().unwrap().to_owned()
    }

    pub(crate) fn instances(&self, state: InstanceState) -> Vec<String> {
        self.world.instances().filter(|i| i.state == state).map(|i| i.id.clone()).collect()
    }

    pub(crate) fn listed(&self, request: Value) -> Vec<String> {
        let request: ListJobs = serde_json::from_value(request).unwrap();
        let answer = self.world.list_jobs(&request).unwrap();
        let ids = answer["jobSummaryList"].as_array().unwrap().iter();
        ids.map(|job| job["jobId"].as_str().unwrap().to_owned()).collect()
    }
}

/// The parts of the account that concern EBS.
impl Lab {
    /// Returns a running instance in this zone, with a job on it.
    pub(crate) fn host(&mut self, zone: &str) -> String {
        let zones = self.world.settings().zones.clone();
        for other in zones.iter().filter(|other| *other != zone) {
            self.world.set_zone_capacity(other, Some(0), self.now);
        }
        let both = json!([{"type": "VCPU", "value": "2"}]);
        self.submit(json!({"containerOverrides": {"resourceRequirements": both}}));
        self.pass(UNTIL_RUNNING);
        zones.iter().for_each(|other| self.world.set_zone_capacity(other, None, self.now));
        let host = self.started.last().unwrap().instance.clone();
        assert_eq!(self.world.instance(&host).unwrap().zone, zone);
        host
    }

    /// Returns an available volume of 10 GiB in this zone.
    pub(crate) fn volume(&mut self, zone: &str) -> String {
        self.create(CreateVolume { zone: zone.into(), size_gib: Some(10), ..CreateVolume::default() })
    }

    pub(crate) fn create(&mut self, request: CreateVolume) -> String {
        let id = self.world.create_volume(request).unwrap().id;
        self.pass(150);
        assert_eq!(self.state(&id), "available");
        id
    }

    pub(crate) fn restore(&mut self, snapshot: &str, zone: &str) -> String {
        let snapshot = Some(snapshot.to_owned());
        self.create(CreateVolume { zone: zone.into(), snapshot, ..CreateVolume::default() })
    }

    pub(crate) fn try_attach(&mut self, volume: &str, instance: &str, device: &str) -> Result<(), &'static str> {
        let request = AttachVolume { volume: volume.into(), instance: instance.into(), device: device.into() };
        self.world.attach_volume(&request).map(|_| ()).map_err(|error| error.code)
    }

    pub(crate) fn attach(&mut self, volume: &str, instance: &str) {
        self.try_attach(volume, instance, "/dev/sdf").unwrap();
        self.pass(100);
        assert_eq!(self.attachment(volume), "attached");
    }

    pub(crate) fn try_detach(&mut self, volume: &str, force: bool) -> Result<(), &'static str> {
        let request = DetachVolume { volume: volume.into(), instance: None, device: None, force };
        self.world.detach_volume(&request).map(|_| ()).map_err(|error| error.code)
    }

    pub(crate) fn try_snapshot(&mut self, volume: &str) -> Result<String, &'static str> {
        let request = CreateSnapshot { volume: volume.into(), ..CreateSnapshot::default() };
        self.world.create_snapshot(request).map(|snapshot| snapshot.id).map_err(|error| error.code)
    }

    /// Returns a completed snapshot.
    pub(crate) fn snapshot(&mut self, volume: &str) -> String {
        let id = self.try_snapshot(volume).unwrap();
        self.pass(60_000);
        assert_eq!(self.world.snapshot_of(&id).unwrap().state.as_str(), "completed");
        id
    }

    /// Returns the volume's state, or `gone` if it does not exist.
    pub(crate) fn state(&self, volume: &str) -> &'static str {
        self.world.volume(volume).map_or("gone", |volume| volume.state.as_str())
    }

    /// Returns the attachment's state, or `none` if there is none.
    pub(crate) fn attachment(&self, volume: &str) -> &'static str {
        let attachment = self.world.volume(volume).and_then(|volume| volume.attachment.as_ref());
        attachment.map_or("none", |attachment| attachment.state.as_str())
    }

    /// Returns EBS's events as `<event> <result> <id>`.
    pub(crate) fn ebs_events(&self) -> Vec<String> {
        let ebs = self.events.iter().filter(|event| event["detail-type"].as_str().unwrap().starts_with("EBS"));
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        ebs.map(|event| {
            let arn = word(&event["resources"][0]);
            let id = arn.rsplit('/').next().unwrap();
            format!("{} {} {id}", word(&event["detail"]["event"]), word(&event["detail"]["result"]))
        })
        .collect()
    }
}
