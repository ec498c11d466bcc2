//! Tests of FIS's interruptions, and of ECS's events about the interrupted instances.

use serde_json::{Value, json};
use spotsweep_world::{InstanceState, World};

use crate::lab::{Lab, UNTIL_RUNNING};

fn template(more: Value) -> Value {
    let mut template = json!({"clientToken": "t", "description": "d", "roleArn": "arn:aws:iam::000000000000:role/r",
        "stopConditions": [{"source": "none"}],
        "targets": {"trials": {"resourceType": "aws:ec2:spot-instance", "resourceTags": {"spotsweep": "yes"},
            "selectionMode": "COUNT(1)", "filters": [{"path": "State.Name", "values": ["running"]}]}},
        "actions": {"interrupt": {"actionId": "aws:ec2:send-spot-instance-interruptions",
            "parameters": {"durationBeforeInterruption": "PT2M"}, "targets": {"SpotInstances": "trials"}}}});
    for (pointer, value) in more.as_object().unwrap() {
        template = with(template, pointer, value.clone());
    }
    template
}

/// Starts an experiment of a template with these differences, and returns its id once its targets are chosen.
fn start(lab: &mut Lab, more: Value) -> String {
    let id = begin(lab, more);
    assert_eq!(status(lab, &id), "initiating");
    lab.pass(STARTING);
    id
}

/// Starts an experiment, and returns its id before its targets are chosen.
fn begin(lab: &mut Lab, more: Value) -> String {
    let wanted = template(more);
    let token = wanted.to_string();
    let made = lab.make(with(wanted, "/clientToken", json!(token)), World::create_experiment_template);
    let id = &made["experimentTemplate"]["id"];
    let request = json!({"clientToken": format!("{id} at {}", lab.now), "experimentTemplateId": id});
    let started = lab.make(request, |world, wanted| world.start_experiment(&wanted));
    started["experiment"]["id"].as_str().unwrap().to_owned()
}

fn with(mut value: Value, pointer: &str, member: Value) -> Value {
    *value.pointer_mut(pointer).unwrap() = member;
    value
}

fn state(lab: &Lab, id: &str) -> Value {
    lab.world.experiment(id).unwrap()["experiment"]["state"].clone()
}

fn status(lab: &Lab, id: &str) -> String {
    state(lab, id)["status"].as_str().unwrap().to_owned()
}

/// Returns the target for these instances.
fn of_instances(lab: &Lab, ids: &[&str]) -> Value {
    let arn = |id: &&str| format!("arn:aws:ec2:us-east-1:{}:instance/{id}", lab.world.settings().account);
    json!({"/targets/trials": {"resourceType": "aws:ec2:spot-instance", "selectionMode": "ALL",
        "resourceArns": ids.iter().map(arn).collect::<Vec<_>>()}})
}

/// Milliseconds from the start of an experiment until its targets are chosen.
const STARTING: u64 = 200;

/// Returns how many events of this type there were, and the detail of the last one.
fn events_of(lab: &Lab, kind: &str) -> (usize, Value) {
    let of_kind: Vec<_> = lab.events.iter().filter(|event| event["detail-type"] == kind).collect();
    (of_kind.len(), of_kind.last().map_or(Value::Null, |event| event["detail"].clone()))
}

const REBALANCE: &str = "EC2 Instance Rebalance Recommendation";
const WARNING: &str = "EC2 Spot Instance Interruption Warning";
const CONTAINER_INSTANCE: &str = "ECS Container Instance State Change";

fn two_hosts() -> Lab {
    let mut lab = Lab::new(4);
    lab.submit(json!({"arrayProperties": {"size": 4}}));
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.instances(InstanceState::Running).len(), 2);
    lab
}

#[test]
fn one_instance_is_recommended_warned_and_taken() {
    let mut lab = two_hosts();
    let experiment = start(&mut lab, json!({}));
    assert_eq!(
        (events_of(&lab, REBALANCE).0, events_of(&lab, WARNING).0),
        (1, 1),
        "both at once where the notice is all there is"
    );
    assert_eq!(status(&lab, &experiment), "running");
    lab.pass(2_000);
    assert_eq!(lab.instances(InstanceState::ShuttingDown).len(), 1);
    assert_eq!(status(&lab, &experiment), "completed");

    let experiment = start(
        &mut lab,
        json!({"/targets/trials/selectionMode": "ALL",
        "/actions/interrupt/parameters/durationBeforeInterruption": "PT4M"}),
    );
    assert_eq!(
        (events_of(&lab, REBALANCE).0, events_of(&lab, WARNING).0),
        (2, 1),
        "the warning comes a notice before the end"
    );
    lab.pass(2_000);
    assert_eq!((events_of(&lab, WARNING).0, status(&lab, &experiment).as_str()), (2, "running"));
    lab.pass(2_000);
    assert_eq!(status(&lab, &experiment), "completed");
}

