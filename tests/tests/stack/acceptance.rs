//! Runs `spotsweep acceptance` as a person does, on the local stack.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use spotsweep_tests::local::{Stack, call_json, eventually, get_json, s3};

/// The JSON document that a run has written.
fn document(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("acceptance.json")).unwrap()).unwrap()
}

/// The name and the verdict of each check.
fn judged(folder: &Path) -> Vec<(String, String)> {
    let document = document(folder);
    let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
    document["checks"].as_array().unwrap().iter().map(|check| (text(check, "name"), text(check, "verdict"))).collect()
}

fn said(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

async fn trouble(stack: &Stack, trouble: Value) {
    call_json(&format!("{}/_emulator/trouble", stack.emulator), "", &trouble).await;
}

/// Asserts that nothing of a run is left: no stack, no rule, no object, no volume.
async fn assert_nothing_left(stack: &Stack) {
    let stacks = aws_sdk_cloudformation::Client::new(&stack.config());
    let described = stacks.describe_stacks().stack_name("spotsweep-local-acceptance").send().await;
    assert!(described.is_err(), "{described:?}");
    let objects = s3(&stack.config()).list_object_versions().bucket(&stack.bucket).send().await.unwrap();
    let keys: Vec<_> = objects.versions().iter().filter_map(|object| object.key()).collect();
    assert!(!keys.iter().any(|key| key.contains("acceptance")), "{keys:?}");
    let state = get_json(&format!("{}/_emulator/state", stack.emulator)).await;
    assert_eq!(state["leftovers"]["volumes"], json!([]));
    assert_eq!(state["leftovers"]["snapshots"], json!([]));
}

/// Four instances at a time boot and pull their image minutes apart, so at no moment are all of their trials in the
/// middle of their training. The test takes 40 s, because boots and pulls are in real time.
#[tokio::test(flavor = "multi_thread")]
async fn the_acceptance_run_holds_and_leaves_nothing() {
    let stack = Stack::start_with("acceptance", &["--slow-starts", "--max-vcpus", "4"]).await;
    let refused = stack.command(&["acceptance", "--max-usd", "0.05"]).await;
    assert_eq!(refused.status.code(), Some(2));
    for part in ["is expected to cost $0.33", "more than --max-usd 0.05"] {
        assert!(said(&refused).contains(part), "{}", said(&refused));
    }
    assert_nothing_left(&stack).await;

    let folder = stack.subfolder("out");
    let run = stack.command(&["acceptance", "--output", folder.to_str().unwrap()]).await;
    let page = fs::read_to_string(folder.join("acceptance.md")).unwrap();
    assert_eq!(run.status.code(), Some(0), "{}{page}", said(&run));
    let checks = judged(&folder);
    assert!(checks.len() == 15 && checks.iter().all(|(_, verdict)| verdict == "held"), "{checks:?}");
    for part in ["was interrupted by FIS", "was terminated without a notice", "The trials have cost", "| EBS Volume"] {
        assert!(page.to_lowercase().contains(&part.to_lowercase()), "{part}: {page}");
    }
    assert_nothing_left(&stack).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_acceptance_run_leaves_nothing() {
    let stack = Stack::start("acceptance-stopped").await;
    let folder = stack.subfolder("out");
    let mut command = stack.prepared(&["acceptance", "--output", folder.to_str().unwrap()]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    eventually("a trial runs", async || {
        let state = get_json(&format!("{}/_emulator/state", stack.emulator)).await;
        state["jobs"]["RUNNING"].as_u64().filter(|running| *running > 0)
    })
    .await;
    kill_process(Pid::from_raw(run.id().unwrap().cast_signed()).unwrap(), Signal::INT).unwrap();
    let run = run.wait_with_output().await.unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", said(&run));
    assert!(said(&run).contains("stopped by SIGINT"), "{}", said(&run));
    assert_nothing_left(&stack).await;
    stack.stop().await;
}

/// Each refusal is reported before an instance is billed. The test takes 25 s, because the last refusal comes after 20
/// s without an instance.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_in_which_no_run_can_hold_gets_none() {
    let stack = Stack::start("acceptance-refused").await;
    let refused = async |parts: &[&str]| {
        let run = stack.command(&["acceptance"]).await;
        assert_eq!(run.status.code(), Some(1), "{}", said(&run));
        for part in parts {
            assert!(said(&run).contains(part), "{part}: {}", said(&run));
        }
        assert_nothing_left(&stack).await;
    };
    trouble(&stack, json!({ "without_fis_action": true })).await;
    refused(&["nothing was started: FIS in us-east-1 does not have aws:ec2:send-spot", "another region"]).await;
    trouble(&stack, json!({ "without_fis_action": false, "spot_vcpus": 0 })).await;
    refused(&["a trial needs 1 vCPUs", "is 0 vCPUs: `aws service-quotas request-service-quota-increase"]).await;
    trouble(&stack, json!({ "spot_vcpus": null })).await;
    let events = aws_sdk_eventbridge::Client::new(&stack.config());
    events.disable_rule().name("ebs-state").send().await.unwrap();
    refused(&["`spotsweep doctor` finds problems", "its rule ebs-state is off", "enable-rule"]).await;
    events.enable_rule().name("ebs-state").send().await.unwrap();
    for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
        let none = json!({ "zone": zone, "instances": 0 });
        call_json(&format!("{}/_emulator/zone-capacity", stack.emulator), "", &none).await;
    }
    refused(&["EC2 has started no instance of queue spot within 20 s", "AWSServiceRoleForEC2Spot"]).await;
    let state = get_json(&format!("{}/_emulator/state", stack.emulator)).await;
    assert_eq!(state["instances"], json!([]), "nothing was ever started");
    stack.stop().await;
}

/// An interruption is tried three times.
#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_that_cannot_happen_prevents_no_other_one() {
    let stack = Stack::start("acceptance-denied").await;
    let folder = stack.subfolder("out");
    trouble(&stack, json!({ "denied": { "SendSpotInstanceInterruptions": null } })).await;
    let run = stack.command(&["acceptance", "--output", folder.to_str().unwrap()]).await;
    assert_eq!(run.status.code(), Some(1), "{}", said(&run));
    let page = fs::read_to_string(folder.join("acceptance.md")).unwrap();
    let verdict = |name: &str| judged(&folder).into_iter().find(|(check, _)| check == name).unwrap().1;
    assert_eq!((verdict("interruption").as_str(), verdict("termination").as_str()), ("did-not-hold", "held"), "{page}");
    assert_eq!((verdict("rebalance").as_str(), verdict("success").as_str()), ("not-seen", "held"), "{page}");
    for part in ["no instance was interrupted by FIS, after 3 tries", "AuthorizationFailure", "without a notice"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let place = |part: &str| page.find(part).unwrap_or(usize::MAX);
    assert!(
        place(": did not hold") < place("**interruption.**") && place("**interruption.**") < place(": held"),
        "{page}"
    );
    assert_nothing_left(&stack).await;
    stack.stop().await;
}
