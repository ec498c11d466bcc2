//! The emulator's own routes: faults on demand.

use std::time::Duration;

use aws_sdk_batch::types::JobStatus;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use serde_json::{Value, json};
use spotsweep_world::InstanceState;

use crate::rig::Rig;

impl Rig {
    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.raw(&format!("_emulator/{path}"), "", &body.to_string()).await;
        (status, serde_json::from_str(&body).unwrap())
    }
}

#[tokio::test]
async fn trouble_is_set_in_part_and_refused_with_a_reason() {
    let rig = Rig::new().await;
    let once = rig.ec2.config().to_builder().retry_config(RetryConfig::disabled()).build();
    let ec2 = aws_sdk_ec2::Client::from_conf(once);
    let create = || ec2.create_volume().availability_zone("us-east-1a").size(1).send();
    let (status, all) = rig.post("trouble", &json!({"zones_without_volume_capacity": ["us-east-1a"]})).await;
    assert_eq!((status, &all["attachment_limit"]), (200, &json!(28)));
    assert_eq!(create().await.unwrap_err().code(), Some("InsufficientVolumeCapacity"));
    let (_, all) = rig.post("trouble", &json!({"throttle_share": {"ec2": 1.0}})).await;
    assert_eq!(all["zones_without_volume_capacity"], json!(["us-east-1a"]), "the others stay");
    let throttled = create().await.unwrap_err();
    assert_eq!(throttled.code(), Some("RequestLimitExceeded"));
    assert_eq!(throttled.raw_response().unwrap().status().as_u16(), 503);
    let mistakes = [
        ("trouble", json!({"no_such_field": 1}), "unknown field"),
        ("trouble", json!({"throttle_share": {"ecs": 1.5}}), "must lie between 0 and 1"),
        ("trouble", json!({"zones_without_volume_capacity": ["mars"]}), "'mars' does not exist"),
        ("zone-capacity", json!({"zone": "mars"}), "'mars' does not exist"),
        ("reclaim", json!({"instance": "i-1", "notice_seconds": -1}), "must not be negative"),
        ("reclaim-zone", json!({"zone": "us-east-1z"}), "does not exist"),
        ("rebalance", json!({"instance": "i-1"}), "does not exist"),
        ("zone-capacity", json!({}), "missing field `zone`"),
    ];
    for (path, body, words) in mistakes {
        let (status, answer) = rig.post(path, &body).await;
        assert!(status == 400 && answer["message"].as_str().unwrap().contains(words), "{path} {status} {answer}");
    }
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn a_zone_is_reclaimed_and_given_back() {
    let rig = Rig::new().await;
    rig.post("zone-capacity", &json!({"zone": "us-east-1b", "instances": 0})).await;
    let job = rig.submit("sleep 60", 2).await;
    rig.wait_for(&job, JobStatus::Running).await;
    let host = rig.emulator.with_world(|world, _| world.instances().next().unwrap().id.clone());
    assert_eq!(rig.post("rebalance", &json!({"instance": host})).await.0, 200);
    let (_, answer) = rig.post("reclaim-zone", &json!({"zone": "us-east-1a", "notice_seconds": 0.1})).await;
    assert_eq!(answer, json!({"instances": [host]}));
    rig.wait_for(&job, JobStatus::Runnable).await;
    // In a zone with capacity the job would have started by then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.wait_for(&job, JobStatus::Runnable).await;
    rig.post("zone-capacity", &json!({"zone": "us-east-1b"})).await;
    rig.wait_for(&job, JobStatus::Running).await;
    let zones = rig.emulator.with_world(|world, _| {
        let running = world.instances().filter(|instance| instance.state == InstanceState::Running);
        running.map(|instance| instance.zone.clone()).collect::<Vec<_>>()
    });
    assert_eq!(zones, ["us-east-1b"]);
    rig.emulator.shutdown().await;
}
