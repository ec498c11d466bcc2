//! Checks the bucket, the table and the dead-letter queues.

use aws_sdk_dynamodb::types::{IndexStatus, TableStatus};
use aws_sdk_s3::types::BucketVersioningStatus;
use aws_sdk_sqs::types::QueueAttributeName;

use super::finding::Finding;
use super::stack::Deployment;
use crate::target::Target;

/// Name of the index of open work (infra/control-plane.yaml).
const INDEX: &str = "open";

/// Checks that the bucket exists, sends its events to EventBridge, and keeps versions.
pub(super) async fn bucket(target: &Target, deployment: &Deployment) -> Vec<Finding> {
    const ABOUT: &str = "bucket";
    let (client, name) =
        (spotsweep_aws::path_style_s3(&target.config), deployment.output("Bucket").unwrap_or_default());
    let mut findings = Vec::new();
    match client.get_bucket_notification_configuration().bucket(name).send().await {
        Ok(notifications) if notifications.event_bridge_configuration().is_some() => {}
        Ok(_) => {
            let fix = format!(
                "`aws s3api put-bucket-notification-configuration --bucket {name} --notification-configuration \
                 '{{\"EventBridgeConfiguration\":{{}}}}'`, with whatever else is configured there"
            );
            findings.push(Finding::problem(
                ABOUT,
                format!("{name} does not send events of uploads to EventBridge"),
                fix,
            ));
        }
        Err(error) => return vec![Finding::refused(ABOUT, "s3:GetBucketNotification", &error)],
    }
    match client.get_bucket_versioning().bucket(name).send().await {
        Ok(versioning) if versioning.status() == Some(&BucketVersioningStatus::Enabled) => {}
        Ok(_) => {
            let fix =
                format!("`aws s3api put-bucket-versioning --bucket {name} --versioning-configuration Status=Enabled`");
            findings.push(Finding::problem(
                ABOUT,
                format!("{name} keeps no versions: a sweep's file can be lost"),
                fix,
            ));
        }
        Err(error) => findings.push(Finding::refused(ABOUT, "s3:GetBucketVersioning", &error)),
    }
    if findings.is_empty() {
        findings.push(Finding::ok(ABOUT, format!("{name} tells EventBridge, and keeps versions")));
    }
    findings
}

/// Checks that the table and its index exist.
pub(super) async fn table(target: &Target, deployment: &Deployment) -> Vec<Finding> {
    const ABOUT: &str = "table";
    let name = deployment.output("Table").unwrap_or_default();
    let described = aws_sdk_dynamodb::Client::new(&target.config).describe_table().table_name(name).send().await;
    let table = match described {
        Ok(described) => described.table,
        Err(error) => return vec![Finding::refused(ABOUT, "dynamodb:DescribeTable", &error)],
    };
    let status = table.as_ref().and_then(|table| table.table_status());
    let works = matches!(status, Some(TableStatus::Active | TableStatus::Updating));
    let mut indexes = table.iter().flat_map(|table| table.global_secondary_indexes());
    let index = indexes.find(|index| index.index_name() == Some(INDEX));
    let is_indexed =
        index.is_some_and(|index| !matches!(index.index_status(), Some(IndexStatus::Creating | IndexStatus::Deleting)));
    vec![match (works, is_indexed) {
        (true, true) => Finding::ok(ABOUT, format!("{name} is active")),
        (false, _) => {
            let status = status.map_or("", |status| status.as_str());
            Finding::problem(ABOUT, format!("{name} is {status}"), "is it being made, or taken away?")
        }
        (true, false) => {
            let said = format!("{name} has no working index {INDEX}: reconcile finds nothing to do");
            Finding::problem(ABOUT, said, "deploy again, or wait until DynamoDB has made it")
        }
    }]
}

/// Checks that the dead-letter queues are empty.
pub(super) async fn queues(target: &Target, deployment: &Deployment) -> Vec<Finding> {
    let client = aws_sdk_sqs::Client::new(&target.config);
    let mut findings = Vec::new();
    let counted =
        [QueueAttributeName::ApproximateNumberOfMessages, QueueAttributeName::ApproximateNumberOfMessagesNotVisible];
    for (about, output) in [("failed events", "FailedEvents"), ("undelivered events", "UndeliveredEvents")] {
        let url = deployment.output(output).unwrap_or_default();
        let attributes = client.get_queue_attributes().queue_url(url).set_attribute_names(Some(counted.to_vec()));
        let count = match attributes.send().await {
            Ok(answer) => {
                let count = |name| answer.attributes()?.get(name)?.parse::<u64>().ok();
                counted.iter().filter_map(count).sum::<u64>()
            }
            Err(error) => {
                findings.push(Finding::refused(about, "sqs:GetQueueAttributes", &error));
                continue;
            }
        };
        findings.push(match count {
            0 => Finding::ok(about, "none"),
            _ => {
                let stack = &target.name;
                let fix =
                    format!("`spotsweep redrive --stack {stack} --dry-run` says what they are and why they are there");
                Finding::problem(about, format!("{count} in the dead-letter queue"), fix)
            }
        });
    }
    findings
}
