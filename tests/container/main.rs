//! The real runner as the entrypoint of a real container (`runc`), started as the job definition of
//! `infra/compute.yaml` has it: privileged, root, on the host's network, `/dev` at `/host/dev`, with the environment
//! that AWS Batch and ECS give, in an unmodified Debian with Python.
//!
//! The host's network is a namespace of the test's own. In there the metadata service and the ECS agent's credentials
//! have their real addresses, and Lambda and S3 have the names of their regional endpoints, with certificates by an
//! authority that the container trusts. So no endpoint variable is set. What differs from an instance: the volume is a
//! loop device whose by-id link the test makes (udev's work there), names come from `/etc/hosts`, and the variables for
//! pauses are shorter.
//!
//! Needs root on Linux, `runc`, `mmdebstrap`, iproute2 and e2fsprogs; where one is missing, the tests say so and skip.
#![allow(clippy::unwrap_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod container;
mod image;
mod killed;
mod network;
mod scene;
mod services;
mod volume;

use serde_json::{Value, json};

use crate::scene::{Scene, until};

/// Half of an epoch, so that only the state that is saved on SIGTERM holds all of it.
const WAIT_AT: u64 = 14;

#[tokio::test(flavor = "multi_thread")]
async fn a_noticed_trial_seals_its_volume_and_the_next_container_goes_on() {
    let Some(mut scene) = Scene::make(&json!({ "steps": 30, "wait_at": WAIT_AT, "linger": 0 })) else { return };
    let first = scene.start(1, &[]);
    until("the first container waits for its volume", &first, || !scene.services.invocations("access").is_empty())
        .await;
    scene.volume.attach();
    let device = format!("/host/dev/loop{}", scene.volume.number());
    until("a sealed checkpoint", &first, || scene.has_trained(WAIT_AT) && scene.has_sealed()).await;

    scene.services.hold(Some("release"));
    scene.services.announce(Some(60));
    until("the release", &first, || !scene.services.invocations("release").is_empty()).await;
    let release = &scene.services.invocations("release")[0];
    assert_eq!(release["seal"]["newest"], "step-014", "{}", first.log());
    scene.volume.detach().await.unwrap();
    assert!(first.is_running(), "{}", first.log());
    scene.services.hold(None);
    let first = first.outcome().await;
    assert_eq!(first.code, Some(75), "{}", first.stderr);
    let found: Value =
        first.stdout.lines().find_map(|line| line.strip_prefix("surroundings ")).unwrap().parse().unwrap();
    let expected = json!({
        "user": "trial", "ids": [1000, 1000, []], "capabilities": 0, "regions": ["eu-central-1", "eu-central-1"],
        "volume": [device, "ext4"], "in_own_dev": false,
    });
    assert_eq!(found, expected);
    scene.assert_nothing_is_left();
    scene.volume.check().unwrap();

    scene.finish(2, WAIT_AT).await;
    let kinds: Vec<_> = scene.kinds();
    assert_eq!(kinds, ["claim", "access", "mounted", "notice", "release", "claim", "access", "mounted", "end"]);
    let found = json!({ "formatted": false, "newest": "step-014", "torn": [], "missing": [] });
    assert_eq!(scene.services.invocations("mounted")[1]["found"], found);
    let claim = &scene.services.invocations("claim")[0];
    assert_eq!((&claim["instance"], &claim["market"]), (&json!("i-0abc"), &json!("spot")), "{claim}");
}

/// The template, and what of it the container of these tests is made of.
#[test]
fn the_container_is_what_the_job_definition_asks_for() {
    let template = include_str!("../../infra/compute.yaml");
    let (_, definition) = template.split_once("    Type: AWS::Batch::JobDefinition\n").unwrap();
    for part in [
        "Privileged: true",
        "User: root",
        "- { Name: devices, Host: { SourcePath: /dev } }",
        "- { SourceVolume: devices, ContainerPath: /host/dev, ReadOnly: false }",
        "- { Name: SPOTSWEEP_DEV, Value: /host/dev }",
        "{ Name: SPOTSWEEP_USER, Value: !Ref TrialUser }",
    ] {
        assert!(definition.contains(part), "{part}");
    }
    assert!(template.contains("TrialUser:\n    Type: String\n    Default: \"1000:1000\"\n"));
}
