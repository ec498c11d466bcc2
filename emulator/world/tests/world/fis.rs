//! FIS's interruptions, and what ECS tells of the instances that they hit.

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
        *template.pointer_mut(pointer).unwrap() = value.clone();
    }
    template
}

/// Starts an experiment of a template that differs so; its id.
fn start(lab: &mut Lab, more: Value) -> String {
    let made = lab.make(template(more), World::create_experiment_template);
    let request = json!({"clientToken": "e", "experimentTemplateId": made["experimentTemplate"]["id"]});
    let started = lab.make(request, |world, wanted| world.start_experiment(&wanted));
    started["experiment"]["id"].as_str().unwrap().to_owned()
}

fn status(lab: &Lab, id: &str) -> String {
    lab.world.experiment(id).unwrap()["experiment"]["state"]["status"].as_str().unwrap().to_owned()
}

/// How many events of this kind there were, and the detail of the last one.
fn told(lab: &Lab, kind: &str) -> (usize, Value) {
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
        (told(&lab, REBALANCE).0, told(&lab, WARNING).0),
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
    assert_eq!((told(&lab, REBALANCE).0, told(&lab, WARNING).0), (2, 1), "the warning comes a notice before the end");
    lab.pass(2_000);
    assert_eq!((told(&lab, WARNING).0, status(&lab, &experiment).as_str()), (2, "running"));
    lab.pass(2_000);
    assert_eq!(status(&lab, &experiment), "completed");
}

#[test]
fn nothing_is_taken_that_has_not_the_tag() {
    let mut lab = two_hosts();
    let experiment = start(&mut lab, json!({"/targets/trials/resourceTags": {"spotsweep": "no"}}));
    assert_eq!((status(&lab, &experiment).as_str(), told(&lab, REBALANCE).0), ("failed", 0));
}

#[test]
fn what_is_not_known_is_refused() {
    for (pointer, value) in [
        ("/stopConditions/0/source", json!("aws:cloudwatch:alarm")),
        ("/targets/trials/resourceType", json!("aws:ec2:instance")),
        ("/targets/trials/resourceTags", json!({})),
        ("/targets/trials/selectionMode", json!("PERCENT(50)")),
        ("/targets/trials/selectionMode", json!("COUNT(0)")),
        ("/targets/trials/filters/0/path", json!("Placement.AvailabilityZone")),
        ("/actions/interrupt/actionId", json!("aws:ec2:stop-instances")),
        ("/actions/interrupt/parameters", json!({"durationBeforeInterruption": "PT1M"})),
        ("/actions/interrupt/parameters", json!({"durationBeforeInterruption": "PT2M", "more": "1"})),
        ("/actions/interrupt/targets", json!({"SpotInstances": "others"})),
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
    assert_eq!(told(&two_hosts(), CONTAINER_INSTANCE).0, 0, "the simulation delivers no such events");
    for (without_draining, events, status) in [(false, 3, "DRAINING"), (true, 2, "ACTIVE")] {
        let mut lab = Lab::new(4);
        lab.world = lab.world.with_ecs_events();
        lab.world.trouble_mut().without_draining = without_draining;
        lab.submit(json!({"arrayProperties": {"size": 4}}));
        lab.pass(UNTIL_RUNNING);
        start(&mut lab, json!({}));
        let (told, last) = told(&lab, CONTAINER_INSTANCE);
        assert_eq!((told, &last["status"]), (events, &json!(status)));
        let host = lab.world.instance(last["ec2InstanceId"].as_str().unwrap()).unwrap();
        assert_eq!(last["containerInstanceArn"], host.container_instance_arn);
    }
}