#[test]
fn one_named_instance_is_taken() {
    let mut lab = two_hosts();
    let running = lab.instances(InstanceState::Running);
    let wanted = of_instances(&lab, &[&running[1]]);
    let experiment = start(&mut lab, wanted);
    assert_eq!(
        (status(&lab, &experiment).as_str(), &events_of(&lab, WARNING).1["instance-id"]),
        ("running", &json!(running[1]))
    );
    lab.pass(2_000);
    assert_eq!(lab.instances(InstanceState::ShuttingDown), [running[1].as_str()]);
    assert_eq!(status(&lab, &experiment), "completed");
}

#[test]
fn an_experiment_without_a_target_fails_and_says_why() {
    let mut lab = two_hosts();
    let running = lab.instances(InstanceState::Running);
    let empty = "Target resolution returned empty set";
    let (gone, unknown) = (of_instances(&lab, &[&running[0]]), of_instances(&lab, &["i-00000000000000000"]));
    let experiment = begin(&mut lab, gone);
    lab.world.terminate_instances(&[running[0].clone()]).unwrap();
    lab.pass(STARTING);
    assert_eq!(state(&lab, &experiment)["error"]["code"], "InvalidTarget", "it ended while FIS began");
    for wanted in [json!({"/targets/trials/resourceTags": {"spotsweep": "no"}}), unknown] {
        let experiment = start(&mut lab, wanted);
        assert_eq!(state(&lab, &experiment)["reason"], empty);
        assert_eq!((status(&lab, &experiment).as_str(), events_of(&lab, REBALANCE).0), ("failed", 0));
    }
    // Without a filter by state FIS also chooses instances that have ended.
    let all = json!({"/targets/trials/filters": [], "/targets/trials/selectionMode": "ALL"});
    lab.pass(1_000);
    let experiment = start(&mut lab, all);
    assert_eq!(status(&lab, &experiment), "failed");

    lab.world.trouble_mut().denied.insert("SendSpotInstanceInterruptions".to_owned(), None);
    let experiment = start(&mut lab, of_instances(&two_hosts(), &[&running[1]]));
    assert_eq!(state(&lab, &experiment)["error"]["code"], "AuthorizationFailure", "its role may not do it");
    assert_eq!(events_of(&lab, WARNING).0, 0);
}

#[test]
fn on_demand_instances_are_no_targets() {
    let mut lab = Lab::new(4);
    let resources = json!({"type": "EC2", "instanceRole": "ecsInstanceRole", "minvCpus": 2, "maxvCpus": 2,
        "instanceTypes": ["c7i.large"], "subnets": ["subnet-us-east-1a"], "tags": {"spotsweep": "yes"}});
    let request = json!({"computeEnvironmentName": "od", "type": "MANAGED", "computeResources": resources});
    lab.make(request, World::create_compute_environment);
    lab.pass(UNTIL_RUNNING);
    let running = lab.instances(InstanceState::Running);
    assert_eq!(running.len(), 1);
    for wanted in [json!({}), of_instances(&lab, &[&running[0]])] {
        let experiment = start(&mut lab, wanted);
        assert_eq!(state(&lab, &experiment)["reason"], "Target resolution returned empty set");
    }
}

#[test]
fn a_stopped_experiment_begins_nothing() {
    let mut lab = two_hosts();
    let experiment = begin(&mut lab, json!({}));
    lab.world.stop_experiment(&experiment).unwrap();
    lab.pass(2_000);
    assert_eq!((status(&lab, &experiment).as_str(), events_of(&lab, REBALANCE).0), ("stopped", 0));
    assert_eq!(lab.world.stop_experiment(&experiment).unwrap_err().code, "ValidationException");
}

#[test]
fn a_repeated_request_has_no_second_effect() {
    let mut lab = two_hosts();
    let request = template(json!({}));
    let made = lab.make(request.clone(), World::create_experiment_template);
    assert_eq!(lab.make(request.clone(), World::create_experiment_template), made);
    let other = serde_json::from_value(with(request, "/description", json!("other"))).unwrap();
    assert_eq!(lab.world.create_experiment_template(other).unwrap_err().code, "ConflictException");
    let id = &made["experimentTemplate"]["id"];
    let start = json!({"clientToken": "e", "experimentTemplateId": id});
    let begun = [(); 2].map(|()| lab.make(start.clone(), |world, wanted| world.start_experiment(&wanted)));
    assert_eq!(begun[0]["experiment"]["id"], begun[1]["experiment"]["id"]);
    lab.world.delete_experiment_template(id.as_str().unwrap()).unwrap();
    lab.pass(STARTING);
    assert_eq!(events_of(&lab, WARNING).0, 1, "an experiment goes on without its template");
}

