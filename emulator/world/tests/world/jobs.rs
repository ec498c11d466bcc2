//! Tests of jobs, array children and attempts: states and events in order, retries, timeouts, queues.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use spotsweep_world::{AttemptKey, InstanceState};

use crate::lab::{Lab, UNTIL_RUNNING};

#[test]
fn a_job_passes_all_states_in_order_each_with_its_event() {
    let mut lab = Lab::new(4);
    let job = lab.submit(json!({"parameters": {"mode": "fast"}, "containerOverrides": {
        "environment": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}}));
    assert_eq!(lab.status(&job), "SUBMITTED");
    assert!(lab.statuses(&job).is_empty(), "the submission itself has no event");
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
    assert_eq!(lab.statuses(&job), ["RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED"]);

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
    assert_eq!(lab.statuses(&parent), ["PENDING"]);
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
    assert_eq!(lab.statuses(&parent), ["PENDING", "FAILED"]);
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
        |lab: &mut Lab| -> Vec<String> { (0..4).map(|index| lab.status(&format!("{parent}:{index}"))).collect() };
    assert_eq!(statuses(&mut lab), ["RUNNING", "RUNNING", "RUNNABLE", "RUNNABLE"]);
    let stop = serde_json::from_value(json!({"jobId": parent, "reason": "enough"})).unwrap();
    lab.world.cancel_job(&stop).unwrap();
    assert_eq!(statuses(&mut lab), ["RUNNING", "RUNNING", "FAILED", "FAILED"]);
    assert_eq!(lab.job(&format!("{parent}:2"))["isCancelled"], true);
    lab.world.terminate_job(&stop).unwrap();
    lab.collect();
    assert_eq!(lab.stopped.len(), 2);
    lab.exit(&format!("{parent}:0"), 1, 143);
    lab.exit(&format!("{parent}:1"), 1, 0);
    assert_eq!(statuses(&mut lab), ["FAILED"; 4]);
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
