//! Tests of instances: zones, limits, minimum, idle time.

use std::collections::BTreeMap;

use serde_json::json;
use spotsweep_world::batch::CreateComputeEnvironment;
use spotsweep_world::{InstanceState, Timings, World};

use crate::lab::{Lab, UNTIL_RUNNING};

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
    let events: Vec<_> = lab.events.iter().filter(|e| e["source"] == "aws.ec2").collect();
    assert_eq!(events.len(), 7 * 4, "pending, running, shutting-down, terminated");
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
fn an_environment_keeps_its_minimum_and_a_disabled_one_does_nothing() {
    let mut lab = Lab::new(4);
    let environment = |name: &str, state: &str| {
        json!({"computeEnvironmentName": name, "type": "MANAGED", "state": state, "computeResources": {
            "type": "EC2", "instanceRole": "ecsInstanceRole", "minvCpus": 4, "maxvCpus": 8, "instanceTypes": ["c7i.large"],
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
fn a_type_that_no_zone_has_is_refused_with_batchs_words() {
    let mut lab = Lab::new(4);
    let request = |name: &str| -> CreateComputeEnvironment {
        let resources = json!({"type": "SPOT", "maxvCpus": 4, "instanceRole": "r", "subnets": ["subnet-us-east-1a"],
            "instanceTypes": ["g5.xlarge", "g6.xlarge"]});
        let request = json!({"computeEnvironmentName": name, "type": "MANAGED", "computeResources": resources});
        serde_json::from_value(request).unwrap()
    };
    let zones = |letters: &str| letters.chars().map(|letter| format!("us-east-1{letter}")).collect();
    // Batch checks whether the region offers a type, but not whether a subnet's zone does.
    lab.world.trouble_mut().types_not_offered.insert("g6.xlarge".into(), zones("ab"));
    lab.world.create_compute_environment(request("gpus")).unwrap();
    lab.world.trouble_mut().types_not_offered.insert("g6.xlarge".into(), zones("abc"));
    let refused = lab.world.create_compute_environment(request("more")).unwrap_err();
    assert!(refused.message.contains("Instance type can only be one of"), "{refused}");
}

#[test]
fn a_quota_of_vcpus_bounds_spot_instances() {
    let mut lab = Lab::new(8);
    lab.world.trouble_mut().spot_vcpus = Some(3);
    lab.submit(json!({"arrayProperties": {"size": 8}}));
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.instances(InstanceState::Running).len(), 1, "a second one would have four vCPUs in all");
}

/// Every instance boots, and pulls its image, in another time.
#[test]
fn slow_starts_lie_apart() {
    let mut lab = Lab::with_timings(8, Timings::default().with_slow_starts());
    lab.submit(json!({"arrayProperties": {"size": 8}}));
    let mut started = Vec::new();
    for tenth in 0..170 {
        if lab.started.len() > started.len() {
            started.push(tenth);
        }
        lab.pass(100);
    }
    assert_eq!(started.len(), 8, "each at another tenth of a second: {started:?}");
    assert!(started[7] - started[0] > 60, "and over more than six seconds: {started:?}");
}

/// The running job continues. As on AWS the instance counts towards the limit until it is idle.
#[test]
fn nothing_more_is_placed_on_a_drained_instance() {
    let mut lab = Lab::new(2);
    lab.submit(json!({}));
    lab.pass(UNTIL_RUNNING);
    let host = lab.instances(InstanceState::Running)[0].clone();
    let arn = lab.world.instance(&host).unwrap().container_instance_arn.clone();
    let cluster = arn.rsplit('/').nth(1).unwrap();
    let wanted = json!({"cluster": cluster, "containerInstances": [arn], "status": "DRAINING"});
    let answer = lab.world.update_container_instances_state(&serde_json::from_value(wanted).unwrap()).unwrap();
    assert_eq!(answer["containerInstances"][0]["status"], "DRAINING");
    lab.submit(json!({}));
    lab.pass(UNTIL_RUNNING);
    assert_eq!(lab.started.len(), 1, "the other vCPU is not given away");
    assert_eq!(lab.world.instance(&host).unwrap().state, InstanceState::Running);
}
