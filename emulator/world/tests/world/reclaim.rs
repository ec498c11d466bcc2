//! Tests of whole zones, and of what Batch and ECS report about an attempt's place.

use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_world::ecs::DescribeContainerInstances;
use spotsweep_world::{AttemptKey, InstanceState};

use crate::lab::{Lab, UNTIL_RUNNING};

const A: &str = "us-east-1a";

#[test]
fn a_zone_is_lost_at_once_and_stays_lost_until_lifted() {
    let mut lab = Lab::new(100);
    let (first, second) = (lab.host(A), lab.host(A));
    let elsewhere = lab.host("us-east-1b");
    assert_eq!(lab.world.reclaim_zone("us-east-1z", None, lab.now).unwrap_err().code, "InvalidZone.NotFound");
    lab.world.reclaim(&first, Some(Duration::from_secs(10)), lab.now).unwrap();
    let notice = Some(Duration::from_secs(120));
    assert_eq!(
        lab.world.reclaim_zone(A, notice, lab.now).unwrap(),
        std::slice::from_ref(&second),
        "the other has its notice"
    );
    lab.pass(10_000);
    assert_eq!(lab.instances(InstanceState::ShuttingDown), [first]);
    lab.pass(110_000);
    assert_eq!(lab.instances(InstanceState::ShuttingDown), [second]);
    lab.pass(300);
    lab.submit(json!({"arrayProperties": {"size": 8}}));
    lab.pass(UNTIL_RUNNING);
    let running = lab.instances(InstanceState::Running);
    assert!(running.contains(&elsewhere));
    assert!(running.iter().all(|id| lab.world.instance(id).unwrap().zone != A), "no capacity");
    lab.world.set_zone_capacity(A, None, lab.now);
    assert_eq!(lab.world.reclaim_zone(A, None, lab.now).unwrap(), [""; 0]);
}

/// ECS drains an instance after a notice only if its agent is configured to (fact 9). Otherwise the next attempt runs
/// on the same instance.
#[test]
fn an_instance_under_notice_takes_another_job_unless_it_drains() {
    for (without_draining, status) in [(true, "ACTIVE"), (false, "DRAINING")] {
        let mut lab = Lab::new(4);
        lab.world.trouble_mut().without_draining = without_draining;
        lab.submit(json!({"retryStrategy": {"attempts": 2}}));
        lab.pass(UNTIL_RUNNING);
        let host = lab.instances(InstanceState::Running)[0].clone();
        lab.world.reclaim(&host, Some(Duration::from_secs(120)), lab.now).unwrap();
        let first = lab.started[0].attempt.clone();
        lab.world.job_exited(&first, 75, lab.now);
        lab.pass(UNTIL_RUNNING);
        let second = lab.started.iter().find(|start| start.attempt.attempt == 2).unwrap();
        assert_eq!(second.instance == host, without_draining);
        let shown = lab.world.instance(&host).unwrap().container_instance_arn.clone();
        let cluster = shown.split('/').nth(1).map(str::to_owned);
        let request = DescribeContainerInstances { cluster, container_instances: vec![shown] };
        let answer = lab.world.describe_container_instances(&request).unwrap();
        assert_eq!(answer["containerInstances"][0]["status"], status);
    }
}

#[test]
fn starting_names_the_container_instance_and_ecs_knows_where_it_is() {
    let mut lab = Lab::new(4);
    let job = lab.submit(json!({"retryStrategy": {"attempts": 2}}));
    lab.pass(1000);
    let starting = lab.events.iter().find(|event| event["detail"]["status"] == "STARTING").unwrap();
    let container = starting["detail"]["container"].clone();
    let arn = container["containerInstanceArn"].as_str().unwrap().to_owned();
    assert!(
        container["taskArn"].as_str().unwrap().starts_with("arn:aws:ecs:us-east-1:000000000000:task/AWSBatch-spot-")
    );
    let cluster = arn.split('/').nth(1).unwrap().to_owned();
    let describe = |lab: &Lab, cluster: Option<String>, id: &str| -> Result<Value, &'static str> {
        let request = DescribeContainerInstances { cluster, container_instances: vec![id.to_owned()] };
        lab.world.describe_container_instances(&request).map_err(|error| error.code)
    };
    let attribute = json!({"name": "ecs.availability-zone", "value": "us-east-1a"});
    for id in [arn.as_str(), arn.rsplit('/').next().unwrap()] {
        let answer = describe(&lab, Some(cluster.clone()), id).unwrap();
        let found = &answer["containerInstances"][0];
        let host = lab.world.instance(found["ec2InstanceId"].as_str().unwrap()).unwrap();
        assert_eq!((host.zone.as_str(), found["containerInstanceArn"].as_str()), (A, Some(arn.as_str())));
        assert!(found["attributes"].as_array().unwrap().contains(&attribute), "{found}");
    }
    assert_eq!(describe(&lab, None, &arn), Err("ClusterNotFoundException"));
    lab.pass(500);
    let host = lab.instances(InstanceState::Running)[0].clone();
    lab.world.reclaim(&host, None, lab.now).unwrap();
    let gone = describe(&lab, Some(cluster), &arn).unwrap();
    assert_eq!(gone["failures"], json!([{"arn": arn, "reason": "MISSING"}]));
    assert_eq!(lab.killed, []);
    lab.pass(0);
    assert_eq!(lab.killed, [AttemptKey { job, attempt: 1 }]);
}
