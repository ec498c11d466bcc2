//! Registers job definitions for images with the SDK.

use serde_json::{Value, json};
use spotsweep_control_plane::command::ImageDefinition;

use super::*;

/// The members of an answer that show which revision it is.
const OF_REVISION: [&str; 3] = ["jobDefinitionName", "jobDefinitionArn", "revision"];

fn described(rig: &Rig, named: &str) -> Value {
    let request = serde_json::from_value(json!({ "jobDefinitions": [named] })).unwrap();
    let mut found = rig.emulator.with_world(|world, _| world.describe_job_definitions(&request)).unwrap();
    found["jobDefinitions"][0].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_but_the_image_is_as_in_the_other_definition() {
    let rig = Rig::new().await;
    let deployed = json!({ "jobDefinitionName": "train", "type": "container", "propagateTags": true,
        "timeout": { "attemptDurationSeconds": 600 }, "platformCapabilities": ["EC2"], "parameters": { "a": "b" },
        "retryStrategy": { "attempts": 3, "evaluateOnExit": [{ "onExitCode": "75", "action": "RETRY" }] },
        "tags": { "team": "vision" },
        "containerProperties": { "image": "train:1", "command": ["train"], "privileged": true, "user": "root",
            "jobRoleArn": "arn:aws:iam::000000000000:role/job", "environment": [{ "name": "A", "value": "b" }],
            "volumes": [{ "name": "devices", "host": { "sourcePath": "/dev" } }],
            "mountPoints": [{ "sourceVolume": "devices", "containerPath": "/host/dev", "readOnly": false }],
            "linuxParameters": { "sharedMemorySize": 4096 },
            "logConfiguration": { "logDriver": "awslogs", "options": { "mode": "non-blocking" } },
            "resourceRequirements": [{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }] } });
    let request = serde_json::from_value(deployed).unwrap();
    rig.emulator.with_world(|world, _| world.register_job_definition(request)).unwrap();
    let mut expected = described(&rig, "train:1");
    let plan = json!({ "trials": 1, "queue": "queue", "definition": "train", "attempts": 1, "parts": [] });
    let plan = serde_json::from_value(plan).unwrap();
    let prepared = Prepared { file: Arc::new(parse("k.yaml", "v", b"- {a: 1}").unwrap()), plan, disks: Vec::new() };
    let like = expected["jobDefinitionArn"].as_str().unwrap().to_owned();
    let wanted = ImageDefinition { name: "train-image-1".into(), like, image: "me/train:2".into() };
    let executor = Services::default().reaching(targets(&config(&rig.emulator.endpoint())));
    for _ in 0..2 {
        let (prepared, wanted) = (prepared.clone(), wanted.clone());
        let command = Command::RegisterImage { sweep: rig.trial.sweep.clone(), prepared, wanted };
        let events = executor.execute(command).await.unwrap();
        let [Outcome::ImageRegistered { definition: Ok(arn), .. }] = &events[..] else { panic!("{events:?}") };
        assert!(arn.ends_with("job-definition/train-image-1:1"), "found again: {arn}");
    }
    let mut found = described(&rig, "train-image-1:1");
    for member in OF_REVISION {
        (found[member], expected[member]) = (Value::Null, Value::Null);
    }
    expected["containerProperties"]["image"] = json!("me/train:2");
    assert_eq!(found, expected);

    rig.trouble(|trouble| {
        trouble.denied.insert("RegisterJobDefinition".into(), None);
    });
    let wanted = ImageDefinition { name: "train-image-2".into(), image: "me/train:3".into(), ..wanted };
    let command = Command::RegisterImage { sweep: rig.trial.sweep.clone(), prepared, wanted };
    let events = executor.execute(command).await.unwrap();
    assert!(matches!(&events[..], [Outcome::ImageRegistered { definition: Err(_), .. }]), "{events:?}");
    rig.end().await;
}
