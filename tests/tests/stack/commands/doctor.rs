//! Runs `doctor` on a stack without problems, and on one with several.

use serde_json::{Value, json};
use spotsweep_tests::local::{Stack, call_json, s3};

use super::run;

pub(super) async fn of_a_sound_stack(stack: &Stack) {
    let sound = run(stack, &["doctor"]).await.said(0, "nothing is wrong with stack spotsweep-local").out;
    for part in ["functions", "rules", "bucket", "table", "job queue", "compute environment", "job definition"] {
        assert!(sound.lines().any(|line| line.starts_with("ok ") && line.contains(part)), "{part}: {sound}");
    }
    run(stack, &["doctor", "--stack", "no-such-stack"]).await.said(1, "1 problem with stack no-such-stack");
}

pub(super) async fn of_a_broken_stack(stack: &Stack) {
    let config = stack.config();
    let events = aws_sdk_eventbridge::Client::new(&config);
    events.disable_rule().name("ebs-state").send().await.unwrap();
    let empty = aws_sdk_s3::types::NotificationConfiguration::builder().build();
    let silence =
        s3(&config).put_bucket_notification_configuration().bucket(&stack.bucket).notification_configuration(empty);
    silence.send().await.unwrap();
    let variables = aws_sdk_lambda::types::Environment::builder().variables("SPOTSWEEP_TABLE", "another").build();
    let lambda = aws_sdk_lambda::Client::new(&config);
    lambda.update_function_configuration().function_name("reconcile").environment(variables).send().await.unwrap();
    let queues = call_json(&stack.endpoint, "AmazonSQS.ListQueues", &json!({})).await;
    let mut urls = queues["QueueUrls"].as_array().unwrap().iter().filter_map(Value::as_str);
    let failed = urls.find(|url| url.contains("FailedEvents")).unwrap();
    let message = json!({ "QueueUrl": failed, "MessageBody": "{}" });
    call_json(&stack.endpoint, "AmazonSQS.SendMessage", &message).await;

    let broken = run(stack, &["doctor", "--json"]).await.said(1, "problems with stack");
    let findings: Vec<Value> = broken.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (about, part) in [
        ("ebs-state", "its rule ebs-state is off"),
        ("bucket", "does not send events of uploads"),
        ("functions", "SPOTSWEEP_TABLE differs"),
        ("failed events", "1 in the dead-letter queue"),
    ] {
        let found = findings
            .iter()
            .find(|finding| finding["about"] == about && finding["said"].as_str().unwrap().contains(part));
        let found = found.unwrap_or_else(|| unreachable!("no {about}, {part}: {}", broken.out));
        assert_eq!(found["state"], "problem");
        assert!(!found["do"].as_str().unwrap().is_empty(), "{found}");
    }
    assert!(findings.iter().any(|finding| finding["about"] == "table" && finding["state"] == "ok"), "{}", broken.out);
}
