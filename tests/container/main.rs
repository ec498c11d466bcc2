//! The real runner as the entrypoint of a real container (`runc`), started as the job definition of
//! `infra/compute.yaml` has it: privileged, root, on the host's network, `/dev` at `/host/dev`, with the environment
//! that AWS Batch and ECS give, in an unmodified Debian with Python.
//!
//! The host's network is a namespace of the test's own, which has booted with the launch template's script. From there
//! the metadata service and the ECS agent's credentials have their real addresses, and Lambda and S3 have the names of
//! their regional endpoints, with certificates by an authority that the container trusts. So no endpoint variable is
//! set. What differs from an instance: the volume is a loop device whose by-id link the test makes (udev's work there),
//! names come from `/etc/hosts`, and the variables for pauses are shorter.
//!
//! Needs root on Linux and the programs in `image.rs`; where one is missing, the tests say so and skip.
#![allow(clippy::unwrap_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod container;
mod data;
mod gpus;
mod hostile;
mod image;
mod images;
mod killed;
mod network;
mod scene;
mod services;
mod setup;
mod trees;
mod volume;

use serde_json::{Value, json};

use crate::container::Container;
use crate::scene::{Scene, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_goes_from_container_to_container() {
    // Each of these steps is between two checkpoints, so only the state that is saved on SIGTERM contains it.
    let parameters = json!({ "steps": 30, "waits": "14,25", "linger": 0 });
    let Some(mut scene) = Scene::make(&parameters) else { return };
    let first = scene.start(1, &[]);
    until("the first container waits", &first, || !scene.services.invocations("access").is_empty()).await;
    scene.volume.attach();
    let device = format!("/host/dev/loop{}", scene.volume.number());
    until("a sealed checkpoint", &first, || scene.has_trained(14) && scene.has_sealed("step-010")).await;
    scene.services.announce(Some(60));
    let first = interrupted(&mut scene, first, "step-014").await;
    let mut found: Value = first.lines().find_map(|line| line.strip_prefix("surroundings ")).unwrap().parse().unwrap();
    for folder in ["/dev", "/host/dev"] {
        found["gpus"][folder] = scene.gpus.among(&found["gpus"][folder]).into();
    }
    let expected = json!({
        "user": "trial", "ids": [1000, 1000, []], "capabilities": 0, "regions": ["eu-central-1", "eu-central-1"],
        "volume": [device, "ext4"], "in_own_dev": false,
        "gpus": { "visible": "GPU-own", "/dev": [scene.gpus.own()], "/host/dev": [scene.gpus.own()] },
        "reaches": { "169.254.169.254": "ConnectionRefusedError", "169.254.170.2": "reached" },
    });
    assert_eq!(found, expected);

    // From here on ECS stops the container, without a notice.
    scene.services.announce(None);
    scene.volume.attach();
    let second = scene.start(2, &[]);
    until("another checkpoint", &second, || scene.has_trained(25) && scene.has_sealed("step-020")).await;
    second.signal("TERM");
    interrupted(&mut scene, second, "step-025").await;

    scene.finish(3, 25).await;
    let expected = "claim access mounted notice release claim access mounted release claim access mounted end";
    assert_eq!(scene.kinds(), expected.split(' ').collect::<Vec<_>>());
    for (attempt, newest) in [(1, "step-014"), (2, "step-025")] {
        let found = json!({ "formatted": false, "newest": newest, "torn": [], "missing": [] });
        assert_eq!(scene.services.invocations("mounted")[attempt]["found"], found);
    }
    let claim = &scene.services.invocations("claim")[0];
    assert_eq!((&claim["instance"], &claim["market"]), (&json!("i-0abc"), &json!("spot")), "{claim}");
}

/// The volume's by-id link leads to the disk of another trial, which is blank as well (fact 59).
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_lags_leads_to_no_other_volume() {
    let Some(mut scene) = Scene::make(&json!({ "steps": 30, "waits": "99", "linger": 0 })) else { return };
    let mut other = scene.other_volume();
    other.attach();
    scene.volume.lag_behind(&other);
    let first = scene.start(1, &[]);
    until("the container waits", &first, || !scene.services.invocations("access").is_empty()).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    scene.volume.attach();
    let ended = first.outcome().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(std::fs::read(other.image()).unwrap().iter().all(|byte| *byte == 0), "nothing is written to the other one");
    other.detach().await.unwrap();
    scene.volume.detach().await.unwrap();
    scene.volume.check().unwrap();
}

/// Detaches the volume from a container that ends in order, while it still waits for the answer to its release. Returns
/// what it has printed.
async fn interrupted(scene: &mut Scene, container: Container, newest: &str) -> String {
    scene.services.hold(Some("release"));
    let is_newest = |release: &Value| release["seal"]["newest"] == newest;
    until("the release", &container, || scene.services.invocations("release").iter().any(is_newest)).await;
    assert!(scene.volume.is_free(), "{}", container.log());
    scene.volume.detach().await.unwrap();
    assert!(container.is_running(), "{}", container.log());
    scene.services.hold(None);
    let ended = container.outcome().await;
    assert_eq!(ended.code, Some(75), "{}", ended.stderr);
    scene.assert_nothing_is_left();
    scene.volume.check().unwrap();
    ended.stdout
}

/// Compares the template with the configuration of these tests' containers.
#[test]
fn the_container_is_what_the_job_definition_asks_for() {
    let template = include_str!("../../infra/compute.yaml");
    let (_, definition) = template.split_once("    Type: AWS::Batch::JobDefinition\n").unwrap();
    for part in [
        "Privileged: true",
        "User: root",
        "- { Name: devices, Host: { SourcePath: /dev } }",
        "- { SourceVolume: devices, ContainerPath: /host/dev, ReadOnly: false }",
        "Host: { SourcePath: /opt/spotsweep }",
        "ContainerPath: /opt/spotsweep, ReadOnly: true",
        "[/opt/spotsweep/spotsweep-runner, --, ",
        "- { Name: SPOTSWEEP_DEV, Value: /host/dev }",
        "{ Name: SPOTSWEEP_USER, Value: !Ref TrialUser }",
    ] {
        assert!(definition.contains(part), "{part}");
    }
    assert!(template.contains("TrialUser:\n    Type: String\n    Default: \"1000:1000\"\n"));
}
