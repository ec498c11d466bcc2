//! Runs `spotsweep redrive` on the local stack: an upload's event in a dead-letter queue becomes a sweep. An event that
//! cannot be repaired stays in the queue, and its reason is reported.

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_tests::local::{Stack, call_json, drop_file, eventually};

const ARN: &str = "arn:aws:lambda:us-east-1:000000000000:function";
const RULE: &str = "arn:aws:events:us-east-1:000000000000:rule/sweep-upload";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_queue_holds_reaches_its_function() {
    let stack = Stack::start("redrive").await;
    let (failed, undelivered) = (queue(&stack, "FailedEvents").await, queue(&stack, "UndeliveredEvents").await);
    let (code, lines, notes) = redrive(&stack, &[]).await;
    assert_eq!((code, lines.len()), (0, 0), "{notes}");
    assert!(notes.contains("nothing to redrive in stack spotsweep-local"), "{notes}");

    let (code, _, notes) = redrive(&stack, &["--stack", "no-such-stack"]).await;
    assert_eq!(code, 1, "{notes}");
    assert!(notes.contains("cannot look stack no-such-stack up"), "{notes}");

    // There are two files whose events have not arrived, an event that no function can read, and messages of another
    // program.
    let events = aws_sdk_eventbridge::Client::new(&stack.config());
    events.disable_rule().name("sweep-upload").send().await.unwrap();
    // The rule is disabled, so no function has got these events.
    let drop = async |name| drop_file(&stack.config(), &stack.bucket, name, "- lr: 0.1\n").await;
    let (one, other) = (drop("one").await, drop("other").await);
    let malformed = json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": { "bucket": {} } });
    fail(&stack, &malformed).await;
    eventually("the malformed event fails for good", async || (count(&stack, &failed).await == 1).then_some(())).await;
    send(&stack, &failed, &record(&format!("{ARN}:sweep-upload:$LATEST"), &one), &[]).await;
    send(&stack, &failed, &record(&format!("{ARN}:payroll"), &one), &[]).await;
    let reason = [("RULE_ARN", RULE), ("ERROR_CODE", "NO_PERMISSIONS"), ("ERROR_MESSAGE", "not authorized")];
    send(&stack, &undelivered, &other, &reason).await;
    send(&stack, &undelivered, &json!({ "hello": "there" }), &[]).await;

    let (code, lines, notes) = redrive(&stack, &["--dry-run", "--stack", "spotsweep-local"]).await;
    assert_eq!((code, lines.len()), (1, 5), "{lines:?} {notes}");
    let found = only(&lines, "undelivered", "found");
    assert_eq!((&found["event"], &found["error"]), (&other, &json!("NO_PERMISSIONS: not authorized")));
    assert_eq!((count(&stack, &failed).await, count(&stack, &undelivered).await), (3, 2), "they were only looked at");
    assert_eq!(sweeps(&stack).await, 0);

    let (code, lines, notes) = redrive(&stack, &["--failed"]).await;
    assert_eq!((code, lines.len()), (1, 3), "{lines:?} {notes}");
    assert_eq!(only(&lines, "failed", "redriven")["event"], one);
    let reasons: Vec<&str> = lines.iter().filter_map(|line| line["reason"].as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("it failed again: malformed Object Created")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("none of spotsweep's functions")), "{reasons:?}");
    assert_eq!((count(&stack, &failed).await, count(&stack, &undelivered).await), (2, 2));
    assert_eq!(sweeps(&stack).await, 1);

    let (code, lines, notes) = redrive(&stack, &[]).await;
    assert_eq!((code, lines.len()), (1, 4), "{lines:?} {notes}");
    assert!(notes.contains("3 of 4 stay"), "{notes}");
    assert_eq!(only(&lines, "undelivered", "redriven")["function"], "sweep-upload");
    assert_eq!((count(&stack, &failed).await, count(&stack, &undelivered).await), (2, 1));
    assert_eq!(sweeps(&stack).await, 2);
    stack.stop().await;
}

/// Exit code, lines of JSON, and messages for people.
async fn redrive(stack: &Stack, arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let run = stack.command(&[&["redrive", "--json"], arguments].concat()).await;
    let lines = String::from_utf8(run.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (run.status.code().unwrap(), lines, String::from_utf8_lossy(&run.stderr).into_owned())
}

fn only<'a>(lines: &'a [Value], queue: &str, outcome: &str) -> &'a Value {
    let mut found = lines.iter().filter(|line| line["queue"] == queue && line["outcome"] == outcome);
    let (Some(line), None) = (found.next(), found.next()) else {
        unreachable!("not one {outcome} in {queue}: {lines:?}")
    };
    line
}

async fn queue(stack: &Stack, name: &str) -> String {
    let queues = call_json(&stack.endpoint, "AmazonSQS.ListQueues", &json!({})).await;
    let mut urls = queues["QueueUrls"].as_array().unwrap().iter().filter_map(Value::as_str);
    urls.find(|url| url.contains(name)).unwrap().to_owned()
}

/// Number of visible messages.
async fn count(stack: &Stack, queue: &str) -> u32 {
    let request = json!({ "QueueUrl": queue, "AttributeNames": ["ApproximateNumberOfMessages"] });
    let answer = call_json(&stack.endpoint, "AmazonSQS.GetQueueAttributes", &request).await;
    answer["Attributes"]["ApproximateNumberOfMessages"].as_str().unwrap().parse().unwrap()
}

async fn send(stack: &Stack, queue: &str, body: &Value, attributes: &[(&str, &str)]) {
    let attribute =
        |(name, text): &(&str, &str)| ((*name).to_owned(), json!({ "DataType": "String", "StringValue": text }));
    let attributes: serde_json::Map<String, Value> = attributes.iter().map(attribute).collect();
    let request = json!({ "QueueUrl": queue, "MessageBody": body.to_string(), "MessageAttributes": attributes });
    call_json(&stack.endpoint, "AmazonSQS.SendMessage", &request).await;
}

/// The record that Lambda sends to an on-failure destination.
fn record(function: &str, event: &Value) -> Value {
    let context = json!({ "requestId": "c2a6f2ae-7dbb-4d22-8782-d0485c9877e2", "functionArn": function,
        "condition": "RetriesExhausted", "approximateInvokeCount": 3 });
    json!({ "version": "1.0", "timestamp": "2026-11-21T12:00:00.000Z", "requestContext": context,
        "requestPayload": event,
        "responseContext": { "statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled" },
        "responsePayload": { "errorType": "CommitError", "errorMessage": "commit failed" } })
}

async fn fail(stack: &Stack, event: &Value) {
    let lambda = aws_sdk_lambda::Client::new(&stack.config());
    let call = lambda.invoke().function_name("sweep-upload").invocation_type(InvocationType::Event);
    call.payload(Blob::new(event.to_string())).send().await.unwrap();
}

async fn sweeps(stack: &Stack) -> usize {
    Reader::new(&stack.config(), stack.table.clone()).sweeps().await.unwrap().len()
}
