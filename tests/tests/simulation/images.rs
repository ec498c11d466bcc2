//! Sweeps that name a container image.

use serde_json::{Value, json};
use spotsweep_control_plane::settings::LEASE;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::Harness;
use spotsweep_simulation::invocation::InvocationFault;

/// The job definitions that were registered for images, and those that a deployment has.
fn definitions(harness: &Harness) -> Vec<Value> {
    let request = serde_json::from_value(json!({})).unwrap();
    let found = harness.cloud.world().describe_job_definitions(&request).unwrap();
    found["jobDefinitions"].as_array().unwrap().clone()
}

fn of_images(harness: &Harness) -> Vec<Value> {
    definitions(harness).into_iter().filter(|found| found["containerProperties"]["image"] != "train:1").collect()
}

fn file(image: &str) -> String {
    format!("trials: [{{lr: 1}}]\nspotsweep: {{image: \"{image}\"}}\n")
}

/// The job definition with which the file's sweep was submitted.
fn used(harness: &Harness, name: &str) -> String {
    let plan = harness.cloud.get(&format!("sweeps/{name}.plan.json")).expect("a plan");
    let plan: Value = serde_json::from_slice(&plan).unwrap();
    plan["job_definition"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_image_has_a_definition_that_differs_in_nothing_else() {
    let harness = Harness::new(1);
    let mut deployed = json!({ "jobDefinitionName": "train", "type": "container", "propagateTags": true,
        "timeout": { "attemptDurationSeconds": 600 }, "retryStrategy": { "attempts": 3 }, "tags": { "team": "vision" },
        "containerProperties": { "image": "train:1", "command": ["train"], "privileged": true, "user": "root",
            "jobRoleArn": "arn:aws:iam::000000000000:role/job", "environment": [{ "name": "A", "value": "b" }],
            "volumes": [{ "name": "devices", "host": { "sourcePath": "/dev" } }],
            "mountPoints": [{ "sourceVolume": "devices", "containerPath": "/host/dev", "readOnly": false }],
            "resourceRequirements": [{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }] } });
    harness.cloud.world().register_job_definition(serde_json::from_value(deployed.clone()).unwrap()).unwrap();
    for (name, image) in
        [("a.yaml", "me/train:2"), ("b.yaml", "me/train:2"), ("c.yaml", "me/train:3"), ("d.yaml", "train:1")]
    {
        harness.deliver(&harness.put(name, &file(image))).await.unwrap();
    }
    let found = of_images(&harness);
    let arns: Vec<&str> = found.iter().map(|found| found["jobDefinitionArn"].as_str().unwrap()).collect();
    assert_eq!(arns.len(), 2, "one for each image: {arns:?}");
    let own = |image: &str| {
        let is_own = |found: &&Value| found["containerProperties"]["image"] == image;
        found.iter().find(is_own).unwrap()["jobDefinitionArn"].as_str().unwrap().to_owned()
    };
    assert_eq!((used(&harness, "a.yaml"), used(&harness, "b.yaml")), (own("me/train:2"), own("me/train:2")));
    assert_eq!(used(&harness, "c.yaml"), own("me/train:3"));
    assert!(used(&harness, "d.yaml").ends_with("job-definition/train:2"), "it has that image already");
    let of =
        definitions(&harness).into_iter().find(|found| found["jobDefinitionArn"] == used(&harness, "d.yaml")).unwrap();
    for mut one in found.clone() {
        one["containerProperties"]["image"] = json!("train:1");
        for member in ["jobDefinitionName", "jobDefinitionArn", "revision"] {
            one[member] = of[member].clone();
        }
        assert_eq!(one, of);
    }

    // A new revision of the deployment's definition has definitions of its own, and a removed one is registered again.
    deployed["timeout"]["attemptDurationSeconds"] = json!(900);
    harness.cloud.world().register_job_definition(serde_json::from_value(deployed).unwrap()).unwrap();
    harness.deliver(&harness.put("e.yaml", &file("me/train:2"))).await.unwrap();
    let newer = used(&harness, "e.yaml");
    assert_ne!(newer, own("me/train:2"), "like the new revision");
    harness.cloud.world().deregister_job_definition(&newer).unwrap();
    harness.deliver(&harness.put("f.yaml", &file("me/train:2"))).await.unwrap();
    assert_eq!(used(&harness, "f.yaml"), newer.replace(":1", ":2"));
}

/// The function is killed at every point, or its call gets no answer. The file is answered, and the image has one
/// definition.
#[tokio::test]
async fn an_image_is_registered_once_wherever_the_function_is_killed() {
    let mut deaths = 0;
    for at in 0..30 {
        let mut harness = Harness::new(2);
        let put = harness.put("killed.yaml", &file("me/train:2"));
        let died = harness.invoke_with(&put, InvocationFault { dies_at: Some(at), ..InvocationFault::default() });
        deaths += u32::from(died.answer.is_none());
        for _ in 0..3 {
            harness.pass(LEASE * 64);
            harness.deliver(&harness.reconcile()).await.unwrap();
        }
        if harness.store.state().0.is_empty() {
            harness.deliver(&put).await.unwrap();
        }
        assert_eq!(harness.store.state().0[0].stage, Stage::Running, "killed at {at}");
        assert_eq!(of_images(&harness).len(), 1, "killed at {at}");
    }
    assert!(deaths > 20, "only {deaths} died");
}

#[tokio::test]
async fn an_image_that_may_not_be_registered_is_answered_at_once() {
    let harness = Harness::new(3);
    harness.cloud.world().trouble_mut().denied.insert("RegisterJobDefinition".into(), None);
    harness.deliver(&harness.put("denied.yaml", &file("me/train:2"))).await.unwrap();
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer: Value =
        serde_json::from_slice(&harness.cloud.get("sweeps/denied.yaml.rejected.json").unwrap()).unwrap();
    let problem = &answer["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(20)));
    let said = format!("{} {}", problem["message"], problem["help"]);
    assert!(said.contains("me/train:2") && said.contains("not authorized") && said.contains("AllowedImages"), "{said}");
}
