//! Looks up the disks for data sets with the SDKs.

use spotsweep_records::sweep::target::DataDisk;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_disks_of_all_instance_types_of_a_queue_are_found() {
    let rig = Rig::new().await;
    let environment = json!({ "computeEnvironmentName": "tagged", "type": "MANAGED", "computeResources": {
        "type": "SPOT", "instanceRole": "ecsInstanceRole", "minvCpus": 0, "maxvCpus": 2, "subnets": ["subnet-us-east-1a"],
        "instanceTypes": ["c7i.large", "g4dn.xlarge", "g6"], "tags": { "spotsweep:root-gib": "40" } } });
    let order = json!([{ "order": 1, "computeEnvironment": "tagged" }]);
    let queue = json!({ "jobQueueName": "queue", "priority": 1, "computeEnvironmentOrder": order });
    let container = json!({ "image": "train:1", "volumes": [{ "name": "data", "host": { "sourcePath": "/mnt/data" } }],
        "resourceRequirements": [{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }] });
    let definition = json!({ "jobDefinitionName": "train", "type": "container", "containerProperties": container });
    rig.emulator.with_world(|world, _| {
        world.create_compute_environment(serde_json::from_value(environment).unwrap()).unwrap();
        world.create_job_queue(serde_json::from_value(queue).unwrap()).unwrap();
        world.register_job_definition(serde_json::from_value(definition).unwrap()).unwrap();
    });
    let plan = json!({ "trials": 1, "queue": "queue", "definition": "train", "attempts": 1, "parts": [] });
    let file = b"trials: [{a: 1}]\nspotsweep: {data: {set: \"s3://bucket/data/\"}}\n";
    let file = Arc::new(parse("k.yaml", "v", file).unwrap());
    let prepared = Prepared { file, plan: serde_json::from_value(plan).unwrap(), disks: Vec::new() };
    let executor = Services::default().reaching(targets(&config(&rig.emulator.endpoint())));
    let events = executor.execute(Command::CheckTarget { sweep: rig.trial.sweep.clone(), prepared }).await.unwrap();
    let [Outcome::TargetChecked { target, .. }] = &events[..] else { panic!("{events:?}") };

    let found = |name: &str| {
        let one = target.disks.iter().find(|disk| disk.instance_type == name);
        one.map(|DataDisk { bytes, gpus, .. }| (*bytes, *gpus))
    };
    let expected = [
        ("c7i.large", Some((40 << 30, 0))),
        ("g4dn.xlarge", Some((125_000_000_000, 1))),
        ("g6.xlarge", Some((250_000_000_000, 1))),
        ("g6.48xlarge", Some((7_520_000_000_000, 8))),
        ("g4dn.2xlarge", None),
    ];
    for (name, disk) in expected {
        assert_eq!(found(name), disk, "{name}: {target:?}");
    }
    assert_eq!(target.definitions[0].folders, ["/mnt/data"]);
}