/// AWS's page can also be read in this way.
#[test]
fn a_late_warning_comes_at_the_end_of_the_duration() {
    let mut lab = two_hosts();
    lab.world.trouble_mut().late_fis_warnings = true;
    let experiment = start(&mut lab, json!({}));
    assert_eq!((events_of(&lab, REBALANCE).0, events_of(&lab, WARNING).0), (1, 0));
    lab.pass(2_000);
    assert_eq!((events_of(&lab, WARNING).0, status(&lab, &experiment).as_str()), (1, "completed"));
    assert_eq!(lab.instances(InstanceState::ShuttingDown).len(), 0);
    lab.pass(2_000);
    assert_eq!(lab.instances(InstanceState::ShuttingDown).len(), 1);
}

#[test]
fn a_region_may_lack_the_action() {
    let mut lab = Lab::new(4);
    let action = "aws:ec2:send-spot-instance-interruptions";
    assert_eq!(lab.world.fis_action(action).unwrap()["action"]["id"], action);
    assert_eq!(lab.world.fis_action("aws:ec2:stop-instances").unwrap_err().code, "ResourceNotFoundException");
    lab.world.trouble_mut().without_fis_action = true;
    assert_eq!(lab.world.fis_action(action).unwrap_err().code, "ResourceNotFoundException");
    let wanted = serde_json::from_value(template(json!({}))).unwrap();
    assert_eq!(lab.world.create_experiment_template(wanted).unwrap_err().code, "ValidationException");
}

/// Returns a target of so many ARNs, with more fields.
fn named(arns: usize, more: Value) -> Value {
    let arns = vec!["arn:aws:ec2:us-east-1:000000000000:instance/i-1"; arns];
    let mut target = json!({"resourceType": "aws:ec2:spot-instance", "resourceArns": arns, "selectionMode": "ALL"});
    target.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    target
}

#[test]
fn what_is_not_known_is_refused() {
    for (pointer, value) in [
        ("/stopConditions/0/source", json!("aws:cloudwatch:alarm")),
        ("/targets/trials/resourceType", json!("aws:ec2:instance")),
        ("/targets/trials/resourceTags", json!({})),
        // The cases are tags as well as ARNs, filters as well as ARNs, six ARNs, and an invalid ARN.
        ("/targets/trials", named(1, json!({"resourceTags": {"a": "b"}}))),
        ("/targets/trials", named(1, json!({"filters": [{"path": "State.Name", "values": ["running"]}]}))),
        ("/targets/trials", named(6, json!({}))),
        (
            "/targets/trials",
            json!({"resourceType": "aws:ec2:spot-instance", "resourceArns": ["i-1"], "selectionMode": "ALL"}),
        ),
        ("/roleArn", json!("role")),
        ("/targets/trials/selectionMode", json!("PERCENT(50)")),
        ("/targets/trials/selectionMode", json!("COUNT(0)")),
        ("/targets/trials/filters/0/path", json!("Placement.AvailabilityZone")),
        ("/actions/interrupt/actionId", json!("aws:ec2:stop-instances")),
        ("/actions/interrupt/parameters", json!({"durationBeforeInterruption": "PT1M"})),
        ("/actions/interrupt/parameters", json!({"durationBeforeInterruption": "PT2M", "more": "1"})),
        ("/actions/interrupt/targets", json!({"SpotInstances": "others"})),
        ("/actions/interrupt/targets", json!({"Instances": "trials"})),
        ("/actions", json!({})),
    ] {
        let wanted = serde_json::from_value(template(json!({pointer: value}))).unwrap();
        let refused = Lab::new(4).world.create_experiment_template(wanted).unwrap_err();
        assert_eq!((refused.code, refused.status), ("ValidationException", 400), "{pointer} {value}");
    }
    let mut lab = Lab::new(4);
    let request = serde_json::from_value(json!({"clientToken": "e", "experimentTemplateId": "EXT1"})).unwrap();
    assert_eq!(lab.world.start_experiment(&request).unwrap_err().code, "ResourceNotFoundException");
    assert_eq!(lab.world.delete_experiment_template("EXT1").unwrap_err().code, "ResourceNotFoundException");
    assert_eq!(lab.world.experiment("EXP1").unwrap_err().code, "ResourceNotFoundException");
}

#[test]
fn ecs_tells_of_container_instances_where_it_is_asked_to() {
    assert_eq!(events_of(&two_hosts(), CONTAINER_INSTANCE).0, 0, "the simulation delivers no such events");
    for (without_draining, events, status) in [(false, 3, "DRAINING"), (true, 2, "ACTIVE")] {
        let mut lab = Lab::new(4);
        lab.world = lab.world.with_ecs_events();
        lab.world.trouble_mut().without_draining = without_draining;
        lab.submit(json!({"arrayProperties": {"size": 4}}));
        lab.pass(UNTIL_RUNNING);
        start(&mut lab, json!({}));
        let (count, last) = events_of(&lab, CONTAINER_INSTANCE);
        assert_eq!((count, &last["status"]), (events, &json!(status)));
        let host = lab.world.instance(last["ec2InstanceId"].as_str().unwrap()).unwrap();
        assert_eq!(last["containerInstanceArn"], host.container_instance_arn);
    }
}
