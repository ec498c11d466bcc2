//! Runs `doctor --before-deploy` in an account of the emulator, which lacks one thing after another.

use serde_json::{Value, json};
use spotsweep_tests::local::{Stack, call_json};

const SPOT_QUOTA: &str = "All G and VT Spot Instance Requests";
const ON_DEMAND_QUOTA: &str = "Running On-Demand G and VT instances";

/// An expected finding: its subject, its state, a part of what was seen, and a part of the advice.
type Expected<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(super) async fn doctor(stack: &Stack) {
    sound(stack).await;
    types_and_zones(stack).await;
    quotas(stack).await;
}

async fn sound(stack: &Stack) {
    let expected = [
        ("account", "ok", "us-east-1", ""),
        ("zones", "ok", "us-east-1a, us-east-1b, us-east-1c", ""),
        ("instance types", "ok", "g6.2xlarge", ""),
        ("quota", "ok", SPOT_QUOTA, ""),
        ("quota", "ok", ON_DEMAND_QUOTA, ""),
        ("functions at once", "ok", "Lambda runs up to", ""),
    ];
    check(stack, &[], 0, "nothing is wrong with a deployment here", &expected).await;
}

async fn types_and_zones(stack: &Stack) {
    let types = ["--instance-types", "g5.xlarge,g6.xlarge"];
    let one_zone = json!({ "types_not_offered": { "g6.xlarge": ["us-east-1b"] } });
    let all_zones = json!({ "types_not_offered": { "g6.xlarge": ["us-east-1a", "us-east-1b", "us-east-1c"] } });
    trouble(stack, &one_zone).await;
    let expected = [("instance types", "look", "us-east-1b lacks g6.xlarge", "nothing fails")];
    check(stack, &types, 0, "nothing is wrong", &expected).await;
    let elsewhere = ["--instance-types", "g6.xlarge", "--subnets", "subnet-us-east-1b"];
    let expected = [
        ("zones", "ok", "us-east-1b, by Subnets", ""),
        ("instance types", "problem", "us-east-1b has none of g6.xlarge: no trial can start", "us-east-1a, us-east-1c"),
    ];
    check(stack, &elsewhere, 1, "1 problem with", &expected).await;

    trouble(stack, &all_zones).await;
    let expected =
        [("instance types", "problem", "this region has no g6.xlarge", "deploy with InstanceTypes=g5.xlarge")];
    check(stack, &types, 1, "1 problem with a deployment here", &expected).await;
    trouble(stack, &json!({ "types_not_offered": {} })).await;

    let expected = [("zones", "problem", "finds 3 zones, and ZoneCount is 4", "deploy with ZoneCount=3")];
    check(stack, &["--zone-count", "4"], 1, "1 problem with", &expected).await;
    let expected = [("zones", "problem", "ec2:DescribeSubnets failed", "set Subnets to subnets of this region")];
    check(stack, &["--subnets", "subnet-0a"], 1, "1 problem with", &expected).await;
}

async fn quotas(stack: &Stack) {
    trouble(stack, &json!({ "vcpu_quotas": { "L-3819A6DF": 0, "L-DB2E81BA": 0 } })).await;
    let expected = [
        (
            "quota",
            "problem",
            "0 vCPUs, and MaxVcpus is 20: no trial starts",
            "--quota-code L-3819A6DF --desired-value 20",
        ),
        ("quota", "look", "0 vCPUs, and OnDemandMaxVcpus is 20", "OnDemandMaxVcpus=0"),
    ];
    check(stack, &[], 1, "1 problem with", &expected).await;

    trouble(stack, &json!({ "vcpu_quotas": { "L-3819A6DF": 8, "L-7212CCBC": 0 } })).await;
    let expected =
        [("quota", "problem", "8 vCPUs, and MaxVcpus is 20: jobs beyond them wait", "deploy with MaxVcpus=8")];
    check(stack, &[], 1, "1 problem with", &expected).await;
    check(stack, &["--max-vcpus", "8"], 0, "nothing is wrong", &[("quota", "ok", SPOT_QUOTA, "")]).await;
    let expected = [
        ("quota", "problem", "All P4, P3 and P2 Spot Instance Requests: 0 vCPUs", "L-7212CCBC"),
        ("quota", "ok", "Running On-Demand P instances", ""),
    ];
    check(stack, &["--instance-types", "p4d.24xlarge"], 1, "1 problem with", &expected).await;

    trouble(stack, &json!({ "vcpu_quotas": {}, "denied": { "GetServiceQuota": null } })).await;
    let expected = [
        ("quota", "look", "servicequotas:GetServiceQuota failed", "aws service-quotas get-service-quota"),
        ("quota", "look", ON_DEMAND_QUOTA, "L-DB2E81BA"),
    ];
    check(stack, &[], 0, "nothing is wrong", &expected).await;
    trouble(stack, &json!({ "denied": {} })).await;
}

async fn trouble(stack: &Stack, trouble: &Value) {
    call_json(&format!("{}/_emulator/trouble", stack.emulator), "", trouble).await;
}

/// Runs the command, and asserts that its findings contain each expected one, and no other problem.
async fn check(stack: &Stack, arguments: &[&str], code: i32, note: &str, expected: &[Expected<'_>]) {
    let mut command = stack.prepared(&[&["doctor", "--before-deploy", "--json"], arguments].concat());
    command.envs(["AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL_SERVICE_QUOTAS"].map(|name| (name, &stack.emulator)));
    let done = command.output().await.unwrap();
    let (out, notes) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(code), "{arguments:?}: {out} {notes}");
    assert!(notes.contains(note), "{arguments:?}: {notes}");
    let findings: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (about, state, said, to_do) in expected {
        let is_it = |found: &&Value| {
            found["about"] == *about
                && found["state"] == *state
                && found["said"].as_str().unwrap().contains(said)
                && found["do"].as_str().unwrap_or_default().contains(to_do)
        };
        assert!(findings.iter().any(|found| is_it(&found)), "{arguments:?}: no {about}, {state}, {said}: {out}");
    }
    let found = findings.iter().filter(|found| found["state"] == "problem").count();
    assert_eq!(found, expected.iter().filter(|(_, state, ..)| *state == "problem").count(), "{arguments:?}: {out}");
}
