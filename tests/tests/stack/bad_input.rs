//! A dropped file that cannot be run is answered next to it, with what is wrong, where, and how to correct it. Nothing
//! of it is submitted. An event that no person can correct goes to the queue of failed events.

use std::time::{Duration, Instant};

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_sdk_s3::config::{Builder, RequestChecksumCalculation};
use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_records::sweep::Stage;
use spotsweep_tests::local::{Stack, call_json, eventually, get_json, s3};

/// A file of this size is refused before it is read, so its answer comes as fast as any.
const HUGE_BYTES: usize = 200 << 20;

/// Key, content, the line that is wrong (0 for none), and a part of the message.
const CASES: [(&str, &str, u32, &str); 18] = [
    ("sweeps/empty.yaml", "", 1, "the file is empty"),
    ("sweeps/none.yaml", "[]\n", 1, "the list is empty"),
    ("sweeps/not-yaml.yaml", "method: grid\nparameters:\n  lr: {values: [0.1, 0.01}\n", 3, "not valid YAML"),
    ("sweeps/binary.yaml", "\u{0}\u{1}\u{2}\u{3}", 1, ""),
    ("sweeps/scalar.yml", "hello\n", 1, "this is the text `hello`"),
    ("sweeps/shape.yaml", "- lr: 0.1\n- 0.2\n", 2, "must be a mapping"),
    ("sweeps/twice.yaml", "- lr: 0.1\n- lr: 0.2\n  lr: 0.3\n", 3, "`lr`"),
    ("sweeps/million.yaml", MILLION_AND_ONE, 2, "1000001 trials"),
    ("sweeps/team/with space.yaml", GOOD, 0, "\"sweeps/team/with space.yaml\""),
    ("sweeps/notes.txt", GOOD, 0, "must end in .yaml or .yml"),
    ("sweeps/CAPITALS.YAML", GOOD, 0, "must end in .yaml or .yml"),
    ("misplaced.yaml", GOOD, 0, "not in sweeps/"),
    ("sweeps/../up.yaml", GOOD, 0, "\"..\""),
    ("sweeps/up..down.yaml", GOOD, 0, "\"..\""),
    ("sweeps/queue.yaml", "spotsweep:\n  queue: no-such-queue\ntrials:\n- lr: 1\n", 2, "\"no-such-queue\""),
    ("sweeps/definition.yaml", "spotsweep:\n  job_definition: missing\ntrials:\n- lr: 1\n", 2, "\"missing\""),
    ("sweeps/budget.yaml", "spotsweep:\n  budget: 20\ntrials:\n- lr: 1\n", 2, "budget"),
    ("sweeps/many.yaml", "method: gird\nparameters:\n  lr: {values: []}\n", 1, "`gird`"),
];
const GOOD: &str = "- lr: 0.1\n";
const MILLION_AND_ONE: &str = "\
method: grid
parameters:
  lr: {distribution: int_uniform, min: 1, max: 101}
  units: {distribution: int_uniform, min: 1, max: 9901}
";

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_is_answered_and_never_submitted() {
    let stack = Stack::start("bad-input").await;
    for (key, content, _, _) in CASES {
        put(&stack, key, content.as_bytes().to_vec()).await;
    }
    for (key, _, line, says) in CASES {
        let problems = rejection(&stack, key).await;
        assert_eq!(problems[0]["line"], line, "{key}: {problems:?}");
        let said = |problem: &Value| problem["message"].as_str().is_some_and(|message| message.contains(says));
        assert!(problems.iter().any(said), "{key}: {problems:?}");
    }
    huge_file(&stack).await;
    deleted_file(&stack).await;
    malformed_event(&stack).await;

    let calls = get_json(&format!("{}/_emulator/calls", stack.emulator)).await;
    assert_eq!(calls["counts"]["SubmitJob"], Value::Null, "{calls}");
    let sweeps = Reader::new(&stack.config(), stack.table.clone()).sweeps().await.unwrap();
    assert_eq!(sweeps.len(), CASES.len() + 2);
    for sweep in sweeps {
        assert_eq!(sweep.stage, Stage::Rejected, "{}", sweep.upload.key);
    }
    let listed = s3(&stack.config()).list_objects_v2().bucket(&stack.bucket).send().await.unwrap();
    for key in listed.contents().iter().filter_map(|object| object.key()) {
        let is_dropped = key.starts_with("sweeps/") || key.starts_with("misplaced.yaml");
        assert!(is_dropped && !key.ends_with(".plan.json"), "{key} of a sweep that never was");
        assert!(key.matches(".rejected.json").count() < 2, "{key} answers an answer");
    }
    stack.stop().await;
}

