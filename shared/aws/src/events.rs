//! EventBridge: our own events, on the account's default bus; SNS, where a sweep file names a topic.

use aws_config::SdkConfig;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use futures_util::FutureExt;

use super::BoxError;
use super::lazy::{Lazy, lazy};
use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::execute::{Executed, Service, Taken};
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::notification::{Notification, SOURCE};
use spotsweep_protocol::cause::chain;

/// Says it on the bus.
pub fn bus(config: &SdkConfig) -> impl Service + use<> {
    Bus(lazy(config, Client::new))
}

/// Says it on the bus, and tells the sweep's own topic.
pub fn bus_and_topics(config: &SdkConfig) -> impl Service + use<> {
    BusAndTopics { bus: lazy(config, Client::new), topics: lazy(config, aws_sdk_sns::Client::new) }
}

#[derive(Debug)]
struct Bus(Lazy<Client>);

#[derive(Debug)]
struct BusAndTopics {
    bus: Lazy<Client>,
    topics: Lazy<aws_sdk_sns::Client>,
}

impl Service for Bus {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Notify(said) => {
                let announce = async {
                    say(&self.0, &said).await?;
                    Ok(vec![Outcome::Notified(said)])
                };
                Ok(announce.boxed())
            }
            other => Err(Box::new(other)),
        }
    }
}

impl Service for BusAndTopics {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Notify(said) => Ok(self.announce(said).boxed()),
            other => Err(Box::new(other)),
        }
    }
}

impl BusAndTopics {
    async fn announce(&self, said: Notification) -> Executed {
        say(&self.bus, &said).await?;
        if let Some(topic) = &said.topic {
            let publish = self.topics.publish().topic_arn(topic).subject(said.subject()).message(&said.message);
            // A topic that is gone or closed must not keep a sweep from its end.
            if let Err(error) = publish.send().await {
                tracing::warn!(topic, error = %chain(&error), "the topic was not told");
            }
        }
        Ok(vec![Outcome::Notified(said)])
    }
}

async fn say(client: &Client, said: &Notification) -> Result<(), BoxError> {
    let entry = PutEventsRequestEntry::builder()
        .source(SOURCE)
        .detail_type(said.kind.detail_type())
        .detail(said.detail().to_string())
        .build();
    let answer = client.put_events().entries(entry).send().await?;
    // PutEvents answers 200 even where it took nothing.
    match answer.entries().iter().find(|entry| entry.error_code().is_some()) {
        Some(failed) => {
            Err(format!("{}: {}", failed.error_code().unwrap_or(""), failed.error_message().unwrap_or("")).into())
        }
        None => Ok(()),
    }
}
