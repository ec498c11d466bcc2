//! EventBridge: our own events, on the account's default bus; SNS, where a sweep file names a topic.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;

use super::executor::Outcome;
use crate::announcement::{Announcement, SOURCE};
use crate::event::Event;

pub(super) async fn announce(client: &Client, sns: &aws_sdk_sns::Client, announcement: Announcement) -> Outcome {
    let entry = PutEventsRequestEntry::builder()
        .source(SOURCE)
        .detail_type(announcement.kind.detail_type())
        .detail(announcement.detail().to_string())
        .build();
    let answer = client.put_events().entries(entry).send().await?;
    // PutEvents answers 200 even where it took nothing.
    if let Some(failed) = answer.entries().iter().find(|entry| entry.error_code().is_some()) {
        return Err(format!("{}: {}", failed.error_code().unwrap_or(""), failed.error_message().unwrap_or("")).into());
    }
    if let Some(topic) = &announcement.topic {
        let publish = sns.publish().topic_arn(topic).subject(announcement.subject()).message(&announcement.message);
        // A topic that is gone or closed must not keep a sweep from its end.
        if let Err(error) = publish.send().await {
            tracing::warn!(topic, error = %crate::handle::chain(&error), "the topic was not told");
        }
    }
    Ok(vec![Event::Announced(announcement)])
}