/// Drops a file of 200 MB of zeros.
async fn huge_file(stack: &Stack) {
    let key = "sweeps/huge.yaml";
    put(stack, key, vec![0; HUGE_BYTES]).await;
    let begun = Instant::now();
    let problems = rejection(stack, key).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "took {:?}", begun.elapsed());
    assert_eq!(problems[0]["line"], 0);
    assert!(problems[0]["message"].as_str().unwrap().contains(&HUGE_BYTES.to_string()), "{problems:?}");
}

/// Drops a file that is deleted for good before its event arrives.
async fn deleted_file(stack: &Stack) {
    let key = "sweeps/deleted.yaml";
    let rules = aws_sdk_eventbridge::Client::new(&stack.config());
    rules.disable_rule().name("sweep-upload").send().await.unwrap();
    let version = put(stack, key, GOOD.into()).await;
    let deletion = s3(&stack.config()).delete_object().bucket(&stack.bucket).key(key).version_id(&version);
    deletion.send().await.unwrap();
    rules.enable_rule().name("sweep-upload").send().await.unwrap();
    let object = json!({ "key": key, "size": GOOD.len(), "etag": "e", "version-id": version, "sequencer": "0055AED6" });
    let detail = json!({ "bucket": { "name": stack.bucket }, "object": object });
    invoke(stack, &json!({
        "version": "0", "id": "late", "detail-type": "Object Created", "source": "aws.s3", "account": "000000000000",
        "time": "2026-11-21T12:00:00Z", "region": "us-east-1", "resources": [], "detail": detail,
    }))
    .await;
    let problems = rejection(stack, key).await;
    assert_eq!(problems[0]["line"], 0);
    assert!(problems[0]["message"].as_str().unwrap().contains("deleted"), "{problems:?}");
}

/// Sends an event of a known kind that lacks a required member. It raises an alarm for the people who run the
/// deployment.
async fn malformed_event(stack: &Stack) {
    let event = json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": { "bucket": {} } });
    invoke(stack, &event).await;
    let queues = call_json(&stack.endpoint, "AmazonSQS.ListQueues", &json!({})).await;
    let urls = queues["QueueUrls"].as_array().unwrap().iter().filter_map(Value::as_str);
    let url = urls.into_iter().find(|url| url.contains("FailedEvents")).unwrap();
    let receive = json!({ "QueueUrl": url, "MaxNumberOfMessages": 10 });
    // Lambda tries an event three times.
    let failed = eventually("the malformed event fails for good", async || {
        let received = call_json(&stack.endpoint, "AmazonSQS.ReceiveMessage", &receive).await;
        received["Messages"].as_array().filter(|messages| !messages.is_empty()).cloned()
    })
    .await;
    assert_eq!(failed.len(), 1, "no file above may fail its function: {failed:?}");
    let record: Value = serde_json::from_str(failed[0]["Body"].as_str().unwrap()).unwrap();
    assert_eq!(record["requestPayload"], event);
    let error = record["responsePayload"]["errorMessage"].as_str().unwrap();
    assert!(error.contains("Object Created"), "{record}");
}

/// Puts an object, and returns its version.
async fn put(stack: &Stack, key: &str, content: Vec<u8>) -> String {
    // No checksum is computed: for 200 MB it takes this profile many seconds, and shows nothing here.
    let plain = Builder::new().request_checksum_calculation(RequestChecksumCalculation::WhenRequired);
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key(key).body(content.into());
    let put = put.customize().disable_payload_signing().config_override(plain).send().await.unwrap();
    put.version_id.unwrap()
}

/// The problems in the answer next to a file. Each must be complete.
async fn rejection(stack: &Stack, key: &str) -> Vec<Value> {
    let answer_key = format!("{key}.rejected.json");
    let s3 = s3(&stack.config());
    let object =
        eventually(&answer_key, async || s3.get_object().bucket(&stack.bucket).key(&answer_key).send().await.ok())
            .await;
    let answer: Value = serde_json::from_slice(&object.body.collect().await.unwrap().to_vec()).unwrap();
    assert_eq!(answer["file"], key);
    let problems = answer["problems"].as_array().unwrap().clone();
    assert!(!problems.is_empty(), "{key}: rejected without a reason");
    for problem in &problems {
        assert_eq!(problem["file"], key);
        assert_eq!(problem["line"] == 0, problem["column"] == 0, "{key}: {problem}");
        for text in ["message", "help"] {
            assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()), "{key}: {problem}");
        }
    }
    problems
}

async fn invoke(stack: &Stack, event: &Value) {
    let lambda = aws_sdk_lambda::Client::new(&stack.config());
    let call = lambda.invoke().function_name("sweep-upload").invocation_type(InvocationType::Event);
    call.payload(Blob::new(event.to_string())).send().await.unwrap();
}
