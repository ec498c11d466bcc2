//! The World by itself, on a virtual clock: states and events in order, retries, limits, capacity.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, missing_docs)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_emulator::Timings;
use spotsweep_emulator::world::batch::{DescribeJobDefinitions, ListJobs, RegisterJobDefinition};
use spotsweep_emulator::world::{
    AttemptKey, Effect, Failure, Fault, FaultKind, FaultWhen, InstanceState, Service, Settings, Start, World,
};

/// A World with a clock of its own, and everything it has wanted so far.
struct Lab {
    world: World,
    now: Timestamp,
    events: Vec<Value>,
    started: Vec<Start>,
    stopped: Vec<AttemptKey>,
    killed: Vec<AttemptKey>,
}

impl Lab {
    /// One Spot environment of `max_vcpus` in c7i.large instances (2 vCPUs), queues `low` and `high`,
    /// and the definition `train` of 1 vCPU.
    fn new(max_vcpus: u32) -> Lab {
        let zones = ["us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into();
        let settings = Settings {
            region: "us-east-1".into(),
            account: "000000000000".into(),
            zones,
            timings: Timings::default(),
            seed: 7,
        };
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
            "type": "SPOT", "minvCpus": 0, "maxvCpus": max_vcpus, "instanceTypes": ["c7i.large"],
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

    fn make<T: serde::de::DeserializeOwned, E: std::fmt::Debug>(
        &mut self,
        request: Value,
        action: impl FnOnce(&mut World, T) -> Result<Value, E>,
    ) -> Value {
        let answer = action(&mut self.world, serde_json::from_value(request).unwrap()).unwrap();
        self.collect();
        answer
    }

    fn register(&mut self, more: Value) {
        let mut request = json!({"jobDefinitionName": "train", "type": "container",
            "containerProperties": {"image": "trainer:1", "command": ["train", "Ref::mode"],
                "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1024"}]}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request: RegisterJobDefinition = serde_json::from_value(request).unwrap();
        self.world.register_job_definition(request).unwrap();
    }

    fn submit(&mut self, more: Value) -> String {
        self.try_submit(more).unwrap()
    }

    fn try_submit(&mut self, more: Value) -> Result<String, String> {
        let mut request = json!({"jobName": "sweep", "jobQueue": "low", "jobDefinition": "train"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = serde_json::from_value(request).unwrap();
        let answer = self.world.submit_job(request).map_err(|error| error.to_string());
        self.collect();
        Ok(answer?["jobId"].as_str().unwrap().to_owned())
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.saturating_add(Duration::from_millis(millis)).unwrap();
        self.world.advance(self.now);
        self.collect();
    }

    fn collect(&mut self) {
        for effect in self.world.take_effects() {
            match effect {
                Effect::Emit(event) => self.events.push(event),
                Effect::Start(start) => self.started.push(start),
                Effect::Stop { attempt, .. } => self.stopped.push(attempt),
                Effect::Kill(attempt) => self.killed.push(attempt),
            }
        }
    }

    fn exit(&mut self, job: &str, attempt: u32, code: i32) {
        let key = AttemptKey { job: job.to_owned(), attempt };
        self.world.job_exited(&key, code, self.now);
        self.collect();
    }

    /// The statuses that a job's events told, in order.
    fn told(&self, job: &str) -> Vec<&str> {
        self.events
            .iter()
            .filter(|event| event["detail"]["jobId"] == job)
            .map(|event| event["detail"]["status"].as_str().unwrap())
            .collect()
    }

    fn job(&self, id: &str) -> Value {
        let request = serde_json::from_value(json!({"jobs": [id]})).unwrap();
        self.world.describe_jobs(&request).unwrap()["jobs"][0].clone()
    }

    fn status(&self, id: &str) -> String {
        self.job(id)["status"].as_str().unwrap().to_owned()
    }

    fn instances(&self, state: InstanceState) -> Vec<String> {
        self.world.instances().filter(|i| i.state == state).map(|i| i.id.clone()).collect()
    }

    fn listed(&self, request: Value) -> Vec<String> {
        let request: ListJobs = serde_json::from_value(request).unwrap();
        let answer = self.world.list_jobs(&request).unwrap();
        let ids = answer["jobSummaryList"].as_array().unwrap().iter();
        ids.map(|job| job["jobId"].as_str().unwrap().to_owned()).collect()
    }
}

/// Boot (1 s) and image pull (0.5 s).
const UNTIL_RUNNING: u64 = 1500;

#[test]
fn a_job_passes_all_states_in_order_each_with_its_event() {
    let mut lab = Lab::new(4);
    let job = lab.submit(json!({"parameters": {"mode": "fast"}, "containerOverrides": {
        "environment": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}}));
    assert_eq!(lab.status(&job), "SUBMITTED");
    assert!(lab.told(&job).is_empty(), "the submission itself has no event");
    lab.pass(0);
    assert_eq!(lab.status(&job), "RUNNABLE");
    lab.pass(1000);
    assert_eq!(lab.status(&job), "STARTING");
    lab.pass(500);
    assert_eq!(lab.status(&job), "RUNNING");
    let start = lab.started.last().unwrap().clone();
    assert_eq!(start.command, ["train", "fast"]);
    let environment: BTreeMap<_, _> = start.environment.iter().cloned().collect();
    let wanted = [("A", "1"), ("B", "3"), ("C", "4"), ("AWS_BATCH_JOB_ATTEMPT", "1")];
    for (name, value) in wanted {
        assert_eq!(environment[name], value, "{name}");
    }
    assert_eq!(environment["AWS_BATCH_JOB_ID"], job);
    assert!(!environment.contains_key("AWS_BATCH_JOB_ARRAY_INDEX"), "plain jobs have no index");
    lab.pass(2000);
    lab.exit(&job, 1, 0);
    assert_eq!(lab.told(&job), ["RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED"]);

    let detail = lab.job(&job);
    let attempt = &detail["attempts"][0];
    assert_eq!(attempt["container"]["exitCode"], 0);
    assert_eq!(attempt["container"]["logStreamName"], start.log_stream);
    assert_eq!(attempt["statusReason"], "Essential container in task exited");
    let millis = |name: &str| detail[name].as_i64().unwrap();
    assert_eq!(millis("startedAt") - millis("createdAt"), 1500);
    assert_eq!(millis("stoppedAt") - millis("startedAt"), 2000);
    let event = lab.events.last().unwrap();
    assert_eq!(event["detail-type"], "Batch Job State Change");
    assert_eq!(event["resources"][0], detail["jobArn"]);
    assert_eq!(event["time"], "2026-11-21T00:00:03Z");
    assert_eq!(event["detail"], detail, "an event carries what DescribeJobs shows");
}

#[test]
fn an_array_parent_waits_for_all_children_and_counts_them() {
    let mut lab = Lab::new(8);
    let parent = lab.submit(json!({"arrayProperties": {"size": 3}, "retryStrategy": {"attempts": 2}}));
    lab.pass(0);
    assert_eq!(lab.told(&parent), ["PENDING"]);
    lab.pass(UNTIL_RUNNING);
    let child = |index: usize| format!("{parent}:{index}");
    let last = &lab.started[2];
    assert!(last.environment.contains(&("AWS_BATCH_JOB_ARRAY_INDEX".into(), "2".into())));
    for index in [2, 0] {
        lab.exit(&child(index), 1, 0);
    }
    lab.exit(&child(1), 1, 1);
    assert_eq!(lab.status(&parent), "PENDING", "child 1 is tried again");
    let summary = &lab.job(&parent)["arrayProperties"];
    assert_eq!((&summary["size"], &summary["statusSummary"]["SUCCEEDED"]), (&json!(3), &json!(2)));
    lab.pass(UNTIL_RUNNING);
    lab.exit(&child(1), 2, 1);
    assert_eq!(lab.told(&parent), ["PENDING", "FAILED"]);
    assert_eq!(lab.job(&parent)["statusReason"], "Array Child Job failed");
    assert_eq!(lab.job(&parent)["attempts"], json!([]));
    let failed = lab.job(&child(1));
    assert_eq!(failed["arrayProperties"], json!({"index": 1, "statusSummary": {}}));
    assert_eq!(failed["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(failed["jobName"], "sweep");
}

#[test]
fn a_reclaimed_host_retries_at_the_front_and_an_own_failure_exits() {
    let mut lab = Lab::new(2);
    let retry = json!({"attempts": 10, "evaluateOnExit": [
        {"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]});
    let two = json!({"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "2"}]},
        "retryStrategy": retry});
    let (first, second) = (lab.submit(two.clone()), lab.submit(two));
    lab.pass(UNTIL_RUNNING);
    let host = lab.instances(InstanceState::Running)[0].clone();
    lab.world.reclaim(&host, Some(Duration::from_secs(120)), lab.now).unwrap();
    lab.collect();
    let warning = lab.events.last().unwrap();
    assert_eq!(warning["detail-type"], "EC2 Spot Instance Interruption Warning");
    let zone = lab.world.instance(&host).unwrap().zone.clone();
    assert_eq!(warning["resources"][0], format!("arn:aws:ec2:{zone}:instance/{host}"));
    lab.pass(119_999);
    assert_eq!(lab.status(&first), "RUNNING");
    lab.pass(1);
    assert_eq!(lab.killed, [AttemptKey { job: first.clone(), attempt: 1 }]);
    lab.exit(&first, 1, 137);
    assert_eq!(lab.status(&first), "RUNNING", "what died with its machine has no exit code");
    lab.pass(300);
    let detail = lab.job(&first);
    assert_eq!(detail["status"], "RUNNABLE");
    let reason = format!("Host EC2 (instance {host}) terminated.");
    assert_eq!(detail["attempts"][0]["statusReason"], reason);
    assert_eq!(detail["attempts"][0]["container"].get("exitCode"), None);
    lab.pass(UNTIL_RUNNING);
    assert_eq!((lab.status(&first), lab.status(&second)), ("RUNNING".into(), "RUNNABLE".into()));
    lab.exit(&first, 2, 1);
    assert_eq!(lab.status(&first), "FAILED", "rule 2 says EXIT");
    lab.pass(0);
    assert_eq!(lab.status(&second), "RUNNING", "the image is there already");
}

#[test]
fn a_timeout_counts_from_running_and_is_not_retried() {
    let mut lab = Lab::new(2);
    let job = lab.submit(json!({"timeout": {"attemptDurationSeconds": 60}, "retryStrategy": {"attempts": 3}}));
    lab.pass(UNTIL_RUNNING);
    lab.pass(59_999);
    assert!(lab.stopped.is_empty());
    lab.pass(1);
    assert_eq!(lab.stopped, [AttemptKey { job: job.clone(), attempt: 1 }]);
    lab.exit(&job, 1, 137);
    let detail = lab.job(&job);
    assert_eq!(detail["status"], "FAILED");
    assert_eq!(detail["statusReason"], "Job attempt duration exceeded timeout");
    assert_eq!(detail["attempts"][0]["container"]["exitCode"], 137);
}

#[test]
fn cancel_spares_what_has_started_and_terminate_spares_nothing() {
    let mut lab = Lab::new(2);
    let parent = lab.submit(json!({"arrayProperties": {"size": 4}, "retryStrategy": {"attempts": 5}}));
    lab.pass(UNTIL_RUNNING);
    let statuses =
        |lab: &Lab| -> Vec<String> { (0..4).map(|index| lab.status(&format!("{parent}:{index}"))).collect() };
    assert_eq!(statuses(&lab), ["RUNNING", "RUNNING", "RUNNABLE", "RUNNABLE"]);
    let stop = serde_json::from_value(json!({"jobId": parent, "reason": "enough"})).unwrap();
    lab.world.cancel_job(&stop).unwrap();
    assert_eq!(statuses(&lab), ["RUNNING", "RUNNING", "FAILED", "FAILED"]);
    assert_eq!(lab.job(&format!("{parent}:2"))["isCancelled"], true);
    lab.world.terminate_job(&stop).unwrap();
    lab.collect();
    assert_eq!(lab.stopped.len(), 2);
    lab.exit(&format!("{parent}:0"), 1, 143);
    lab.exit(&format!("{parent}:1"), 1, 0);
    assert_eq!(statuses(&lab), ["FAILED"; 4]);
    let detail = lab.job(&parent);
    assert_eq!((&detail["status"], &detail["statusReason"]), (&json!("FAILED"), &json!("enough")));
    let unknown = serde_json::from_value(json!({"jobId": "none", "reason": "r"})).unwrap();
    lab.world.terminate_job(&unknown).unwrap();
}

#[test]
fn queues_go_by_priority_and_each_queue_in_order() {
    let mut lab = Lab::new(2);
    let low = lab.submit(json!({"arrayProperties": {"size": 4}}));
    let high = lab.submit(json!({"arrayProperties": {"size": 2}, "jobQueue": "high"}));
    lab.pass(UNTIL_RUNNING);
    let order = |lab: &Lab| -> Vec<String> { lab.started.iter().map(|start| start.attempt.job.clone()).collect() };
    assert_eq!(order(&lab), [format!("{high}:0"), format!("{high}:1")]);
    for (job, next) in [(format!("{high}:1"), 0), (format!("{high}:0"), 1), (format!("{low}:0"), 2)] {
        lab.exit(&job, 1, 0);
        lab.pass(0);
        assert_eq!(*order(&lab).last().unwrap(), format!("{low}:{next}"));
    }
}

#[test]
fn a_waiting_job_of_high_priority_is_not_overtaken_by_smaller_ones() {
    let mut lab = Lab::new(2);
    let first = lab.submit(json!({}));
    lab.pass(UNTIL_RUNNING);
    let both = json!([{"type": "VCPU", "value": "2"}]);
    let big = lab.submit(json!({"jobQueue": "high", "containerOverrides": {"resourceRequirements": both}}));
    let small = lab.submit(json!({}));
    lab.pass(1000);
    assert_eq!((lab.status(&big), lab.status(&small)), ("RUNNABLE".into(), "RUNNABLE".into()));
    lab.exit(&first, 1, 0);
    lab.pass(0);
    assert_eq!((lab.status(&big), lab.status(&small)), ("RUNNING".into(), "RUNNABLE".into()));
}

#[test]
fn instances_spread_over_zones_within_limits_and_leave_when_idle() {
    let mut lab = Lab::new(100);
    lab.world.set_zone_capacity("us-east-1b", Some(1), lab.now);
    let parent = lab.submit(json!({"arrayProperties": {"size": 14}}));
    lab.pass(0);
    let by_zone = |lab: &Lab| -> BTreeMap<String, usize> {
        let live = lab.world.instances().filter(|i| i.state.is_live());
        live.fold(BTreeMap::new(), |mut count, instance| {
            *count.entry(instance.zone.clone()).or_default() += 1;
            count
        })
    };
    let wanted = [("us-east-1a", 3), ("us-east-1b", 1), ("us-east-1c", 3)];
    let wanted: BTreeMap<_, _> = wanted.map(|(zone, count)| (zone.to_owned(), count)).into();
    assert_eq!(by_zone(&lab), wanted, "14 jobs of 1 vCPU need 7 instances of 2");
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.started.len(), 14);
    for index in 0..14 {
        lab.exit(&format!("{parent}:{index}"), 1, 0);
    }
    lab.pass(4999);
    assert_eq!(lab.instances(InstanceState::Running).len(), 7);
    lab.pass(1);
    lab.pass(300);
    assert_eq!(lab.instances(InstanceState::Terminated).len(), 7);
    let told: Vec<_> = lab.events.iter().filter(|e| e["source"] == "aws.ec2").collect();
    assert_eq!(told.len(), 7 * 4, "pending, running, shutting-down, terminated");
    lab.pass(3_600_000);
    assert_eq!(lab.world.instances().count(), 0);
}

#[test]
fn without_capacity_jobs_wait_until_there_is_some() {
    let mut lab = Lab::new(4);
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    zones.iter().for_each(|zone| lab.world.set_zone_capacity(zone, Some(0), lab.now));
    let job = lab.submit(json!({}));
    lab.pass(60_000);
    assert_eq!((lab.status(&job), lab.world.instances().count()), ("RUNNABLE".into(), 0));
    lab.world.set_zone_capacity("us-east-1c", None, lab.now);
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.status(&job), "RUNNING");
    assert_eq!(lab.world.instances().next().unwrap().zone, "us-east-1c");
}

#[test]
fn bad_submissions_are_refused_with_awss_words() {
    let mut lab = Lab::new(4);
    let long = "x".repeat(129);
    let command = json!({"command": ["x".repeat(8200)]});
    let refused = [
        (json!({"jobQueue": "nope"}), "JobQueue nope not found."),
        (json!({"jobDefinition": "nope"}), "JobDefinition name nope does not exist or is not in ACTIVE status"),
        (json!({"jobDefinition": "train:9"}), "does not exist or is not in ACTIVE status"),
        (json!({"jobName": long}), "Job name should match valid pattern"),
        (json!({"jobName": "-a"}), "Job name should match valid pattern"),
        (json!({"jobName": "a.b"}), "Job name should match valid pattern"),
        (json!({"arrayProperties": {"size": 1}}), "Array size must be between 2 and 10000"),
        (json!({"arrayProperties": {"size": 10_001}}), "Array size must be between 2 and 10000"),
        (json!({"containerOverrides": command}), "Container Overrides length must be at most 8192"),
        (json!({"retryStrategy": {"attempts": 11}}), "attempts must be between 1 and 10"),
        (json!({"timeout": {"attemptDurationSeconds": 59}}), "at least 60 seconds"),
        (json!({"dependsOn": [{"jobId": "x"}]}), "dependsOn is not emulated"),
        (json!({"containerOverrides": {"environment": [{"name": "AWS_BATCH_X"}]}}), "AWS_BATCH"),
    ];
    for (request, words) in refused {
        let error = lab.try_submit(request.clone()).unwrap_err();
        assert!(error.starts_with("ClientException: ") && error.contains(words), "{request}: {error}");
    }
    assert_eq!(lab.listed(json!({"jobQueue": "low", "filters": [{"name": "JOB_NAME", "values": ["*"]}]})).len(), 0);
    let biggest = lab.submit(json!({"arrayProperties": {"size": 10_000}, "dependsOn": []}));
    lab.pass(0);
    let summary = lab.job(&biggest)["arrayProperties"]["statusSummary"].clone();
    assert_eq!(summary["RUNNABLE"], 10_000);
}

#[test]
fn list_jobs_finds_by_name_in_any_state_and_never_children() {
    let mut lab = Lab::new(4);
    let array = lab.submit(json!({"jobName": "spotsweep-digits-0", "arrayProperties": {"size": 2}}));
    lab.pass(10);
    let plain = lab.submit(json!({"jobName": "Spotsweep-Digits-1"}));
    let other = lab.submit(json!({"jobName": "other"}));
    let by_name = |lab: &Lab, pattern: &str| {
        lab.listed(json!({"jobQueue": "low", "jobStatus": "RUNNING",
            "filters": [{"name": "JOB_NAME", "values": [pattern]}]}))
    };
    assert_eq!(by_name(&lab, "spotsweep-digits-1"), std::slice::from_ref(&plain));
    assert_eq!(by_name(&lab, "SPOTSWEEP*"), [plain.clone(), array.clone()], "newest first");
    assert!(lab.listed(json!({"jobQueue": "low"})).is_empty(), "RUNNING if no status is given");
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.listed(json!({"jobQueue": "low"})), [plain, other]);
    assert_eq!(lab.listed(json!({"jobQueue": "low", "jobStatus": "PENDING"})), std::slice::from_ref(&array));
    let children = lab.listed(json!({"arrayJobId": array}));
    assert_eq!(children, [format!("{array}:0"), format!("{array}:1")]);

    for _ in 0..149 {
        lab.pass(20);
        lab.submit(json!({"jobName": "many"}));
    }
    let mut request: ListJobs =
        serde_json::from_value(json!({"jobQueue": "low", "filters": [{"name": "JOB_NAME", "values": ["many"]}]}))
            .unwrap();
    let first = lab.world.list_jobs(&request).unwrap();
    assert_eq!(first["jobSummaryList"].as_array().unwrap().len(), 100);
    request.next_token = first["nextToken"].as_str().map(String::from);
    let second = lab.world.list_jobs(&request).unwrap();
    assert_eq!(second["jobSummaryList"].as_array().unwrap().len(), 49);
    assert_eq!(second.get("nextToken"), None);
}

#[test]
fn definitions_are_found_by_every_name_that_aws_takes() {
    let mut lab = Lab::new(4);
    lab.register(json!({"timeout": {"attemptDurationSeconds": 90}}));
    lab.register(json!({}));
    lab.world.deregister_job_definition("train:3").unwrap();
    let prefix = "arn:aws:batch:us-east-1:000000000000:job-definition/";
    let revisions = |request: Value| -> Vec<i64> {
        let request: DescribeJobDefinitions = serde_json::from_value(request).unwrap();
        let answer = lab.world.describe_job_definitions(&request).unwrap();
        let found = answer["jobDefinitions"].as_array().unwrap().iter();
        found.map(|definition| definition["revision"].as_i64().unwrap()).collect()
    };
    assert_eq!(revisions(json!({"jobDefinitionName": "train"})), [1, 2, 3]);
    assert_eq!(revisions(json!({"jobDefinitionName": "train", "status": "ACTIVE"})), [1, 2]);
    assert_eq!(revisions(json!({"jobDefinitions": ["train:2", "none:1"]})), [2]);
    assert_eq!(revisions(json!({"jobDefinitions": [format!("{prefix}train:1")]})), [1]);
    assert_eq!(revisions(json!({"maxResults": 2, "nextToken": "next-1"})), [2, 3]);
    assert!(revisions(json!({"jobDefinitionName": "none"})).is_empty());
    for named in ["train", "train:2", &format!("{prefix}train"), &format!("{prefix}train:2")] {
        let job = lab.submit(json!({"jobDefinition": named}));
        assert_eq!(lab.job(&job)["jobDefinition"], format!("{prefix}train:2"), "{named}");
        assert_eq!(lab.job(&job)["timeout"]["attemptDurationSeconds"], 90);
    }
    assert!(lab.try_submit(json!({"jobDefinition": "train:3"})).is_err(), "INACTIVE");
}

#[test]
fn an_environment_keeps_its_minimum_and_a_disabled_one_does_nothing() {
    let mut lab = Lab::new(4);
    let environment = |name: &str, state: &str| {
        json!({"computeEnvironmentName": name, "type": "MANAGED", "state": state, "computeResources": {
            "type": "EC2", "minvCpus": 4, "maxvCpus": 8, "instanceTypes": ["c7i.large"],
            "subnets": ["subnet-us-east-1a"]}})
    };
    lab.make(environment("warm", "ENABLED"), World::create_compute_environment);
    lab.make(environment("off", "DISABLED"), World::create_compute_environment);
    lab.pass(600_000);
    assert_eq!(lab.instances(InstanceState::Running).len(), 2);
    let host = lab.instances(InstanceState::Running)[0].clone();
    assert!(lab.world.reclaim(&host, None, lab.now).is_err(), "on-demand instances are not reclaimed");
    lab.world.terminate_instances(&[host]).unwrap();
    lab.pass(2000);
    assert_eq!(lab.instances(InstanceState::Running).len(), 2, "replaced");
}

#[test]
fn more_than_fifty_submissions_a_second_are_throttled() {
    let mut lab = Lab::new(4);
    let granted = (0..60).filter(|_| lab.try_submit(json!({})).is_ok()).count();
    assert_eq!(granted, 50);
    assert!(lab.try_submit(json!({})).unwrap_err().starts_with("TooManyRequestsException"));
    lab.pass(100);
    let granted = (0..60).filter(|_| lab.try_submit(json!({})).is_ok()).count();
    assert_eq!(granted, 5);
}

#[test]
fn faults_hit_before_or_after_the_effect() {
    let mut lab = Lab::new(4);
    let calls = [
        (FaultWhen::Before, FaultKind::Error, 0),
        (FaultWhen::After, FaultKind::Drop, 1),
        (FaultWhen::After, FaultKind::Throttle, 2),
    ];
    for (when, kind, jobs) in calls {
        lab.world.fault(Fault { action: "SubmitJob".into(), when, times: 1, kind });
        let request = json!({"jobName": "sweep", "jobQueue": "low", "jobDefinition": "train"});
        let request = serde_json::from_value(request).unwrap();
        let failure =
            lab.world.call(Service::Batch, "SubmitJob", lab.now, |world| world.submit_job(request)).unwrap_err();
        match (kind, failure) {
            (FaultKind::Drop, Failure::Dropped) => {}
            (FaultKind::Error, Failure::Api(error)) => assert_eq!(error.code, "ServerException"),
            (FaultKind::Throttle, Failure::Api(error)) => assert_eq!(error.status, 429),
            (kind, failure) => panic!("{kind:?} gave {failure:?}"),
        }
        let filter = json!([{"name": "JOB_NAME", "values": ["sweep"]}]);
        assert_eq!(lab.listed(json!({"jobQueue": "low", "filters": filter})).len(), jobs);
    }
    assert_eq!(lab.world.call_counts()["SubmitJob"], 3);
    let results: Vec<_> = lab.world.call_log().map(|call| call.result.as_str()).collect();
    assert_eq!(results, ["ServerException", "dropped", "TooManyRequestsException"]);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let run = || {
        let mut lab = Lab::new(8);
        let parent = lab.submit(json!({"arrayProperties": {"size": 20}, "retryStrategy": {"attempts": 3}}));
        for round in 0..40 {
            lab.pass(700);
            let running: Vec<_> = lab.started.drain(..).map(|start| start.attempt).collect();
            for (position, attempt) in running.into_iter().enumerate() {
                lab.exit(&attempt.job, attempt.attempt, i32::from((position + round) % 3 == 0));
            }
            if round % 5 == 0
                && let Some(host) = lab.instances(InstanceState::Running).first()
            {
                lab.world.reclaim(host, None, lab.now).unwrap();
            }
        }
        assert!(["SUCCEEDED", "FAILED"].contains(&lab.status(&parent).as_str()));
        serde_json::to_string(&lab.events).unwrap()
    };
    assert_eq!(run(), run());
}
