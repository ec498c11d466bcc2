//! Sweeps whose data sets are larger than the disks of the instances.

use serde_json::{Value, json};
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::Harness;

/// A queue's compute environment.
struct Environment {
    types: Value,
    /// The tag `spotsweep:root-gib` of its instances.
    root_gib: Option<&'static str>,
    /// The folder of the instance that the job definition mounts.
    folder: &'static str,
    /// The GPUs that a trial needs.
    gpus: u32,
}

/// The folder to which the deployment's instances mount the disk for data sets.
const FOLDER: &str = "/var/lib/spotsweep-data";

/// Drops a sweep with a data set of 16 bytes for a queue with this compute environment.
async fn dropped(Environment { types, root_gib, folder, gpus }: Environment) -> Harness {
    let harness = Harness::new(1);
    let tags = root_gib.map_or(json!({}), |gib| json!({ "spotsweep:root-gib": gib }));
    let environment = json!({ "computeEnvironmentName": "own", "type": "MANAGED", "computeResources": {
        "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 0, "maxvCpus": 256, "instanceTypes": types,
        "subnets": ["subnet-us-east-1a"], "tags": tags } });
    let order = json!([{ "order": 1, "computeEnvironment": "own" }]);
    let queue = json!({ "jobQueueName": "own", "priority": 1, "computeEnvironmentOrder": order });
    let container = json!({
        "image": "own:1", "environment": [{ "name": "SPOTSWEEP_DATA", "value": "/data" }],
        "resourceRequirements": [{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }],
        "volumes": [{ "name": "data", "host": { "sourcePath": folder } }],
    });
    let definition = json!({ "jobDefinitionName": "own", "type": "container", "containerProperties": container });
    {
        let mut world = harness.cloud.world();
        world.create_compute_environment(serde_json::from_value(environment).unwrap()).unwrap();
        world.create_job_queue(serde_json::from_value(queue).unwrap()).unwrap();
        world.register_job_definition(serde_json::from_value(definition).unwrap()).unwrap();
    }
    harness.cloud.put("data/set/x", [0; 16]);
    let resources = if gpus > 0 { format!("  resources: {{gpus: {gpus}}}\n") } else { String::new() };
    let settings = format!("  data: {{s: s3://sweeps/data/set/}}\n  queue: own\n  job_definition: own\n{resources}");
    harness.deliver(&harness.put("s.yaml", &format!("trials: [{{lr: 1}}]\nspotsweep:\n{settings}"))).await.unwrap();
    harness
}

#[tokio::test]
async fn a_data_set_that_no_instance_has_room_for_is_refused_before_submission() {
    let none_has_room = [json!(["c7i.large"]), json!(["c7i.large", "m6a.xlarge"]), json!(["c7i"])];
    for types in none_has_room {
        let harness = dropped(Environment { types: types.clone(), root_gib: Some("0"), folder: FOLDER, gpus: 0 }).await;
        assert_eq!(harness.store.state().0[0].stage, Stage::Rejected, "{types}");
        let answer = harness.cloud.get("sweeps/s.yaml.rejected.json").unwrap();
        let problem = serde_json::from_slice::<Value>(&answer).unwrap()["problems"][0].clone();
        let message = problem["message"].as_str().unwrap();
        assert!(problem["line"] == json!(3) && message.contains("16 bytes"), "{types}: {problem}");
        assert!(harness.calls.take().iter().all(|call| call.action != "SubmitJob"), "{types}");
    }
}

#[tokio::test]
async fn a_disk_that_is_too_small_is_warned_of_and_an_unknown_one_is_not() {
    let of = |types, root_gib, folder| Environment { types, root_gib, folder, gpus: 0 };
    let cases = [
        ("all have room", of(json!(["c7i.large"]), Some("100"), FOLDER), &[] as &[&str]),
        ("they have disks of their own", of(json!(["g5.xlarge", "g6"]), Some("0"), FOLDER), &[]),
        ("some have none", of(json!(["g5.xlarge", "c7i.large"]), Some("0"), FOLDER), &["c7i.large"]),
        (
            "those have too few GPUs",
            Environment { gpus: 1, ..of(json!(["g5.xlarge", "c7i.large"]), Some("0"), FOLDER) },
            &[],
        ),
        ("a type and its family", of(json!(["g5.xlarge", "c7i.large", "c7i"]), Some("0"), FOLDER), &["c7i.large"]),
        ("the launch template is another one", of(json!(["c7i.large"]), None, FOLDER), &[]),
        ("the folder is another one", of(json!(["c7i.large"]), Some("0"), "/mnt/large"), &[]),
        ("Batch chooses the families", of(json!(["optimal"]), Some("0"), FOLDER), &[]),
    ];
    for (name, environment, expected) in cases {
        let harness = dropped(environment).await;
        let sweep = &harness.store.state().0[0];
        assert_eq!(sweep.stage, Stage::Running, "{name}: {:?}", harness.cloud.get("sweeps/s.yaml.rejected.json"));
        let warnings = &sweep.plan.as_ref().unwrap().warnings;
        assert_eq!(warnings.len(), expected.len(), "{name}: {warnings:?}");
        let of_disks = warnings.iter().zip(expected);
        of_disks.for_each(|(warning, small)| {
            assert_eq!(warning.0.message.matches(small).count(), 1, "{name}: {warning:?}");
        });
    }
}
