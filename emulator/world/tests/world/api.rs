//! Tests of the API's refusals, lists and counts, of faults, and of repeatability.

use serde_json::{Value, json};
use spotsweep_world::batch::{DescribeJobDefinitions, ListJobs};
use spotsweep_world::{Failure, Fault, FaultKind, FaultWhen, InstanceState, Service};

use crate::lab::{Lab, UNTIL_RUNNING};

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
        (json!({"containerOverrides": {"environment": [{"name": "AWS_BATCH_X"}]}}), "AWS_BATCH"),
    ];
    for (request, words) in refused {
        let error = lab.try_submit(request.clone()).unwrap_err();
        assert!(error.starts_with("ClientException: ") && error.contains(words), "{request}: {error}");
    }
    assert_eq!(lab.listed(json!({"jobQueue": "low", "filters": [{"name": "JOB_NAME", "values": ["*"]}]})).len(), 0);
    let biggest = lab.submit(json!({"arrayProperties": {"size": 10_000}}));
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
